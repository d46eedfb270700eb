//! Activate a namespace: its credentials, opened for an integration for a while, in the form that it asks for.

use super::open_namespace::{Opened, Opening};
use super::together::{AT_ONCE, Pending, together};
use super::{OpenNamespace, OpenNamespaceError};
use crate::activation::{
    Activated, ActivatedCredential, ActivationTtl, Purpose, VendMode, VendReason, Vended, allows_short,
};
use crate::credential::CredentialData;
use crate::id::{ActivationId, CredentialId};
use crate::integration::IntegrationPrincipal;
use crate::namespace::Namespace;
use crate::port::{CredentialVendor, Event, NewActivation, ShortLived, StoreError, VendOrder};
use std::sync::Arc;

/// What an integration asks for.
#[derive(Clone, Debug)]
pub struct ActivationRequest {
    /// The namespace, given again.
    pub namespace: Namespace,
    /// What it is for.
    pub purpose: Option<Purpose>,
    /// For how long.
    pub ttl: ActivationTtl,
    /// In which form.
    pub vend: VendMode,
}

/// Why nothing was handed out.
#[derive(Debug, thiserror::Error)]
pub enum ActivateError {
    /// Nothing was opened.
    #[error(transparent)]
    Open(#[from] OpenNamespaceError),
    /// A credential is not to be had in the form asked for; so none was handed out.
    #[error("credential {credential} has no short-lived form: {reason}")]
    NotVended {
        /// Which.
        credential: CredentialId,
        /// Why.
        reason: VendReason,
    },
}

impl From<StoreError> for ActivateError {
    fn from(error: StoreError) -> Self {
        Self::Open(error.into())
    }
}

/// The ports of activating.
pub struct Activate {
    /// How many live activations an integration may have.
    pub live_limit: i64,
    /// Opens namespaces.
    pub open: OpenNamespace,
    /// Makes short-lived credentials, where something here does.
    pub vendor: Option<Arc<dyn CredentialVendor>>,
}

impl Activate {
    /// Activates a namespace. All of its credentials are handed out or none. No activation outlives its integration.
    ///
    /// # Errors
    /// See [`ActivateError`].
    pub async fn run(
        &self,
        principal: &IntegrationPrincipal,
        request: ActivationRequest,
    ) -> Result<Activated, ActivateError> {
        let now = self.open.ambient.now();
        let end = now.plus_seconds(request.ttl.as_seconds().into());
        let expires_at = principal.expires_at.map_or(end, |last| end.min(last));
        let id = ActivationId::from_uuid(self.open.ambient.ids.ordered(now));
        let activation = NewActivation { id, expires_at, vend: request.vend, limit: self.live_limit };
        let opening = Opening { namespace: request.namespace, purpose: request.purpose, activation: Some(activation) };
        let opened = self.open.run(principal, &opening).await?;
        let order = |credential| VendOrder { activation: id, credential, now, expires_at };
        let mut credentials = Vec::with_capacity(opened.len());
        let mut opened = opened.into_iter().peekable();
        while opened.peek().is_some() {
            let some = opened.by_ref().take(AT_ONCE);
            let vending: Vec<Pending<'_, _>> =
                some.map(|one| Box::pin(self.vend(one, order, request.vend)) as Pending<'_, _>).collect();
            for vended in together(vending).await {
                match vended {
                    Ok(credential) => credentials.push(credential),
                    Err((credential, reason)) => {
                        self.take_back(principal, &opening, id, credential).await?;
                        return Err(ActivateError::NotVended { credential, reason });
                    }
                }
            }
        }
        self.open.ambient.emit(Event::NamespaceActivated);
        Ok(Activated { id, namespace: opening.namespace, expires_at, credentials })
    }

    async fn vend(
        &self,
        opened: Opened,
        order: impl Fn(CredentialId) -> VendOrder,
        mode: VendMode,
    ) -> Result<ActivatedCredential, (CredentialId, VendReason)> {
        let Opened { id, version, data } = opened;
        let kind = data.kind();
        let vended = match mode {
            VendMode::Raw => Vended::Raw(data),
            VendMode::Short | VendMode::PreferShort => match self.short(&data, order(id)).await {
                Ok(ShortLived { data, expires_at }) => Vended::Short { data, expires_at },
                Err(reason) if mode == VendMode::PreferShort => {
                    self.open.ambient.emit(Event::ShortFormMissed(reason));
                    Vended::Raw(data)
                }
                Err(reason) => return Err((id, reason)),
            },
        };
        Ok(ActivatedCredential { id, kind, version, vended })
    }

    async fn short(&self, data: &CredentialData, order: VendOrder) -> Result<ShortLived, VendReason> {
        allows_short(data)?;
        let vendor = self.vendor.as_ref().ok_or(VendReason::NotConfigured)?;
        let short = vendor.vend(data, order).await?;
        let sound = short.data.kind() == data.kind() && short.expires_at > order.now;
        if sound { Ok(short) } else { Err(VendReason::Unexpected) }
    }

    /// Nothing will be handed out: what others were given for it is revoked, and the activation is none.
    async fn take_back(
        &self,
        principal: &IntegrationPrincipal,
        opening: &Opening,
        activation: ActivationId,
        failed: CredentialId,
    ) -> Result<(), StoreError> {
        if let Some(vendor) = &self.vendor {
            vendor.revoke(activation).await;
        }
        self.open.abort(principal, opening, failed).await
    }
}
