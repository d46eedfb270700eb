//! Credentials.

use super::super::authorize::{judge, judge_and_hold, judge_and_hold_with_key};
use super::super::backend::{Connection, RunQuery, Store, for_update, together};
use super::super::{Answer, Decided, Decision, Verdict, audit, decide, execute_together};
use super::count;
use super::row::{self, of_credential};
use super::{labels, list, uses, versions};
use crate::failure::Failure;
use crate::new_row::{NewClaim, NewCredential, NewSecret};
use crate::schema::{credential_secrets, credentials, idempotency_keys};
use crate::stored::{Read, ToIdText as _};
use async_trait::async_trait;
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
use vault_core::digest::Digest;
use vault_core::id::{CredentialId, KeyId, OrganizationId};
use vault_core::port::{
    ChangeCredential, CredentialRepository, CredentialUse, DeleteCredential, Find, Idempotency, List, ListCredentials,
    ListedRows, MatchCredential, RequestCheck, SaveCredential, StoreError, StoredCredential, StoredVersions,
    UsePosition,
};
use vault_core::sealed::SealedMetadata;
use vault_core::time::Timestamp;
use vault_core::{Command, Refusal};

#[async_trait]
impl CredentialRepository for Store {
    async fn save_credential(&self, command: Command<SaveCredential>) -> Result<CredentialId, StoreError> {
        Ok(self.write_together(command).await??)
    }

    async fn find_save(&self, query: Find<Option<Idempotency>>) -> Result<Option<(CredentialId, i64)>, StoreError> {
        Ok(self
            .read_for(query.principal.organization(), query, |connection, query| Box::pin(find_save(connection, query)))
            .await?
            .transpose()?)
    }

    async fn list_credentials(&self, query: ListCredentials) -> Result<ListedRows, StoreError> {
        if list::is_one_statement(&query) {
            self.read_at_once_for(query.principal.organization(), query, |connection, query| {
                Box::pin(list::by_one_index(connection, query))
            })
            .await
        } else {
            self.read_for(query.principal.organization(), query, |connection, query| {
                Box::pin(list::list(connection, query))
            })
            .await
        }
    }

    async fn show_credential(&self, query: Find<CredentialId>) -> Result<Option<StoredCredential>, StoreError> {
        self.read_at_once_for(query.principal.organization(), query, |connection, query| {
            Box::pin(row::show(connection, query))
        })
        .await
    }

    async fn credential_versions(&self, query: Find<CredentialId>) -> Result<Option<StoredVersions>, StoreError> {
        self.read_at_once_for(query.principal.organization(), query, |connection, query| {
            Box::pin(versions::versions(connection, query))
        })
        .await
    }

    async fn versions_for_change(&self, query: Find<CredentialId>) -> Result<Option<StoredVersions>, StoreError> {
        self.read_for_writing(query, |connection, query| Box::pin(versions::versions(connection, query))).await
    }

    async fn change_credential(&self, command: Command<ChangeCredential>) -> Result<i64, StoreError> {
        Ok(self.write_together(command).await??)
    }

    async fn delete_credential(&self, command: Command<DeleteCredential>) -> Result<bool, StoreError> {
        Ok(self.write_together(command).await??)
    }

    async fn match_credential(&self, command: Command<MatchCredential>) -> Result<StoredCredential, StoreError> {
        Ok(self.write(command, |connection, command| Box::pin(decide(connection, command))).await??)
    }

    async fn request_check(&self, command: Command<RequestCheck>) -> Result<(), StoreError> {
        Ok(self.write(command, |connection, command| Box::pin(decide(connection, command))).await??)
    }

    async fn list_uses(
        &self,
        query: List<UsePosition, (OrganizationId, CredentialId)>,
    ) -> Result<Option<Vec<CredentialUse>>, StoreError> {
        self.read_for(query.principal.organization(), query, |connection, query| {
            Box::pin(uses::list(connection, query))
        })
        .await
    }
}

/// What a save relies on.
pub(crate) struct Room {
    /// How many credentials the organization has.
    pub(crate) credentials: Option<i64>,
    /// Whether the key that the credential is sealed under is active.
    pub(crate) key_active: bool,
}

impl Room {
    /// Why a credential cannot be saved beside `others` that are saved by the same transaction.
    pub(crate) fn refusal(&self, save: &SaveCredential, others: i64) -> Option<Refusal> {
        if !self.key_active {
            Some(Refusal::Contended)
        } else if self.credentials.is_none_or(|credentials| credentials.saturating_add(others) >= save.limit) {
            Some(save.limit_reached())
        } else {
            None
        }
    }
}

/// Whether everything of one save or change is sealed under one key: another one was replaced meanwhile.
pub(crate) fn under_one_key(key: KeyId, metadata: Option<&SealedMetadata>) -> bool {
    metadata.is_none_or(|metadata| metadata.key == key)
}

impl Decision for SaveCredential {
    type Held = Room;
    type Outcome = Answer<CredentialId>;

    async fn authorize(connection: &mut Connection, command: &Command<Self>) -> Result<Room, Failure> {
        let Command { principal, now, act, .. } = command;
        // The count is held first, so that an organization's saves wait for each other here and not while they hold
        // the account: a change of the account then waits for one save at most.
        let credentials = count::hold(connection, act.organization).await?;
        let key_active = judge_and_hold_with_key(connection, principal, act.organization, act.sealed.key, *now).await?;
        Ok(Room {
            credentials,
            key_active: key_active && under_one_key(act.sealed.key, act.description.metadata.as_ref()),
        })
    }

