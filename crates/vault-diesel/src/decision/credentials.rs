//! Credentials.

use super::backend::{Connection, RunQuery, Store, execute_together, load_page, narrow};
use super::standing::{Judgement, judge, judge_and_hold, judge_and_hold_with_key};
use super::{Decided, Verdict, audit, count};
use crate::failure::Failure;
use crate::schema::{credential_secrets, credentials, idempotency_keys};
use crate::stored::{Read, ToIdText as _};
use async_trait::async_trait;
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
use vault_core::credential::CredentialType;
use vault_core::digest::Digest;
use vault_core::id::{CredentialId, KeyId};
use vault_core::namespace::Namespace;
use vault_core::port::{
    CredentialRepository, DeleteCredential, Idempotency, ListCredentials, SaveCredential, SaveOutcome, ShowCredential,
    StoreError, StoredCredential,
};
use vault_core::principal::PrincipalRefusal;
use vault_core::sealed::Blob;
use vault_core::time::Timestamp;

/// The version of a credential that has just been saved.
const FIRST_VERSION: i64 = 1;
/// Sorts after every id.
const AFTER_ALL_IDS: &str = "~";

#[async_trait]
impl CredentialRepository for Store {
    async fn save_credential(&self, command: SaveCredential) -> Result<SaveOutcome, StoreError> {
        self.write(command, |connection, command| Box::pin(save(connection, command))).await
    }

    async fn list_credentials(
        &self,
        query: ListCredentials,
    ) -> Result<Result<Vec<StoredCredential>, PrincipalRefusal>, StoreError> {
        self.read(query, |connection, query| Box::pin(list(connection, query))).await
    }

    async fn show_credential(
        &self,
        query: ShowCredential,
    ) -> Result<Result<Option<StoredCredential>, PrincipalRefusal>, StoreError> {
        self.read(query, |connection, query| Box::pin(show(connection, query))).await
    }

    async fn delete_credential(&self, command: DeleteCredential) -> Result<Result<bool, PrincipalRefusal>, StoreError> {
        self.write(command, |connection, command| Box::pin(delete(connection, command))).await
    }
}

async fn save(connection: &mut Connection, command: &SaveCredential) -> Decided<SaveOutcome> {
    let SaveCredential { principal, now, sealed, idempotency, .. } = command;
    let organization = principal.organization();
    // Counted first, so that an organization's saves wait for each other here and not while they hold the
    // account: a change of the account then waits for one save at most.
    let counted = count::add(connection, organization, command.limit).await?;
    let (judgement, key_active) = judge_and_hold_with_key(connection, principal, sealed.key, *now).await?;
    if let Err(refusal) = judgement {
        return Ok(Verdict::Undo(SaveOutcome::Refused(refusal)));
    }
    if let Some(idempotency) = idempotency
        && let Some(outcome) = claim(connection, command, idempotency).await?
    {
        return Ok(Verdict::Undo(outcome));
    }
    if !key_active {
        return Ok(Verdict::Undo(SaveOutcome::KeyInactive));
    }
    if !counted {
        return Ok(Verdict::Undo(SaveOutcome::LimitReached));
    }
    let credential = diesel::insert_into(credentials::table).values((
        credentials::organization_id.eq(organization.text()),
        credentials::id.eq(command.id.text()),
        credentials::kind.eq(command.kind.as_str()),
        credentials::namespace.eq(command.namespace.as_str()),
        credentials::version.eq(FIRST_VERSION),
        credentials::created_at.eq(now.as_millis()),
        credentials::updated_at.eq(now.as_millis()),
        credentials::key_id.eq(sealed.key.text()),
        credentials::information.eq(sealed.information.as_bytes()),
    ));
    let secrets = diesel::insert_into(credential_secrets::table).values((
        credential_secrets::organization_id.eq(organization.text()),
        credential_secrets::id.eq(command.id.text()),
        credential_secrets::data_key.eq(sealed.data_key.as_bytes()),
        credential_secrets::data.eq(sealed.data.as_bytes()),
    ));
    execute_together!(connection, credential, secrets, audit::entry!(&command.audit))?;
    Ok(Verdict::Keep(SaveOutcome::Saved))
}

/// Takes the idempotency key for this save. Something, if it was taken before: what the save then comes to.
async fn claim(
    connection: &mut Connection,
    command: &SaveCredential,
    idempotency: &Idempotency,
) -> Result<Option<SaveOutcome>, Failure> {
    let (organization, account) = (command.principal.organization().text(), command.principal.account().text());
    let taken = diesel::insert_into(idempotency_keys::table)
        .values((
            idempotency_keys::organization_id.eq(organization),
            idempotency_keys::account_id.eq(account),
            idempotency_keys::key.eq(idempotency.key.as_str()),
            idempotency_keys::body.eq(idempotency.body.as_bytes().as_slice()),
            idempotency_keys::credential_id.eq(command.id.text()),
            idempotency_keys::created_at.eq(command.now.as_millis()),
        ))
        .on_conflict_do_nothing()
        .execute(connection)
        .await?;
    if taken == 1 {
        return Ok(None);
    }
    let earlier: Option<(Read<Digest>, Read<CredentialId>)> = idempotency_keys::table
        .filter(idempotency_keys::organization_id.eq(organization))
        .filter(idempotency_keys::account_id.eq(account))
        .filter(idempotency_keys::key.eq(idempotency.key.as_str()))
        .select((idempotency_keys::body, idempotency_keys::credential_id))
        .get_result(connection)
        .await
        .optional()?;
    let Some((body, credential)) = earlier else { return Err(Failure::Overtaken) };
    let body = body.sound("idempotency_keys", &account.as_str(), "body")?;
    let credential = credential.sound("idempotency_keys", &account.as_str(), "credential_id")?;
    let same = body == idempotency.body;
    Ok(Some(if same { SaveOutcome::Replayed(credential) } else { SaveOutcome::IdempotencyMismatch }))
}

