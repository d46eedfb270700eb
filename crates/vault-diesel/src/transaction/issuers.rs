//! Issuers of identity tokens. There are few rows, which only the operator changes.

use super::audit::AuditRecorder;
use super::authorize::authorize_and_lock;
use super::{Read, Transaction};
use crate::db::{Db, Tx};
use crate::failure::Failure;
use crate::schema::issuers;
use crate::stored::{Column, IdBytes, StoredId as _};
use diesel::{ExpressionMethods as _, Insertable, QueryDsl as _, Queryable, Selectable, SelectableHelper as _};
use vault_core::digest::Digest;
use vault_core::id::IssuerId;
use vault_core::identity::{ClaimPointer, Issuer, IssuerName, KeySource, StoredIssuer};
use vault_core::time::Timestamp;
use vault_core::{Command, Refusal};

const TABLE: &str = "issuers";

#[derive(Insertable)]
#[diesel(table_name = issuers, treat_none_as_default_value = false)]
struct NewIssuer<'a> {
    id: IdBytes,
    name: &'a str,
    url: &'a str,
    source: &'a str,
    ca: &'a str,
    required: String,
    organizations: String,
    created_at: i64,
    keys: &'a str,
    fetched_at: i64,
    asked_at: i64,
    failure: &'a str,
    code: &'a [u8],
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = issuers, check_for_backend(Db))]
struct IssuerRow {
    id: Column<IssuerId>,
    name: String,
    url: String,
    source: String,
    ca: String,
    required: String,
    organizations: String,
    created_at: i64,
    keys: String,
    fetched_at: i64,
    asked_at: i64,
    failure: String,
    code: Column<Digest>,
}

impl Transaction for Command<StoredIssuer> {
    type Outcome = ();

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<(), Failure> {
        authorize_and_lock(tx, &self.principal, self.now).await?;
        let StoredIssuer { issuer, keys, fetched_at, asked_at, failure, code } = &self.payload;
        let required: Vec<&str> = issuer.required.iter().map(|pointer| pointer.as_str()).collect();
        let organizations: Vec<String> = issuer.organizations.iter().map(|id| id.to_string()).collect();
        let source = issuer.source.to_stored();
        let new = NewIssuer {
            id: issuer.id.stored(),
            name: issuer.name.as_str(),
            url: &issuer.url,
            source: &source,
            ca: &issuer.ca,
            required: required.join("\n"),
            organizations: organizations.join("\n"),
            created_at: issuer.created_at.as_millis(),
            keys,
            fetched_at: fetched_at.as_millis(),
            asked_at: asked_at.as_millis(),
            failure,
            code: code.as_bytes().as_slice(),
        };
        let added = tx.execute(diesel::insert_into(issuers::table).values(new).on_conflict_do_nothing()).await?;
        if added == 0 {
            return Err(Refusal::IssuerExists.into());
        }
        audit.record(tx, &self.audit).await?;
        Ok(())
    }
}

impl Transaction for Command<IssuerId> {
    /// Whether there was such an issuer.
    type Outcome = bool;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<bool, Failure> {
        authorize_and_lock(tx, &self.principal, self.now).await?;
        let row = issuers::table.filter(issuers::id.eq(self.payload.stored()));
        let removed = tx.execute(diesel::delete(row)).await? == 1;
        if removed {
            audit.record(tx, &self.audit).await?;
        }
        Ok(removed)
    }
}

/// Keys that were fetched from an issuer, unless another process has recorded newer ones.
pub(crate) struct RecordKeys {
    pub(crate) seen: StoredIssuer,
    pub(crate) next: StoredIssuer,
}

impl Transaction for RecordKeys {
    /// `false` if the row was changed after it was read.
    type Outcome = bool;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<bool, Failure> {
        let Self { seen, next } = self;
        let row = issuers::table
            .filter(issuers::name.eq(seen.issuer.name.as_str()))
            .filter(issuers::code.eq(seen.code.as_bytes().as_slice()))
            .filter(issuers::asked_at.eq(seen.asked_at.as_millis()));
        let change = diesel::update(row).set((
            issuers::keys.eq(&next.keys),
            issuers::fetched_at.eq(next.fetched_at.as_millis()),
            issuers::asked_at.eq(next.asked_at.as_millis()),
            issuers::failure.eq(&next.failure),
            issuers::code.eq(next.code.as_bytes().as_slice()),
        ));
        audit.commit_without_entry();
        Ok(tx.execute(change).await? == 1)
    }
}

/// All issuers, by name.
pub(crate) struct ListIssuers;

impl Read for ListIssuers {
    type Outcome = Vec<StoredIssuer>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Vec<StoredIssuer>, Failure> {
        let rows = tx.load(issuers::table.order(issuers::name).select(IssuerRow::as_select())).await?;
        rows.into_iter().map(IssuerRow::decode).collect()
    }
}

/// The issuers that exist of some names.
pub(crate) struct FindIssuers(pub(crate) Vec<IssuerName>);

impl Read for FindIssuers {
    type Outcome = Vec<StoredIssuer>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Vec<StoredIssuer>, Failure> {
        let mut found = Vec::with_capacity(self.0.len());
        for name in &self.0 {
            let row = issuers::table.filter(issuers::name.eq(name.as_str())).select(IssuerRow::as_select());
            found.extend(tx.first(row).await?.map(IssuerRow::decode).transpose()?);
        }
        Ok(found)
    }
}

impl IssuerRow {
    fn decode(self) -> Result<StoredIssuer, Failure> {
        let damaged = |column| Failure::damaged(TABLE, self.name.clone(), column);
        let pointers = self.required.lines().map(|text| ClaimPointer::parse(text, "")).collect::<Result<_, _>>();
        let ids = self.organizations.lines().map(str::parse).collect::<Result<_, _>>();
        Ok(StoredIssuer {
            issuer: Issuer {
                id: self.id.decode(TABLE, &self.name, "id")?,
                name: IssuerName::parse(&self.name, "").map_err(|_| damaged("name"))?,
                source: KeySource::from_stored(&self.source),
                required: pointers.map_err(|_| damaged("required"))?,
                organizations: ids.map_err(|_| damaged("organizations"))?,
                created_at: Timestamp::from_millis(self.created_at),
                url: self.url,
                ca: self.ca,
            },
            keys: self.keys,
            fetched_at: Timestamp::from_millis(self.fetched_at),
            asked_at: Timestamp::from_millis(self.asked_at),
            failure: self.failure,
            code: self.code.decode(TABLE, &self.name, "code")?,
        })
    }
}
