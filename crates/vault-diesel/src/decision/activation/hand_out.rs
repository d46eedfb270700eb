//! The last decision of an activation, after all waiting.

use super::super::backend::{Connection, RunQuery, execute_each, for_share, for_update, pipeline};
use super::super::integration::freezes::frozen_since;
use super::super::{Decided, Decision, Verdict, audit};
use super::activations::remove;
use super::activator::{judge_and_share, own_activation};
use crate::failure::Failure;
use crate::schema::{activations, credential_uses, credentials};
use crate::stored::{Column, StoredId as _};
use crate::update::update;
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
use vault_core::activation::{HandOutFacts, HandOutRefusal, Purpose, VendRule, judge_hand_out};
use vault_core::id::CredentialId;
use vault_core::integration::{IntegrationPrincipal, IntegrationRefusal};
use vault_core::port::{ForIntegration, HandOut};

impl Decision<IntegrationPrincipal> for HandOut {
    /// A refusal is recorded, and so decided below.
    type Held = Result<(), IntegrationRefusal>;
    type Outcome = Option<HandOutRefusal>;

    async fn authorize(
        connection: &mut Connection,
        command: &ForIntegration<Self>,
    ) -> Result<Result<(), IntegrationRefusal>, Failure> {
        Ok(judge_and_share(connection, &command.principal, command.act.activation, command.now).await?.map(drop))
    }

    async fn act(
        connection: &mut Connection,
        command: &ForIntegration<Self>,
        integration: Result<(), IntegrationRefusal>,
    ) -> Decided<Option<HandOutRefusal>> {
        let HandOut { activation, renewal, expires_at, namespace, credentials, purpose, refused } = &command.act;
        let organization = command.principal.organization;
        let stands = !renewal || take_live(connection, command).await?;
        let begun = own_activation!(command.principal, activation).select(activations::begun_at);
        let wanted: Vec<_> = credentials.iter().map(|one| one.credential.stored()).collect();
        // By id, as all take them who take several. Whoever deletes or replaces one comes before or after.
        let current = for_share!(
            credentials::table
                .filter(credentials::organization_id.eq(organization.stored()))
                .filter(credentials::id.eq_any(wanted))
                .filter(credentials::namespace.eq(namespace.as_str()))
                .order(credentials::id)
                .select((credentials::id, credentials::version, credentials::vend))
        );
        let (begun, frozen, current): (Option<i64>, Option<i64>, Vec<CurrentRow>) = pipeline!(
            connection,
            |own| begun.get_result(own).await.optional(),
            |own| frozen_since!(organization, namespace).get_result(own).await.optional(),
            |own| current.load(own).await
        )?;
        let current: Vec<_> = current.into_iter().map(decode).collect::<Result<_, Failure>>()?;
        let facts = HandOutFacts {
            integration,
            frozen: frozen.is_some(),
            begun: stands && begun.is_some(),
            expires_at: *expires_at,
            current: &current,
        };
        match judge_hand_out(&facts, credentials, command.now) {
            Ok(()) => {
                let uses = credentials.iter().map(|one| {
                    diesel::insert_into(credential_uses::table)
                        .values((
                            credential_uses::organization_id.eq(organization.stored()),
                            credential_uses::id.eq(one.credential.stored()),
                            credential_uses::at.eq(command.now.as_millis()),
                            credential_uses::activation_id.eq(activation.stored()),
                            credential_uses::integration_id.eq(command.principal.integration.stored()),
                            credential_uses::form.eq(one.form.as_str()),
                            credential_uses::purpose.eq(purpose.as_ref().map(Purpose::as_str)),
                            credential_uses::workload.eq(command.principal.subject()),
                        ))
                        .on_conflict_do_nothing()
                });
                if *renewal {
                    update(own_activation!(command.principal, activation))
                        .set((
                            activations::expires_at.eq(expires_at.as_millis()),
                            activations::credentials.eq(i64::try_from(credentials.len()).unwrap_or(i64::MAX)),
                        ))
                        .execute(connection)
                        .await?;
                }
                let entry = diesel::insert_into(crate::schema::audit::table)
                    .values(crate::new_row::NewEntry::of(&command.audit));
                let _: (Vec<usize>, usize) =
                    pipeline!(connection, |own| execute_each!(own, uses), |own| entry.execute(own).await)?;
                Ok(Verdict::Recorded(None))
            }
            Err(refusal) => {
                if !*renewal {
                    remove(connection, organization, *activation).await?;
                }
                audit::record(connection, refused).await?;
                Ok(Verdict::RefusedOnRecord(Some(refusal)))
            }
        }
    }
}

/// Takes the row of the activation that is to be renewed, if it lives: whoever ends or renews it comes before or after.
async fn take_live(connection: &mut Connection, command: &ForIntegration<HandOut>) -> Result<bool, Failure> {
    let live = own_activation!(command.principal, command.act.activation)
        .filter(activations::expires_at.gt(command.now.as_millis()))
        .select(activations::begun_at);
    let taken: Option<i64> = for_update!(live).get_result(connection).await.optional()?;
    Ok(taken.is_some())
}

/// A credential's id, version and rule.
type CurrentRow = (Column<CredentialId>, i64, Column<VendRule>);

fn decode((id, version, vend): CurrentRow) -> Result<(CredentialId, i64, VendRule), Failure> {
    let id = id.decode("credentials", &"unknown", "id")?;
    Ok((id, version, vend.decode("credentials", &id, "vend")?))
}
