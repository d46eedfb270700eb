//! Connections to the node that holds an organization's rows, where tables are spread over machines. That node carries a
//! statement out by itself and keeps its plan. Every other node plans it, sends it there and has it planned once more, for
//! several times the processor time. All of them give the same answers, so what is known here may be out of date, and whatever
//! stands in the way, the server of the database's address is asked instead.

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

/// How long making a connection to a node may take. Whoever waited still has time to ask elsewhere.
const NODE_WAIT: Duration = Duration::from_millis(500);
/// How long the place of an organization is believed: its rows may be moved.
const BELIEVED: Duration = Duration::from_secs(60);
/// How long a node is left alone that could not be reached.
const AVOIDED: Duration = Duration::from_secs(10);
/// The most organizations whose places are kept.
const MOST_PLACES: usize = 100_000;

const PLACE: &str = "SELECT nodename AS host, nodeport AS port, groupid = (SELECT groupid FROM pg_dist_local_group) AS is_here \
    FROM pg_dist_placement JOIN pg_dist_node USING (groupid) WHERE noderole = 'primary' \
    AND shardid = get_shard_id_for_distribution_column('organizations', $1)";

/// The nodes, by what is known of them.
pub(super) struct Nodes {
    connector: Connector,
    /// The most connections to one of them.
    size: u32,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    places: HashMap<OrganizationId, Place>,
    pools: HashMap<Address, Pool<Connector>>,
    /// Since when nodes are left alone.
    avoided: HashMap<Address, Instant>,
}

/// Where a node is reached.
type Address = (String, u16);

#[derive(Clone)]
struct Place {
    /// `None`: at the server of the database's address.
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
    /// Nothing is known yet. `connector` is that of the database's address.
    pub(super) fn new(connector: Connector, size: u32) -> Self {
        Self { connector, size, known: Mutex::default() }
    }

    /// How many connections nobody uses.
    pub(super) fn idle(&self) -> usize {
        let idle = |pool: &Pool<Connector>| usize::try_from(pool.state().idle_connections).unwrap_or_default();
        self.known().pools.values().map(idle).sum()
    }

    /// A connection to the node that holds the organization's rows. `None`: the server of the database's address, which
    /// `base` connects to, is to be asked.
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
            // What was known before is better than nothing, and asking again for each request would hold all of them up.
            Err(()) => known.and_then(|place| place.node),
        };
        let mut known = self.known();
        if known.places.len() >= MOST_PLACES {
            known.places.clear();
        }
        known.places.insert(organization, Place { node: node.clone(), since: Instant::now() });
        node
    }

    /// The pool of a node that is not left alone.
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

/// Asks where an organization's rows lie.
async fn ask(organization: OrganizationId, base: &Pool<Connector>) -> Result<Option<Address>, ()> {
    let mut pooled = base.get().await.map_err(drop)?;
    // Until it has answered: a caller who goes away must leave no connection half-used.
    pooled.lost = true;
    let place = sql_query(PLACE).bind::<Id, _>(organization.stored()).get_result(&mut pooled.connection).await;
    let place: Option<PlaceRow> = place.optional().map_err(drop)?;
    pooled.lost = false;
    Ok(place.filter(|place| !place.is_here).and_then(|place| Some((place.host, u16::try_from(place.port).ok()?))))
}
