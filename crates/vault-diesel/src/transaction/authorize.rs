//! Authorization: checks that the principal may perform an operation, first and inside the operation's transaction.

use crate::db::{Lock, Tx, Unlocked, locked};
use crate::failure::Failure;
use crate::schema::{accounts, lookups, organizations, sessions};
use crate::stored::{Column, IdBytes, StoredId as _};
use diesel::dsl::auto_type;
use diesel::result::QueryResult;
use diesel::{ExpressionMethods as _, QueryDsl as _};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, try_join};
use vault_core::account::{AccountState, ValidSessions};
use vault_core::entity::Index;
use vault_core::id::{OrganizationId, SessionId};
use vault_core::organization::OrganizationState;
use vault_core::principal::{Denial, Principal, SessionFacts, SessionPrincipal, check_session};
use vault_core::role::Role;
use vault_core::time::Timestamp;

/// The columns of an account that authorize its sessions.
type AccountColumns = (Column<Role>, Column<AccountState>, i64, Column<SessionId>);

/// The facts that authorize a session. A row that does not exist is `None`.
struct Facts {
    organization: Option<Column<OrganizationState>>,
    account: Option<AccountColumns>,
    expires_at: Option<i64>,
}

#[auto_type(no_type_alias)]
pub(crate) fn organization_of(id: IdBytes) -> _ {
    organizations::table.filter(organizations::id.eq(id))
}

/// The state of an organization: the value that leads to it.
#[auto_type(no_type_alias)]
pub(crate) fn state_of(organization: IdBytes) -> _ {
    let index: &'static str = Index::OrganizationState.as_str();
    lookups::table
        .filter(lookups::organization_id.eq(organization))
        .filter(lookups::name.eq(index))
        .select(lookups::value)
}

#[auto_type(no_type_alias)]
fn sessions_of(organization: IdBytes, account: IdBytes) -> _ {
    sessions::table.filter(sessions::organization_id.eq(organization)).filter(sessions::account_id.eq(account))
}

#[auto_type(no_type_alias)]
fn rights_of(organization: IdBytes, account: IdBytes) -> _ {
    accounts::table.filter(accounts::organization_id.eq(organization)).filter(accounts::id.eq(account)).select((
        accounts::role,
        accounts::state,
        accounts::sessions_since,
        accounts::kept_session,
    ))
}

/// Reads the facts of a session in one exchange with the server and in the order of locks. Each table has its own statement: a
/// PostgreSQL that is distributed over nodes keeps the plans of those, and plans a join at each use.
fn load_facts<'t, L: Lock + Copy>(
    tx: &'t Tx<'_>,
    session: &SessionPrincipal,
    lock: L,
) -> BoxFuture<'t, QueryResult<Facts>> {
    let organization = tx.first(locked(state_of(session.organization.stored()), lock));
    let rights = load_rights(tx, session, lock);
    async move {
        let (organization, (account, expires_at)) = try_join!(organization, rights)?;
        Ok(Facts { organization, account, expires_at })
    }
    .boxed()
}

/// Authorizes a session by its facts.
fn authorize_by(session: &SessionPrincipal, facts: Facts, now: Timestamp) -> Result<(), Failure> {
    let is_active = is_active_organization(session.organization, facts.organization)?;
    Ok(check_session(session, is_active, decode_facts(session, facts.account, facts.expires_at, now)?)?)
}

fn decode_facts(
    session: &SessionPrincipal,
    account: Option<AccountColumns>,
    expires_at: Option<i64>,
    now: Timestamp,
) -> Result<SessionFacts, Failure> {
    let active = |columns| active(session, columns);
    Ok(SessionFacts {
        session_live: expires_at.is_some_and(|expires_at| now < Timestamp::from_millis(expires_at)),
        active: account.map_or(Ok(None), active)?,
    })
}

/// Reads the facts that authorize a session at `now`.
pub(crate) async fn facts<L: Lock + Copy>(
    tx: &Tx<'_>,
    session: &SessionPrincipal,
    lock: L,
    now: Timestamp,
) -> Result<SessionFacts, Failure> {
    let (account, expires_at) = load_rights(tx, session, lock).await?;
    decode_facts(session, account, expires_at, now)
}

/// Reads account and session in one exchange with the server, in the order of locks.
fn load_rights<'t, L: Lock + Copy>(
    tx: &'t Tx<'_>,
    session: &SessionPrincipal,
    lock: L,
) -> BoxFuture<'t, QueryResult<(Option<AccountColumns>, Option<i64>)>> {
    let (organization, account) = (session.organization.stored(), session.account.stored());
    let expires_at = sessions_of(organization, account)
        .filter(sessions::id.eq(session.session.stored()))
        .select(sessions::expires_at);
    let rights = tx.first(locked(rights_of(organization, account), lock));
    let expires_at = tx.first(locked(expires_at, lock));
    async move { try_join!(rights, expires_at) }.boxed()
}

/// Authorizes a principal for a transaction that only reads, in one snapshot.
pub(crate) async fn authorize(tx: &Tx<'_>, principal: &Principal, now: Timestamp) -> Result<(), Failure> {
    match principal {
        Principal::Operator => Ok(()),
        Principal::Session(session) => authorize_session(tx, session, now).await,
        Principal::Embedder(embedder) => {
            let state = state_of(embedder.organization.stored());
            let state = tx.first(state).await?;
            require_active(embedder.organization, state)
        }
    }
}

/// Authorizes a session for a transaction that only reads, in one snapshot.
pub(crate) async fn authorize_session(tx: &Tx<'_>, session: &SessionPrincipal, now: Timestamp) -> Result<(), Failure> {
    let facts = load_facts(tx, session, Unlocked).await?;
    authorize_by(session, facts, now)
}

fn active(
    session: &SessionPrincipal,
    (role, state, since, kept): AccountColumns,
) -> Result<Option<(Role, ValidSessions)>, Failure> {
    let role = role.decode("accounts", &session.account, "role")?;
    let state = state.decode("accounts", &session.account, "state")?;
    let kept = kept.decode("accounts", &session.account, "kept_session")?;
    Ok((state == AccountState::Active).then_some((role, ValidSessions { since, kept })))
}

fn require_active(id: OrganizationId, state: Option<Column<OrganizationState>>) -> Result<(), Failure> {
    if is_active_organization(id, state)? { Ok(()) } else { Err(Denial::OrganizationDisabled.into()) }
}

/// Returns whether the state of an organization, if it exists, is active.
pub(crate) fn is_active_organization(
    id: OrganizationId,
    state: Option<Column<OrganizationState>>,
) -> Result<bool, Failure> {
    let state = state.map(|state| state.decode("lookups", &id, "value")).transpose()?;
    Ok(state == Some(OrganizationState::Active))
}