    async fn act(connection: &mut Connection, command: &Command<Self>, room: Room) -> Decided<Answer<CredentialId>> {
        let (save, now) = (&command.act, command.now);
        let refusal = room.refusal(save, 0);
        if let Some(idempotency) = &save.idempotency {
            // A request that was carried out is answered as it was then, whatever has changed since.
            let claimed = refusal.is_none()
                && claim(connection, save.organization, (save.id, save.version), idempotency, now).await?;
            if !claimed && let Some(earlier) = find_earlier(connection, save.organization, idempotency).await? {
                return Ok(Verdict::Refused(earlier.map(|(credential, _)| credential)));
            }
            if !claimed && refusal.is_none() {
                return Err(Failure::Overtaken);
            }
        }
        if let Some(refusal) = refusal {
            return Ok(Verdict::Refused(Err(refusal)));
        }
        let credential = diesel::insert_into(credentials::table).values(NewCredential::of(save, now));
        let secrets = diesel::insert_into(credential_secrets::table).values(NewSecret::of(save));
        let counted = count::add(save.organization, 1);
        execute_together!(connection, credential, secrets, counted, audit::entry(&command.audit))?;
        labels::insert(connection, save.organization, save.id, &save.description.labels).await?;
        Ok(Verdict::Recorded(Ok(save.id)))
    }
}

impl Decision for DeleteCredential {
    type Held = ();
    type Outcome = Answer<bool>;

    async fn authorize(connection: &mut Connection, command: &Command<Self>) -> Result<(), Failure> {
        // The count first, for the reason given at saving.
        count::hold(connection, command.act.organization).await?;
        Ok(judge_and_hold(connection, &command.principal, command.now).await??)
    }

    async fn act(connection: &mut Connection, command: &Command<Self>, (): ()) -> Decided<Answer<bool>> {
        let DeleteCredential { organization, id, revision } = command.act;
        if let Some(revision) = revision {
            let row = of_credential!(credentials, organization, id).select(credentials::revision);
            let found: Option<i64> = for_update!(row).get_result(connection).await.optional()?;
            if found.is_some_and(|found| found != revision) {
                return Ok(Verdict::Refused(Err(Refusal::Changed)));
            }
        }
        let deleted = diesel::delete(of_credential!(credentials, organization, id)).execute(connection).await?;
        if deleted == 0 {
            return Ok(Verdict::Refused(Ok(false)));
        }
        let secrets = diesel::delete(of_credential!(credential_secrets, organization, id));
        let versions = diesel::delete(of_credential!(credential_versions, organization, id));
        labels::delete(connection, organization, id).await?;
        uses::delete(connection, organization, id).await?;
        let counted = count::add(organization, -1);
        execute_together!(connection, secrets, versions, counted, audit::entry(&command.audit))?;
        Ok(Verdict::Recorded(Ok(true)))
    }
}

/// Takes the idempotency key for a request that makes this version of this credential. `false`: it was taken before.
pub(super) async fn claim(
    connection: &mut Connection,
    organization: OrganizationId,
    made: (CredentialId, i64),
    idempotency: &Idempotency,
    now: Timestamp,
) -> Result<bool, Failure> {
    let taken = diesel::insert_into(idempotency_keys::table)
        .values(NewClaim::of(organization, made, idempotency, now))
        .on_conflict_do_nothing()
        .execute(connection)
        .await?;
    Ok(taken == 1)
}

async fn find_save(
    connection: &mut Connection,
    query: &Find<Option<Idempotency>>,
) -> Result<Option<Answer<(CredentialId, i64)>>, Failure> {
    judge(connection, &query.principal, query.now).await??;
    match &query.key {
        Some(idempotency) => find_earlier(connection, query.of, idempotency).await,
        None => Ok(None),
    }
}

/// What the earlier request under this idempotency key came to, seen from this one; `None`: there was none.
pub(super) async fn find_earlier(
    connection: &mut Connection,
    organization: OrganizationId,
    idempotency: &Idempotency,
) -> Result<Option<Answer<(CredentialId, i64)>>, Failure> {
    let account = idempotency.account.text();
    let earlier: Option<Earlier> = idempotency_keys::table
        .filter(idempotency_keys::organization_id.eq(organization.text()))
        .filter(idempotency_keys::account_id.eq(account))
        .filter(idempotency_keys::key.eq(idempotency.key.as_str()))
        .select((idempotency_keys::body, idempotency_keys::credential_id, idempotency_keys::version))
        .get_result(connection)
        .await
        .optional()?;
    earlier.map(|row| repeated(row, idempotency)).transpose()
}

/// What is stored of a request under an idempotency key: its digest, and what it made.
pub(crate) type Earlier = (Read<Digest>, Read<CredentialId>, i64);

/// The answer to a request under a key that was taken before.
pub(crate) fn repeated(
    (body, credential, version): Earlier,
    idempotency: &Idempotency,
) -> Result<Answer<(CredentialId, i64)>, Failure> {
    let account = idempotency.account.text();
    let body = body.sound("idempotency_keys", &account.as_str(), "body")?;
    let credential = credential.sound("idempotency_keys", &account.as_str(), "credential_id")?;
    Ok(if body == idempotency.body { Ok((credential, version)) } else { Err(Refusal::IdempotencyMismatch) })
}
