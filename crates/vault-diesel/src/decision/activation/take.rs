//! The first decision of an activation or a check: taking the credentials of a namespace, to open them.

use super::super::backend::{Connection, RunQuery, load_page, narrow, pipeline};
use super::super::credential::row::{StateColumns, state_columns};
use super::super::integration::freezes::frozen_since;
use super::super::integration::row::row_of;
use super::super::{Answer, Decided, Decision, Verdict, execute_pipelined};
use super::activations::live_of;
use super::activator::judge_and_take;
use crate::failure::Failure;
use crate::schema::{activations, credential_secrets, credentials, integrations};
use crate::stored::{Column, StoredId as _};
use crate::update::update;
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, JoinOnDsl as _, NullableExpressionMethods as _,
    OptionalExtension as _, QueryDsl as _,
};
use vault_core::activation::{TakingFacts, judge_taking};
use vault_core::credential::CredentialType;
use vault_core::id::{CredentialId, KeyId};
use vault_core::integration::{IntegrationPrincipal, TokenSlot};
use vault_core::port::{ForIntegration, TakeCredentials, TakenCredential};
use vault_core::principal::Denial;
use vault_core::sealed::{Blob, SealedCredential};
use vault_core::time::Timestamp;

/// The credentials of the namespace, oldest first. Joined from the left: a credential whose data is missing is damage,
/// and not one less.
macro_rules! oldest_first {
    ($principal:expr, $namespace:expr) => {
        credentials::table
            .left_join(
                credential_secrets::table.on(credential_secrets::organization_id
                    .eq(credentials::organization_id)
                    .and(credential_secrets::id.eq(credentials::id))),
            )
            .filter(credentials::organization_id.eq($principal.organization.stored()))
            .filter(narrow!(credentials::namespace.eq($namespace.as_str())))
            .order(credentials::id)
            .select((
                credentials::id,
                credentials::kind,
                credentials::version,
                (
                    credentials::key_id,
                    credentials::information,
                    credential_secrets::data_key.nullable(),
                    credential_secrets::data.nullable(),
                ),
                state_columns!(),
                credentials::last_activated_at,
            ))
    };
}

type SealedRow = (Column<CredentialId>, Column<CredentialType>, i64, SealedColumns, StateColumns, Option<i64>);
type SealedColumns = (Column<KeyId>, Vec<u8>, Option<Vec<u8>>, Option<Vec<u8>>);

impl Decision<IntegrationPrincipal> for TakeCredentials {
    /// When the integration's current token was last used.
    type Held = Option<i64>;
    type Outcome = Answer<Vec<TakenCredential>>;

    async fn authorize(connection: &mut Connection, command: &ForIntegration<Self>) -> Result<Option<i64>, Failure> {
        let judgement = judge_and_take(connection, &command.principal, command.now).await?;
        Ok(judgement.map_err(Denial::Integration)?)
    }

    async fn act(
        connection: &mut Connection,
        command: &ForIntegration<Self>,
        last_used_at: Option<i64>,
    ) -> Decided<Answer<Vec<TakenCredential>>> {
        let TakeCredentials { namespace, activation, most } = &command.act;
        let (principal, now) = (&command.principal, command.now);
        // Of too many credentials, one more than there may be is read.
        let (frozen, sealed, live): (Option<i64>, Vec<SealedRow>, Option<(i64, i64)>) = pipeline!(
            connection,
            |own| frozen_since!(principal.organization, namespace).get_result(own).await.optional(),
            |own| load_page!(oldest_first!(principal, namespace), own, most.saturating_add(1)).await,
            |own| match activation {
                Some(new) => live_of!(principal, now).count().get_result(own).await.map(|live| Some((live, new.limit))),
                None => Ok(None),
            }
        )?;
        let facts = TakingFacts { frozen: frozen.is_some(), credentials: sealed.len(), live };
        if let Err(refusal) = judge_taking(facts, *most) {
            return Ok(Verdict::Refused(Err(refusal)));
        }
        let taken = sealed.into_iter().map(decode).collect::<Result<Vec<_>, Failure>>()?;
        note_use(connection, principal, last_used_at, now).await?;
        match activation {
            Some(new) => {
                let activation = diesel::insert_into(activations::table).values((
                    activations::organization_id.eq(principal.organization.stored()),
                    activations::id.eq(new.id.stored()),
                    activations::integration_id.eq(principal.integration.stored()),
                    activations::namespace.eq(namespace.as_str()),
                    activations::vend.eq(new.vend.as_str()),
                    activations::credentials.eq(i64::try_from(taken.len()).unwrap_or(i64::MAX)),
                    activations::begun_at.eq(now.as_millis()),
                    activations::expires_at.eq(new.expires_at.as_millis()),
                ));
                execute_pipelined!(
                    connection,
                    activation,
                    diesel::insert_into(crate::schema::audit::table)
                        .values(crate::new_row::NewEntry::of(&command.audit))
                )?;
                Ok(Verdict::Recorded(Ok(taken)))
            }
            None => Ok(Verdict::Done(Ok(taken))),
        }
    }
}

fn decode((id, kind, version, sealed, state, last_activated_at): SealedRow) -> Result<TakenCredential, Failure> {
    const TABLE: &str = "credentials";
    let (key, information, data_key, data) = sealed;
    let (vend, staged, revision, metadata_revision, code) = state;
    let id = id.decode(TABLE, &"unknown", "id")?;
    let missing = || Failure::damaged("credential_secrets", id.to_string(), "missing");
    Ok(TakenCredential {
        id,
        kind: kind.decode(TABLE, &id, "type")?,
        version,
        sealed: SealedCredential {
            key: key.decode(TABLE, &id, "key_id")?,
            data_key: Blob::from_bytes(data_key.ok_or_else(missing)?),
            data: Blob::from_bytes(data.ok_or_else(missing)?),
            information: Blob::from_bytes(information),
        },
        vend: vend.decode(TABLE, &id, "vend")?,
        current: version,
        staged,
        revision,
        metadata_revision,
        code: code.decode(TABLE, &id, "code")?,
        last_activated_at: last_activated_at.map(Timestamp::from_millis),
    })
}

/// Notes that the integration's current token was used, if that was not noted in this minute. The row is taken.
async fn note_use(
    connection: &mut Connection,
    principal: &IntegrationPrincipal,
    last_used_at: Option<i64>,
    now: Timestamp,
) -> Result<(), Failure> {
    let minute = now.floor_to_minute().as_millis();
    if principal.slot == TokenSlot::Current && last_used_at.is_none_or(|last| last < minute) {
        update(row_of!(principal.organization, principal.integration))
            .set(integrations::last_used_at.eq(minute))
            .execute(connection)
            .await?;
    }
    Ok(())
}
