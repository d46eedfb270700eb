//! Taking the credentials of a namespace, to open them for an integration.

use super::super::backend::{Connection, RunQuery, load_page, narrow};
use super::super::integration::freezes::is_frozen;
use super::super::{Decided, Verdict, audit};
use super::activations::live_of;
use super::activator::judge_and_take;
use crate::failure::Failure;
use crate::schema::{activations, credential_secrets, credentials};
use crate::stored::{Read, ToIdText as _};
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, JoinOnDsl as _, NullableExpressionMethods as _, QueryDsl as _,
};
use vault_core::credential::CredentialType;
use vault_core::id::{CredentialId, KeyId};
use vault_core::port::{NewActivation, TakeCredentials, TakeOutcome, TakenCredential};
use vault_core::sealed::{Blob, SealedCredential};

pub(crate) async fn take(connection: &mut Connection, command: &TakeCredentials) -> Decided<TakeOutcome> {
    let TakeCredentials { principal, namespace, activation, most, now, audit: entry } = command;
    if let Err(stale) = judge_and_take(connection, principal, *now).await? {
        return Ok(Verdict::Undo(TakeOutcome::Refused(stale)));
    }
    if is_frozen(connection, principal.organization, namespace).await? {
        return Ok(Verdict::Undo(TakeOutcome::Frozen));
    }
    let taken = sealed(connection, command).await?;
    if taken.is_empty() {
        return Ok(Verdict::Undo(TakeOutcome::Empty));
    }
    if taken.len() > *most {
        return Ok(Verdict::Undo(TakeOutcome::TooLarge));
    }
    if let Some(new) = activation
        && !begin(connection, command, new, taken.len()).await?
    {
        return Ok(Verdict::Undo(TakeOutcome::TooManyLive));
    }
    audit::record(connection, entry).await?;
    Ok(Verdict::Recorded(TakeOutcome::Taken(taken)))
}

type SealedRow =
    (Read<CredentialId>, Read<CredentialType>, i64, Read<KeyId>, Vec<u8>, Option<Vec<u8>>, Option<Vec<u8>>);

/// The credentials of the namespace, oldest first; of too many, one more than there may be.
async fn sealed(connection: &mut Connection, command: &TakeCredentials) -> Result<Vec<TakenCredential>, Failure> {
    // Joined from the left: a credential whose data is missing is damage, and not one less.
    let oldest_first = credentials::table
        .left_join(
            credential_secrets::table.on(credential_secrets::organization_id
                .eq(credentials::organization_id)
                .and(credential_secrets::id.eq(credentials::id))),
        )
        .filter(credentials::organization_id.eq(command.principal.organization.text()))
        .filter(narrow!(credentials::namespace.eq(command.namespace.as_str())))
        .order(credentials::id)
        .select((
            credentials::id,
            credentials::kind,
            credentials::version,
            credentials::key_id,
            credentials::information,
            credential_secrets::data_key.nullable(),
            credential_secrets::data.nullable(),
        ));
    let rows: Vec<SealedRow> = load_page!(oldest_first, connection, command.most.saturating_add(1)).await?;
    rows.into_iter().map(decode).collect()
}

fn decode((id, kind, version, key, information, data_key, data): SealedRow) -> Result<TakenCredential, Failure> {
    const TABLE: &str = "credentials";
    let id = id.sound(TABLE, &"unknown", "id")?;
    let missing = || Failure::damaged("credential_secrets", id.to_string(), "missing");
    Ok(TakenCredential {
        id,
        kind: kind.sound(TABLE, &id, "type")?,
        version,
        sealed: SealedCredential {
            key: key.sound(TABLE, &id, "key_id")?,
            data_key: Blob::from_bytes(data_key.ok_or_else(missing)?),
            data: Blob::from_bytes(data.ok_or_else(missing)?),
            information: Blob::from_bytes(information),
        },
    })
}

/// Stores the activation. `false`: the integration, whose row is taken, has as many live ones as it may.
async fn begin(
    connection: &mut Connection,
    command: &TakeCredentials,
    new: &NewActivation,
    taken: usize,
) -> Result<bool, Failure> {
    let TakeCredentials { principal, namespace, now, .. } = command;
    let live: i64 = live_of!(principal, now).count().get_result(connection).await?;
    if live >= new.limit {
        return Ok(false);
    }
    diesel::insert_into(activations::table)
        .values((
            activations::organization_id.eq(principal.organization.text()),
            activations::id.eq(new.id.text()),
            activations::integration_id.eq(principal.integration.text()),
            activations::namespace.eq(namespace.as_str()),
            activations::vend.eq(new.vend.as_str()),
            activations::credentials.eq(i64::try_from(taken).unwrap_or(i64::MAX)),
            activations::begun_at.eq(now.as_millis()),
            activations::expires_at.eq(new.expires_at.as_millis()),
        ))
        .execute(connection)
        .await?;
    Ok(true)
}
