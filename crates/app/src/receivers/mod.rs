//! Background delivery of notifications to receivers, in every process except those with the role `api`.

mod carrier;
mod raised;

pub(crate) use carrier::Carrier;
pub(crate) use raised::{Alarm, Alarms};

use crate::background::{Background, Stopped};
use crate::settings::{Role, Settings};
use std::collections::HashSet;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use uuid::Uuid;
use vault_cli::failure::Failure;
use vault_core::port::EventCarrier;
use vault_core::receiver::{ReceiverKey, ReceiverOwner};
use vault_core::usecase::Notifier;
use vault_embed::OpenVault;

/// Interval of reading events and searching for due deliveries.
const EVERY: Duration = Duration::from_secs(1);
/// Pause after a failure of the database.
const AFTER_FAILURE: Duration = Duration::from_secs(10);
/// Interval of removing old deliveries.
const REMOVE_EVERY: Duration = Duration::from_secs(3_600);
/// Maximum number of concurrent deliveries. A receiver that hangs occupies one of them.
const AT_ONCE: usize = 64;

/// Metric: number of deliveries that receivers accepted.
pub(crate) const DELIVERED: &str = "orgvault_event_deliveries_total";

/// Starts delivery, unless the role is `api`: only processes with the activation listener may have access to other
/// networks.
///
/// # Errors
/// A setting cannot be used.
pub(crate) fn start(
    settings: &Settings,
    vault: &OpenVault,
    carrier: &Arc<Carrier>,
) -> Result<Option<Background>, Failure> {
    if settings.server.role == Role::Api {
        return Ok(None);
    }
    let notifier = vault.notifier(Arc::clone(carrier) as Arc<dyn EventCarrier>);
    // An embedded database has only one server. A fixed holder lets it continue after a crash without waiting for the
    // lease.
    let replicas = settings.database.file().is_none();
    let holder = if replicas { vault.ports().environment.ids.random() } else { *vault.instance().as_uuid() };
    Ok(Some(Background::start(move |stopped| work(notifier, holder, stopped))))
}

type DeliveryResult = (ReceiverKey, Result<usize, vault_core::Error>);

async fn work(notifier: Notifier, holder: Uuid, mut stopped: Stopped) {
    let mut under_way: HashSet<ReceiverKey> = HashSet::new();
    let mut telling: JoinSet<DeliveryResult> = JoinSet::new();
    let mut remove = tokio::time::interval(REMOVE_EVERY);
    let mut wait = EVERY;
    loop {
        tokio::select! {
            _ = &mut stopped => break,
            Some(reported) = telling.join_next() => {
                // The panic was reported, but not the receiver. Clear all, so that no receiver stays blocked.
                match reported {
                    Ok((receiver, reported)) => {
                        under_way.remove(&receiver);
                        note(&reported);
                    }
                    Err(_) => under_way.clear(),
                }
                continue;
            }
            _ = remove.tick() => {
                if let Err(error) = notifier.remove_old().await {
                    warn(&error, "old deliveries were not removed");
                }
            }
            () = tokio::time::sleep(wait) => {}
        }
        wait = match round(&notifier, holder, &mut under_way, &mut telling).await {
            Ok(true) => Duration::ZERO,
            Ok(false) => EVERY,
            Err(error) => {
                warn(&error, "events were not read; the next attempt is in seconds");
                AFTER_FAILURE
            }
        };
    }
    telling.shutdown().await;
    if let Err(error) = notifier.end(holder).await {
        warn(&error, "another replica notifies receivers after a minute");
    }
}

/// Reads events and starts deliveries to receivers with due events. Returns whether more events can be read.
async fn round(
    notifier: &Notifier,
    holder: Uuid,
    under_way: &mut HashSet<ReceiverKey>,
    telling: &mut JoinSet<DeliveryResult>,
) -> Result<bool, vault_core::Error> {
    let Some(read) = notifier.read_events(holder).await? else { return Ok(false) };
    for receiver in notifier.due().await? {
        if has_slot(under_way, receiver.owner) && under_way.insert(receiver) {
            let notifier = notifier.clone();
            telling.spawn(async move { (receiver, notifier.deliver(receiver).await) });
        }
    }
    Ok(read.more)
}

/// Returns whether another delivery to a receiver of this owner may start.
///
/// An owner that has more slots than are free gets no further one, so that slow receivers of a few organizations cannot
/// occupy all.
fn has_slot(under_way: &HashSet<ReceiverKey>, owner: ReceiverOwner) -> bool {
    let of_owner = under_way.iter().filter(|other| other.owner == owner).count();
    of_owner < AT_ONCE.saturating_sub(under_way.len())
}

fn note(reported: &Result<usize, vault_core::Error>) {
    match reported {
        Ok(count) => {
            metrics::counter!(DELIVERED).increment(u64::try_from(*count).unwrap_or_default());
        }
        Err(error) => warn(error, "a delivery to a receiver failed; the next attempt is in seconds"),
    }
}

fn warn(error: &vault_core::Error, what: &str) {
    tracing::warn!(error = error as &dyn Error, "{what}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use vault_core::id::{OrganizationId, ReceiverId};

    #[test]
    fn slow_receivers_of_one_organization_leave_slots_for_others() {
        let mut under_way = HashSet::new();
        let mut start = |organization: u8, count: u8| {
            let owner = Some(OrganizationId::from_bytes([organization; 16]));
            let started = (0..count).filter(|receiver| {
                has_slot(&under_way, owner)
                    && under_way.insert(ReceiverKey { owner, id: ReceiverId::from_bytes([*receiver; 16]) })
            });
            started.count()
        };
        assert_eq!(start(1, 200), AT_ONCE / 2);
        assert_eq!(start(2, 200), AT_ONCE / 4);
        for organization in 3..6 {
            assert!(start(organization, 200) > 0, "{organization}");
        }
    }
}
