//! Opens the information of credentials.

use crate::context::Context;
use crate::error::{damaged, does_not_open, unknown_key};
use crate::organization_keys::{DerivedKeys, OrganizationKeyring};
use async_trait::async_trait;
use std::sync::Arc;
use vault_core::credential::{Information, Metadata};
use vault_core::field::Invalid;
use vault_core::id::{InstanceId, OrganizationId};
use vault_core::port::{CredentialContext, InformationOpener, SealError, SealedInformation};
use vault_core::sealed::Blob;

/// Opens the information of credentials; cannot open their data.
pub(super) struct ListOpener {
    keys: Arc<OrganizationKeyring>,
}

impl ListOpener {
    pub(super) fn new(keys: Arc<OrganizationKeyring>) -> Self {
        Self { keys }
    }
}

#[async_trait]
impl InformationOpener for ListOpener {
    async fn open_information<'a>(
        &self,
        organization: OrganizationId,
        rows: &[SealedInformation<'a>],
    ) -> Result<Vec<Result<Information, SealError>>, SealError> {
        self.open(organization, rows, Context::information, Information::from_authenticated).await
    }

    async fn open_metadata<'a>(
        &self,
        organization: OrganizationId,
        rows: &[SealedInformation<'a>],
    ) -> Result<Vec<Result<Metadata, SealError>>, SealError> {
        self.open(organization, rows, Context::metadata, |text| Metadata::from_json(&text)).await
    }
}

impl ListOpener {
    /// Opens rows sealed under organizations' information keys, bound to `context`, and parses each with `parse`.
    async fn open<T: Send>(
        &self,
        organization: OrganizationId,
        rows: &[SealedInformation<'_>],
        context: fn(InstanceId, CredentialContext) -> Context,
        parse: fn(String) -> Result<T, Invalid>,
    ) -> Result<Vec<Result<T, SealError>>, SealError> {
        let instance = self.keys.instance();
        let mut opened = Vec::with_capacity(rows.len());
        let mut current: Option<Arc<DerivedKeys>> = None;
        for row in rows {
            let context = context(instance, row.context);
            if row.context.organization != organization {
                opened.push(Err(damaged(&context, "belongs to another organization")));
                continue;
            }
            // Consecutive rows mostly name the same key.
            let key = match current.take_if(|key| key.id() == row.key) {
                Some(key) => key,
                None => match self.keys.key(organization, row.key).await? {
                    Some(key) => key,
                    None => {
                        opened.push(Err(unknown_key(&context, row.key)));
                        continue;
                    }
                },
            };
            opened.push(
                open(&context, &key, row.blob)
                    .and_then(|text| parse(text).map_err(|_| damaged(&context, "sealed for another purpose"))),
            );
            current = Some(key);
        }
        Ok(opened)
    }
}

fn open(context: &Context, key: &DerivedKeys, blob: &Blob) -> Result<String, SealError> {
    let mut bytes = key.information.open(context, blob).map_err(|error| does_not_open(context, error))?;
    // The information shown in a list is not secret, so it may leave the wiped buffer.
    String::from_utf8(std::mem::take(&mut *bytes)).map_err(|_| damaged(context, "not text"))
}
