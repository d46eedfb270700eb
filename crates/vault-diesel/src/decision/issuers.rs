//! Issuers of identity tokens: few rows, the operator's.

use super::authorize::authorize_and_lock;
use super::backend::{Connection, RunQuery, Store};
use super::{Answer, Decided, Decision, Verdict, decide};
use crate::failure::Failure;
use crate::schema::issuers;
use crate::stored::Column;
use crate::update::update;
use async_trait::async_trait;
use diesel::{ExpressionMethods as _, QueryDsl as _};
use vault_core::digest::Digest;
use vault_core::identity::{Issuer, IssuerName, KeySource, StoredIssuer};
use vault_core::port::{IssuerRepository, StoreError};
use vault_core::time::Timestamp;
use vault_core::{Command, Refusal};

const TABLE: &str = "issuers";

#[async_trait]
impl IssuerRepository for Store {
    async fn add_issuer(&self, command: Command<StoredIssuer>) -> Result<(), StoreError> {
        Ok(self.write(command, |connection, command| Box::pin(decide(connection, command))).await??)
    }

    async fn list_issuers(&self) -> Result<Vec<StoredIssuer>, StoreError> {
        self.read((), |connection, ()| Box::pin(list(connection))).await
    }

    async fn find_issuers(&self, names: Vec<IssuerName>) -> Result<Vec<StoredIssuer>, StoreError> {
        self.read(names, |connection, names| Box::pin(find(connection, names))).await
    }

    async fn remove_issuer(&self, command: Command<IssuerName>) -> Result<bool, StoreError> {
        self.write(command, |connection, command| Box::pin(decide(connection, command))).await
    }

    async fn note_keys(&self, seen: StoredIssuer, next: StoredIssuer) -> Result<(), StoreError> {
        self.write((seen, next), |connection, (seen, next)| Box::pin(note(connection, seen, next))).await
    }
}

impl Decision for StoredIssuer {
    type Held = ();
    type Outcome = Answer<()>;

    async fn authorize(connection: &mut Connection, command: &Command<Self>) -> Result<(), Failure> {
        Ok(authorize_and_lock(connection, &command.principal, command.now).await??)
    }

    async fn act(connection: &mut Connection, command: &Command<Self>, (): ()) -> Decided<Answer<()>> {
        let StoredIssuer { issuer, keys, fetched_at, asked_at, failure, code } = &command.act;
        let required: Vec<&str> = issuer.required.iter().map(|pointer| pointer.as_str()).collect();
        let organizations: Vec<String> =
            issuer.organizations.iter().map(|organization| organization.to_string()).collect();
        let added = diesel::insert_into(issuers::table)
            .values((
                issuers::name.eq(issuer.name.as_str()),
                issuers::url.eq(&issuer.url),
                issuers::source.eq(issuer.source.to_stored()),
                issuers::ca.eq(&issuer.ca),
                issuers::required.eq(required.join("\n")),
                issuers::organizations.eq(organizations.join("\n")),
                issuers::created_at.eq(issuer.created_at.as_millis()),
                issuers::keys.eq(keys),
                issuers::fetched_at.eq(fetched_at.as_millis()),
                issuers::asked_at.eq(asked_at.as_millis()),
                issuers::failure.eq(failure),
                issuers::code.eq(code.as_bytes().as_slice()),
            ))
            .on_conflict_do_nothing()
            .execute(connection)
            .await?;
        Ok(if added == 1 { Verdict::Done(Ok(())) } else { Verdict::Refused(Err(Refusal::IssuerExists)) })
    }
}

impl Decision for IssuerName {
    type Held = ();
    type Outcome = bool;

    async fn authorize(connection: &mut Connection, command: &Command<Self>) -> Result<(), Failure> {
        Ok(authorize_and_lock(connection, &command.principal, command.now).await??)
    }

    async fn act(connection: &mut Connection, command: &Command<Self>, (): ()) -> Decided<bool> {
        let row = issuers::table.filter(issuers::name.eq(command.act.as_str()));
        let removed = diesel::delete(row).execute(connection).await?;
        Ok(if removed == 1 { Verdict::Done(true) } else { Verdict::Refused(false) })
    }
}

/// A row, in the order of [`COLUMNS`].
type Row = (String, String, String, String, String, String, i64, String, i64, i64, String, Column<Digest>);

const COLUMNS: (
    issuers::name,
    issuers::url,
    issuers::source,
    issuers::ca,
    issuers::required,
    issuers::organizations,
    issuers::created_at,
    issuers::keys,
    issuers::fetched_at,
    issuers::asked_at,
    issuers::failure,
    issuers::code,
) = (
    issuers::name,
    issuers::url,
    issuers::source,
    issuers::ca,
    issuers::required,
    issuers::organizations,
    issuers::created_at,
    issuers::keys,
    issuers::fetched_at,
    issuers::asked_at,
    issuers::failure,
    issuers::code,
);

async fn list(connection: &mut Connection) -> Result<Vec<StoredIssuer>, Failure> {
    let rows: Vec<Row> = issuers::table.order(issuers::name).select(COLUMNS).load(connection).await?;
    rows.into_iter().map(decode).collect()
}

async fn find(connection: &mut Connection, names: &[IssuerName]) -> Result<Vec<StoredIssuer>, Failure> {
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        let row = issuers::table.filter(issuers::name.eq(name.as_str())).select(COLUMNS);
        let rows: Vec<Row> = row.load(connection).await?;
        for row in rows {
            found.push(decode(row)?);
        }
    }
    Ok(found)
}

async fn note(connection: &mut Connection, seen: &StoredIssuer, next: &StoredIssuer) -> Decided<()> {
    let row = issuers::table
        .filter(issuers::name.eq(seen.issuer.name.as_str()))
        .filter(issuers::code.eq(seen.code.as_bytes().as_slice()))
        .filter(issuers::asked_at.eq(seen.asked_at.as_millis()));
    let noted = update(row)
        .set((
            issuers::keys.eq(&next.keys),
            issuers::fetched_at.eq(next.fetched_at.as_millis()),
            issuers::asked_at.eq(next.asked_at.as_millis()),
            issuers::failure.eq(&next.failure),
            issuers::code.eq(next.code.as_bytes().as_slice()),
        ))
        .execute(connection)
        .await?;
    Ok(if noted == 0 { Verdict::Refused(()) } else { Verdict::Recorded(()) })
}

fn decode(row: Row) -> Result<StoredIssuer, Failure> {
    let (name, url, source, ca, required, organizations, created_at, keys, fetched_at, asked_at, failure, code) = row;
    let damaged = |column| Failure::damaged(TABLE, name.clone(), column);
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let pointers = lines(&required)
        .iter()
        .map(|text| vault_core::identity::ClaimPointer::parse(text, ""))
        .collect::<Result<_, _>>();
    let ids = lines(&organizations).iter().map(|text| text.parse()).collect::<Result<_, _>>();
    Ok(StoredIssuer {
        issuer: Issuer {
            name: IssuerName::parse(&name, "").map_err(|_| damaged("name"))?,
            url,
            source: KeySource::from_stored(&source),
            ca,
            required: pointers.map_err(|_| damaged("required"))?,
            organizations: ids.map_err(|_| damaged("organizations"))?,
            created_at: Timestamp::from_millis(created_at),
        },
        keys,
        fetched_at: Timestamp::from_millis(fetched_at),
        asked_at: Timestamp::from_millis(asked_at),
        failure,
        code: code.decode(TABLE, &name.as_str(), "code")?,
    })
}
