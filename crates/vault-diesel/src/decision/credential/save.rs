//! Saves of credentials.

use super::super::Answer;
use super::super::backend::{Connection, RunQuery, insert_rows, load_each, pipeline};
use super::super::batch::{Batch, BatchOutcome, answer_each, authorize_each};
use crate::db::OpenTx as _;
use crate::failure::Failure;
use crate::new_row::{NewClaim, NewCredential, NewEntry, NewLabel, NewSecret};
use crate::schema::idempotency_keys;
use crate::stored::{Column, StoredId as _};
use crate::transaction::authorize::authorize;
use crate::transaction::credential::count;
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
use vault_core::Command;
use vault_core::decision::{Authorized, EarlierRequest, EarlierRequests, SaveFacts, judge_saves};
use vault_core::digest::Digest;
use vault_core::id::{CredentialId, OrganizationId};
use vault_core::port::{Find, Idempotency, SaveCredential};

impl Batch for SaveCredential {
    type Outcome = Answer<CredentialId>;

    fn organization(&self) -> OrganizationId {
        self.organization
    }

    async fn decide_all(
        connection: &mut Connection,
        organization: OrganizationId,
        commands: &[Command<Self>],
    ) -> Result<BatchOutcome<Answer<CredentialId>>, Failure> {
        // The count is held first, so that an organization's saves wait for each other here and not while they hold
        // the account: a change of the account then waits for one transaction of saves at most.
        let credentials = count::lock(&connection.tx(), organization).await?;
        let authorized = authorize_each(connection, organization, commands, |save| Some(save.sealed.key)).await?;
        let keys: Vec<&Idempotency> = commands.iter().filter_map(|command| command.act.idempotency.as_ref()).collect();
        let facts = SaveFacts { credentials, earlier: earlier(connection, organization, &keys).await? };
        let may = commands.iter().zip(&authorized).filter_map(|(command, authorized)| {
            authorized.as_ref().ok().map(|key_active| Authorized { command, key_active: *key_active })
        });
        let outcomes = judge_saves(facts, may);
        let (answers, made) = answer_each(commands, authorized, outcomes);
        write(connection, organization, &made).await?;
        Ok(BatchOutcome { answers, written: !made.is_empty() })
    }
}

async fn write(
    connection: &mut Connection,
    organization: OrganizationId,
    made: &[&Command<SaveCredential>],
) -> Result<(), Failure> {
    let Ok(count @ 1..) = i64::try_from(made.len()) else { return Ok(()) };
    let credentials = made.iter().map(|command| NewCredential::of(&command.act, command.now));
    let secrets = made.iter().map(|command| NewSecret::of(&command.act));
    let mut labels = Vec::new();
    for Command { act, .. } in made {
        labels.extend(act.description.labels.iter().map(|label| NewLabel::of(organization, act.id, label)));
    }
    let claims = made.iter().filter_map(|command| {
        let save = &command.act;
        let idempotency = save.idempotency.as_ref()?;
        Some(NewClaim::of(organization, (save.id, save.version), idempotency, command.now))
    });
    let entries = made.iter().map(|command| NewEntry::of(&command.audit));
    pipeline!(
        connection,
        |own| insert_rows!(own, idempotency_keys, NewClaims, claims),
        |own| insert_rows!(own, credentials, NewCredentials, credentials),
        |own| insert_rows!(own, credential_secrets, NewSecrets, secrets),
        |own| insert_rows!(own, credential_labels, NewLabels, labels.into_iter()),
        |own| count::add(&own.tx(), organization, count).await,
        |own| insert_rows!(own, audit, NewEntries, entries)
    )?;
    Ok(())
}

/// What the earlier request under a key made, for a request that is not carried out yet.
pub(super) async fn find_save(
    connection: &mut Connection,
    query: &Find<Option<Idempotency>>,
) -> Result<Option<Answer<(CredentialId, i64)>>, Failure> {
    authorize(&connection.tx(), &query.principal, query.now).await?;
    let Some(idempotency) = &query.key else { return Ok(None) };
    let earlier = load_earlier(connection, query.of, &[idempotency]).await?;
    Ok(earlier.into_iter().next().map(|(_, earlier)| earlier.answer(idempotency)))
}

/// The earlier requests under these keys.
pub(super) async fn earlier(
    connection: &mut Connection,
    organization: OrganizationId,
    keys: &[&Idempotency],
) -> Result<EarlierRequests, Failure> {
    let mut earlier = EarlierRequests::default();
    for (idempotency, request) in load_earlier(connection, organization, keys).await? {
        earlier.insert(idempotency.account, idempotency.key.clone(), request);
    }
    Ok(earlier)
}

async fn load_earlier<'a>(
    connection: &mut Connection,
    organization: OrganizationId,
    keys: &[&'a Idempotency],
) -> Result<Vec<(&'a Idempotency, EarlierRequest)>, Failure> {
    type Row = (Column<Digest>, Column<CredentialId>, i64);
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let rows = keys.iter().map(|idempotency| {
        idempotency_keys::table
            .filter(idempotency_keys::organization_id.eq(organization.stored()))
            .filter(idempotency_keys::account_id.eq(idempotency.account.stored()))
            .filter(idempotency_keys::key.eq(idempotency.key.as_str()))
            .select((idempotency_keys::body, idempotency_keys::credential_id, idempotency_keys::version))
    });
    let rows: Vec<Option<Row>> = load_each!(connection, rows)?;
    let decode = |(idempotency, row): (&&'a Idempotency, Option<Row>)| {
        let (body, credential, version) = row?;
        let request = || {
            let body = body.decode("idempotency_keys", &idempotency.account, "body")?;
            let credential = credential.decode("idempotency_keys", &idempotency.account, "credential_id")?;
            Ok((*idempotency, EarlierRequest { body, credential, version }))
        };
        Some(request())
    };
    keys.iter().zip(rows).filter_map(decode).collect()
}
