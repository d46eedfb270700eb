//! Opens the cards of credentials.

use crate::blob::{self, OpenError};
use crate::context::Context;
use crate::error::{damaged, does_not_open, unknown_key};
use crate::organization_keys::{DerivedKeys, OrganizationKeyring};
use async_trait::async_trait;
use std::sync::Arc;
use vault_core::credential::Card;
use vault_core::id::OrganizationId;
use vault_core::port::{CardContext, CardOpener, SealError};
use vault_core::sealed::Blob;

/// Opens the cards of credentials; cannot open their data.
pub(super) struct ListOpener {
    keys: Arc<OrganizationKeyring>,
}

impl ListOpener {
    pub(super) const fn new(keys: Arc<OrganizationKeyring>) -> Self {
        Self { keys }
    }
}

#[async_trait]
impl CardOpener for ListOpener {
    async fn open_cards<'a>(
        &self,
        organization: OrganizationId,
        cards: &[(CardContext, &'a Blob)],
    ) -> Result<Vec<Result<Card, SealError>>, SealError> {
        let instance = self.keys.instance();
        let mut opened = Vec::with_capacity(cards.len());
        let mut current: Option<Arc<DerivedKeys>> = None;
        for (place, sealed) in cards {
            let context = Context::card(instance, *place);
            if place.organization != organization {
                opened.push(Err(damaged(&context, "belongs to another organization")));
                continue;
            }
            let Some(id) = blob::sealing_key(sealed) else {
                opened.push(Err(does_not_open(&context, OpenError::Truncated)));
                continue;
            };
            // Consecutive rows mostly name the same key.
            let key = match current.take_if(|key| key.id() == id) {
                Some(key) => key,
                None => match self.keys.key(organization, id).await? {
                    Some(key) => key,
                    None => {
                        opened.push(Err(unknown_key(&context, id)));
                        continue;
                    }
                },
            };
            opened.push(open(&context, &key, sealed));
            current = Some(key);
        }
        Ok(opened)
    }
}

pub(super) fn open(context: &Context, key: &DerivedKeys, sealed: &Blob) -> Result<Card, SealError> {
    let document = key.card.open(context, sealed).map_err(|error| does_not_open(context, error))?;
    Card::from_bytes(&document).map_err(|_| damaged(context, "sealed for another purpose"))
}