type CredentialRow = (Read<CredentialId>, Read<CredentialType>, Read<Namespace>, i64, i64, i64, Read<KeyId>, Vec<u8>);

macro_rules! columns {
    () => {
        (
            credentials::id,
            credentials::kind,
            credentials::namespace,
            credentials::version,
            credentials::created_at,
            credentials::updated_at,
            credentials::key_id,
            credentials::information,
        )
    };
}

fn decode(row: CredentialRow) -> Result<StoredCredential, Failure> {
    const TABLE: &str = "credentials";
    let (id, kind, namespace, version, created_at, updated_at, key, information) = row;
    let id = id.sound(TABLE, &"unknown", "id")?;
    Ok(StoredCredential {
        id,
        kind: kind.sound(TABLE, &id, "type")?,
        namespace: namespace.sound(TABLE, &id, "namespace")?,
        version,
        created_at: Timestamp::from_millis(created_at),
        updated_at: Timestamp::from_millis(updated_at),
        key: key.sound(TABLE, &id, "key_id")?,
        information: Blob::from_bytes(information),
    })
}

async fn list(
    connection: &mut Connection,
    query: &ListCredentials,
) -> Result<Result<Vec<StoredCredential>, PrincipalRefusal>, Failure> {
    if let Err(refusal) = judge(connection, &query.principal, query.now).await? {
        return Ok(Err(refusal));
    }
    let before = query.after.map(|id| id.text());
    let newest_first = credentials::table
        .filter(credentials::organization_id.eq(query.principal.organization().text()))
        .filter(credentials::id.lt(before.as_ref().map_or(AFTER_ALL_IDS, |id| id.as_str())))
        .order(credentials::id.desc())
        .select(columns!());
    let namespace = query.filter.namespace.as_ref().map(Namespace::as_str);
    let kind = query.filter.kind.map(CredentialType::as_str);
    let rows: Vec<CredentialRow> = match (namespace, kind) {
        (None, None) => load_page!(newest_first, connection, query.limit).await?,
        (Some(namespace), None) => {
            let narrowed = newest_first.filter(narrow!(credentials::namespace.eq(namespace)));
            load_page!(narrowed, connection, query.limit).await?
        }
        (None, Some(kind)) => {
            let narrowed = newest_first.filter(narrow!(credentials::kind.eq(kind)));
            load_page!(narrowed, connection, query.limit).await?
        }
        (Some(namespace), Some(kind)) => {
            let narrowed = newest_first.filter(narrow!(credentials::namespace.eq(namespace)));
            load_page!(narrowed.filter(credentials::kind.eq(kind)), connection, query.limit).await?
        }
    };
    Ok(Ok(rows.into_iter().map(decode).collect::<Result<_, _>>()?))
}

async fn show(
    connection: &mut Connection,
    query: &ShowCredential,
) -> Result<Result<Option<StoredCredential>, PrincipalRefusal>, Failure> {
    if let Err(refusal) = judge(connection, &query.principal, query.now).await? {
        return Ok(Err(refusal));
    }
    let row: Option<CredentialRow> = credentials::table
        .filter(credentials::organization_id.eq(query.principal.organization().text()))
        .filter(credentials::id.eq(query.id.text()))
        .select(columns!())
        .get_result(connection)
        .await
        .optional()?;
    Ok(Ok(row.map(decode).transpose()?))
}

async fn delete(connection: &mut Connection, command: &DeleteCredential) -> Decided<Result<bool, PrincipalRefusal>> {
    let organization = command.principal.organization();
    // Counted first, for the reason given at saving.
    count::subtract(connection, organization).await?;
    let judgement: Judgement = judge_and_hold(connection, &command.principal, command.now).await?;
    if let Err(refusal) = judgement {
        return Ok(Verdict::Undo(Err(refusal)));
    }
    let deleted = diesel::delete(
        credentials::table
            .filter(credentials::organization_id.eq(organization.text()))
            .filter(credentials::id.eq(command.id.text())),
    )
    .execute(connection)
    .await?;
    if deleted == 0 {
        return Ok(Verdict::Undo(Ok(false)));
    }
    diesel::delete(
        credential_secrets::table
            .filter(credential_secrets::organization_id.eq(organization.text()))
            .filter(credential_secrets::id.eq(command.id.text())),
    )
    .execute(connection)
    .await?;
    audit::record(connection, &command.audit).await?;
    Ok(Verdict::Keep(Ok(true)))
}
