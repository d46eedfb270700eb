//! The last transaction of an activation, after all waiting: issuing the credentials.

use super::super::Transaction;
use super::super::audit::AuditRecorder;
use super::active::remove;
use super::authorize::{authorize_and_share, is_frozen, own_activation};
use crate::db::{Share, Tx, Update, locked};
use crate::failure::Failure;
use crate::schema::{activations, credential_uses, credentials};
use crate::stored::{Column, StoredId as _};
use diesel::{ExpressionMethods as _, QueryDsl as _};
use futures_util::try_join;
use vault_core::activation::{IssuanceFacts, IssuanceRefusal, Purpose, VendRule, check_issuance};
use vault_core::id::CredentialId;
use vault_core::port::{ForIntegration, IssueCredentials};

impl Transaction for ForIntegration<IssueCredentials> {
    /// Why the credentials are not issued, which is recorded.
    type Outcome = Option<IssuanceRefusal>;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<Option<IssuanceRefusal>, Failure> {
        let IssueCredentials { activation, renewal, expires_at, namespace, credentials: wanted, purpose, refused } =
            &self.payload;
        let (organization, integration) = (self.principal.organization.stored(), self.principal.integration.stored());
        let authorized = authorize_and_share(tx, &self.principal, *activation, self.now).await?.map(drop);
        let stands = !renewal || lock_active(tx, self).await?;
        let started = own_activation(organization, integration, activation.stored()).select(activations::started_at);
        let frozen = is_frozen(tx, organization, namespace);
        let ids: Vec<_> = wanted.iter().map(|one| one.credential.stored()).collect();
        // By id, like every transaction that locks several. Deletions and replacements run before or after this one.
        let current = credentials::table
            .filter(credentials::organization_id.eq(organization))
            .filter(credentials::id.eq_any(ids))
            .filter(credentials::namespace.eq(namespace.as_str()))
            .order(credentials::id)
            .select((credentials::id, credentials::version, credentials::vend));
        let (started, frozen, current): (Option<i64>, bool, Vec<CurrentRow>) =
            try_join!(tx.first(started), frozen, tx.load(locked(current, Share)))?;
        let current: Vec<_> = current.into_iter().map(decode).collect::<Result<_, Failure>>()?;
        let facts = IssuanceFacts {
            integration: authorized,
            frozen,
            started: stands && started.is_some(),
            expires_at: *expires_at,
            current: &current,
        };
        if let Err(refusal) = check_issuance(&facts, wanted, self.now) {
            if !*renewal {
                remove(tx, self.principal.organization, *activation).await?;
            }
            audit.record(tx, refused).await?;
            return Ok(Some(refusal));
        }
        if *renewal {
            let row = diesel::update(own_activation(organization, integration, activation.stored())).set((
                activations::expires_at.eq(expires_at.as_millis()),
                activations::credentials.eq(i64::try_from(wanted.len()).unwrap_or(i64::MAX)),
            ));
            tx.execute(row).await?;
        }
        // The start of the activation, so that a renewal finds the row of the first issuance.
        let at = started.unwrap_or(self.now.as_millis());
        let uses = wanted.iter().map(|one| {
            let issued = (
                credential_uses::version.eq(one.version),
                credential_uses::form.eq(one.form.as_str()),
                credential_uses::expires_at.eq(expires_at.as_millis()),
            );
            diesel::insert_into(credential_uses::table)
                .values((
                    issued,
                    credential_uses::organization_id.eq(organization),
                    credential_uses::id.eq(one.credential.stored()),
                    credential_uses::at.eq(at),
                    credential_uses::activation_id.eq(activation.stored()),
                    credential_uses::integration_id.eq(integration),
                    credential_uses::purpose.eq(purpose.as_ref().map(Purpose::as_str)),
                    credential_uses::workload.eq(self.principal.subject()),
                ))
                .on_conflict((
                    credential_uses::organization_id,
                    credential_uses::id,
                    credential_uses::at,
                    credential_uses::activation_id,
                ))
                .do_update()
                .set(issued)
        });
        try_join!(tx.execute_each(uses), audit.record(tx, &self.audit))?;
        Ok(None)
    }
}

/// Locks the activation that is to be renewed. Returns whether it is active.
async fn lock_active(tx: &Tx<'_>, command: &ForIntegration<IssueCredentials>) -> Result<bool, Failure> {
    let principal = &command.principal;
    let (organization, integration) = (principal.organization.stored(), principal.integration.stored());
    let active = own_activation(organization, integration, command.payload.activation.stored())
        .filter(activations::expires_at.gt(command.now.as_millis()))
        .select(activations::started_at);
    Ok(tx.first::<i64, _>(locked(active, Update)).await?.is_some())
}

/// A credential's id, version and rule.
type CurrentRow = (Column<CredentialId>, i64, Column<VendRule>);

fn decode((id, version, vend): CurrentRow) -> Result<(CredentialId, i64, VendRule), Failure> {
    let id = id.decode("credentials", &"unknown", "id")?;
    Ok((id, version, vend.decode("credentials", &id, "vend")?))
}
