//! Opening the information of credentials.

use crate::context::Context;
use crate::error::{damaged, does_not_open};
use crate::organization_keys::{DerivedKeys, OrganizationKeyring};
use async_trait::async_trait;
use std::sync::Arc;
use vault_core::credential::Information;
use vault_core::id::{InstanceId, OrganizationId};
use vault_core::port::{InformationOpener, SealError, SealedInformation};

/// Opens the information of credentials. Cannot open their data.
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
        let instance = self.keys.instance();
        let mut opened = Vec::with_capacity(rows.len());
        let mut current: Option<Arc<DerivedKeys>> = None;
        for row in rows {
            let context = Context::information(instance, row.context);
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
                        opened.push(Err(damaged(&context, "sealed under an unknown key")));
                        continue;
                    }
                },
            };
            opened.push(open(instance, &key, row));
            current = Some(key);
        }
        Ok(opened)
    }
}

fn open(instance: InstanceId, key: &DerivedKeys, row: &SealedInformation<'_>) -> Result<Information, SealError> {
    let context = Context::information(instance, row.context);
    let mut bytes = key.information.open(&context, row.blob).map_err(|error| does_not_open(&context, error))?;
    // Information is not secret, so it may leave the wiped buffer.
    let text = String::from_utf8(std::mem::take(&mut *bytes)).map_err(|_| damaged(&context, "not text"))?;
    Information::from_plaintext(text).map_err(|_| damaged(&context, "not a JSON object"))
}
