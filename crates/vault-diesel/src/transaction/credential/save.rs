//! Saves of credentials.

use super::super::batch::{Batch, BatchOutcome, answer_each, authorize_each};
use super::count;
use crate::db::Tx;
use crate::failure::Failure;
use crate::new_row::{NewClaim, NewCredential, NewEntry, NewLabel, NewSecret};
use crate::schema::{audit, credential_labels, credential_secrets, credentials, idempotency_keys};
use crate::stored::{Column, StoredId as _};
use diesel::{ExpressionMethods as _, QueryDsl as _};
use futures_util::future::try_join_all;
use futures_util::try_join;
use vault_core::Command;
use vault_core::decision::{Authorized, EarlierRequest, EarlierRequests, SaveFacts, decide_saves};
use vault_core::digest::Digest;
use vault_core::id::{CredentialId, OrganizationId};
use vault_core::port::{Idempotency, SaveCredential};

impl Batch for SaveCredential {
    type Outcome = CredentialId;

    fn organization(&self) -> OrganizationId {
        self.organization
    }

    async fn decide_all(
        tx: &Tx<'_>,
        organization: OrganizationId,
        commands: &[Command<Self>],
    ) -> Result<BatchOutcome<CredentialId>, Failure> {
        // The count is locked first, so that an organization's saves are queued here and not while they have locked the account:
        // a change of the account then waits for one transaction of saves at most.
        let credentials = count::lock(tx, organization).await?;
        let authorized = authorize_each(tx, organization, commands, |save| Some(save.sealed.key)).await?;
        let keys: Vec<&Idempotency> =
            commands.iter().filter_map(|command| command.payload.idempotency.as_ref()).collect();
        let facts = SaveFacts { credentials, earlier: earlier(tx, organization, &keys).await? };
        let may = commands.iter().zip(&authorized).filter_map(|(command, authorized)| {
            authorized.as_ref().ok().map(|key_active| Authorized { command, key_active: *key_active })
        });
        let outcomes = decide_saves(facts, may);
        let (answers, done) = answer_each(commands, authorized, outcomes);
        write(tx, organization, &done).await?;
        Ok(BatchOutcome { answers, written: !done.is_empty() })
    }
}

async fn write(tx: &Tx<'_>, organization: OrganizationId, done: &[&Command<SaveCredential>]) -> Result<(), Failure> {
    let Ok(added @ 1..) = i64::try_from(done.len()) else { return Ok(()) };
    let claims = done.iter().filter_map(|command| {
        let save = &command.payload;
        let idempotency = save.idempotency.as_ref()?;
        Some(NewClaim::of(organization, (save.id, save.version), idempotency, command.now))
    });
    let labels = done.iter().flat_map(|Command { payload, .. }| {
        payload.description.labels.iter().map(|label| NewLabel::of(organization, payload.id, label))
    });
    try_join!(
        tx.insert(idempotency_keys::table, claims),
        tx.insert(credentials::table, done.iter().map(|command| NewCredential::of(&command.payload, command.now))),
        tx.insert(credential_secrets::table, done.iter().map(|command| NewSecret::of(&command.payload))),
        tx.insert(credential_labels::table, labels),
        count::add(tx, organization, added),
        tx.insert(audit::table, done.iter().map(|command| NewEntry::of(&command.audit))),
    )?;
    Ok(())
}

/// Reads the earlier requests under these keys.
pub(super) async fn earlier(
    tx: &Tx<'_>,
    organization: OrganizationId,
    keys: &[&Idempotency],
) -> Result<EarlierRequests, Failure> {
    let requests = try_join_all(keys.iter().map(|idempotency| earlier_request(tx, organization, idempotency))).await?;
    let mut earlier = EarlierRequests::default();
    for (idempotency, request) in keys.iter().zip(requests) {
        if let Some(request) = request {
            earlier.insert(idempotency.account, idempotency.key.clone(), request);
        }
    }
    Ok(earlier)
}

/// Reads the earlier request under a key.
pub(crate) async fn earlier_request(
    tx: &Tx<'_>,
    organization: OrganizationId,
    idempotency: &Idempotency,
) -> Result<Option<EarlierRequest>, Failure> {
    type Row = (Column<Digest>, Column<CredentialId>, i64);
    let account = idempotency.account;
    let claim = idempotency_keys::table
        .filter(idempotency_keys::organization_id.eq(organization.stored()))
        .filter(idempotency_keys::account_id.eq(account.stored()))
        .filter(idempotency_keys::key.eq(idempotency.key.as_str()))
        .select((idempotency_keys::body, idempotency_keys::credential_id, idempotency_keys::version));
    let Some((body, credential, version)) = tx.first::<Row, _>(claim).await? else { return Ok(None) };
    let body = body.decode("idempotency_keys", &account, "body")?;
    let credential = credential.decode("idempotency_keys", &account, "credential_id")?;
    Ok(Some(EarlierRequest { body, credential, version }))
}
