//! Connections to the node that stores the rows of an organization, for distributed tables.
//!
//! That node executes a statement locally and keeps its plan. Any other node plans the statement, sends it on and has
//! it planned again, for several times the processor time. Every node returns the same result, so a cached location may
//! be out of date. If a node cannot be used, the server of the configured address is.

use super::connect::Connector;
use super::pool::pool;
use crate::stored::{Id, StoredId as _};
use bb8::{Pool, PooledConnection};
use diesel::result::OptionalExtension as _;
use diesel::sql_types::{Bool, Integer, Text};
use diesel::{QueryableByName, sql_query};
use diesel_async::RunQueryDsl as _;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use vault_core::id::OrganizationId;

/// Time limit of connecting to a node. It leaves callers enough time to fall back to another node.
const NODE_WAIT: Duration = Duration::from_millis(500);
/// How long the location of an organization is cached. Its rows may be moved.
const BELIEVED: Duration = Duration::from_secs(60);
/// How long a node is skipped after a failed connection.
const AVOIDED: Duration = Duration::from_secs(10);
/// Maximum number of cached locations.
const MOST_PLACES: usize = 100_000;

const PLACE: &str = "SELECT nodename AS host, nodeport AS port, groupid = (SELECT groupid FROM pg_dist_local_group) AS is_here \
    FROM pg_dist_placement JOIN pg_dist_node USING (groupid) WHERE noderole = 'primary' \
    AND shardid = get_shard_id_for_distribution_column('organizations', $1)";

/// Cached locations and the connection pools of nodes.
pub(super) struct Nodes {
    connector: Connector,
    /// Maximum number of connections per node.
    size: u32,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    places: HashMap<OrganizationId, Place>,
    pools: HashMap<Address, Pool<Connector>>,
    /// When skipping of a node started.
    avoided: HashMap<Address, Instant>,
}

/// Host and port of a node.
type Address = (String, u16);

#[derive(Clone)]
struct Place {
    /// `None` for the server of the configured address.
    node: Option<Address>,
    since: Instant,
}

#[derive(QueryableByName)]
struct PlaceRow {
    #[diesel(sql_type = Text)]
    host: String,
    #[diesel(sql_type = Integer)]
    port: i32,
    #[diesel(sql_type = Bool)]
    is_here: bool,
}

impl Nodes {
    /// Creates an empty cache. `connector` is that of the configured address.
    pub(super) fn new(connector: Connector, size: u32) -> Self {
        Self { connector, size, known: Mutex::default() }
    }

    /// Returns the number of idle connections.
    pub(super) fn idle(&self) -> usize {
        let idle = |pool: &Pool<Connector>| usize::try_from(pool.state().idle_connections).unwrap_or_default();
        self.known().pools.values().map(idle).sum()
    }

    /// Returns a connection to the node that stores the rows of the organization. Returns `None` if the caller must use
    /// `base`, the pool of the configured address.
    pub(super) async fn connection(
        &self,
        organization: OrganizationId,
        base: &Pool<Connector>,
    ) -> Option<PooledConnection<'static, Connector>> {
        let address = self.place(organization, base).await?;
        let pool = self.pool(&address)?;
        match pool.get_owned().await {
            Ok(connection) => Some(connection),
            Err(error) => {
                let (host, port) = &address;
                tracing::warn!(host, port, error = %error, "a node of the database cannot be reached; trying another");
                self.known().avoided.insert(address, Instant::now());
                None
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn place(&self, organization: OrganizationId, base: &Pool<Connector>) -> Option<Address> {
        let known = self.known().places.get(&organization).cloned();
        if let Some(Place { node, since }) = &known
            && since.elapsed() < BELIEVED
        {
            return node.clone();
        }
        let node = match ask(organization, base).await {
            Ok(node) => node,
            // Keep the stale location: querying again for each request would stall all of them.
            Err(()) => known.and_then(|place| place.node),
        };
        let mut known = self.known();
        if known.places.len() >= MOST_PLACES {
            known.places.clear();
        }
        known.places.insert(organization, Place { node: node.clone(), since: Instant::now() });
        node
    }

    /// Returns the pool of a node, or `None` while the node is skipped.
    fn pool(&self, address: &Address) -> Option<Pool<Connector>> {
        let mut known = self.known();
        if known.avoided.get(address).is_some_and(|since| since.elapsed() < AVOIDED) {
            return None;
        }
        if let Some(pool) = known.pools.get(address) {
            return Some(pool.clone());
        }
        let connector = self.connector.to(&address.0, address.1).ok()?;
        let pool = pool(connector, self.size, NODE_WAIT);
        known.pools.insert(address.clone(), pool.clone());
        Some(pool)
    }
}

/// Queries the location of an organization's rows.
async fn ask(organization: OrganizationId, base: &Pool<Connector>) -> Result<Option<Address>, ()> {
    let mut pooled = base.get().await.map_err(drop)?;
    // Until the response: a cancelled caller must not return a half-used connection to the pool.
    pooled.lost = true;
    let place = sql_query(PLACE).bind::<Id, _>(organization.stored()).get_result(&mut pooled.connection).await;
    let place: Option<PlaceRow> = place.optional().map_err(drop)?;
    pooled.lost = false;
    Ok(place.filter(|place| !place.is_here).and_then(|place| Some((place.host, u16::try_from(place.port).ok()?))))
}
