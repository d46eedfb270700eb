//! Events of the instance that no audit entry contains.

use super::Receivers;
use crate::error::Error;
use crate::receiver::{EventKind, Occurrence};

impl Receivers {
    /// Queues an event for the receivers of the instance, optionally about `name`. Returns the number of receivers.
    ///
    /// # Errors
    /// The store failed.
    pub async fn raise(&self, kind: EventKind, name: Option<&str>) -> Result<usize, Error> {
        self.digester.refresh().await?;
        let now = self.environment.now();
        let occurrence = Occurrence::of_instance(kind, name, now, &*self.digester);
        let mut deliveries = Vec::new();
        for stored in self.store.all_receivers().await?.into_iter().filter_map(|(_, stored)| stored) {
            let receiver = &stored.receiver;
            if receiver.organization.is_none() && receiver.wants(kind) && stored.mac_is_valid(&*self.digester) {
                deliveries.push(occurrence.to_delivery(receiver, super::position(now), now, &*self.digester));
            }
        }
        let count = deliveries.len();
        if count > 0 {
            self.store.add_deliveries(deliveries).await?;
        }
        Ok(count)
    }
}
