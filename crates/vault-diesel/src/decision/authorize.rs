//! Whether a principal may act: asked first by every vault operation, in its own transaction.

use super::authorize;
use super::backend::{Connection, RunQuery, for_share, for_update, pipeline};
use crate::failure::Failure;
use crate::schema::{accounts, organization_keys, organizations, sessions};
use crate::stored::{AnyId, Column, StoredId as _};
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
use vault_core::account::AccountState;
use vault_core::id::{KeyId, OrganizationId, SessionId};
use vault_core::organization::OrganizationState;
use vault_core::principal::{Denial, Principal, SessionFacts, SessionPrincipal, judge_session};
use vault_core::role::Role;
use vault_core::sealed::KeyState;
use vault_core::time::Timestamp;

pub(crate) type Judgement = Result<(), Denial>;

/// What judging the holder of a session relies on, as far as it is there.
pub(crate) struct Found {
    pub(crate) organization: Option<Column<OrganizationState>>,
    pub(crate) account: Option<(Column<Role>, Column<AccountState>)>,
    pub(crate) expires_at: Option<i64>,
}

/// Reads what judging the holder of a session relies on, in one exchange with the server and in the order of locks. Each table
/// has a statement of its own: a PostgreSQL that is spread over machines keeps the plans of those, and plans a join at each use.
macro_rules! load_facts {
    ($connection:expr, $session:expr, $hold:ident) => {{
        use crate::schema::{accounts, organizations, sessions};
        let organization = organizations::table
            .filter(organizations::id.eq($session.organization.stored()))
            .select(organizations::state);
        let account = accounts::table
            .filter(accounts::organization_id.eq($session.organization.stored()))
            .filter(accounts::id.eq($session.account.stored()))
            .select((accounts::role, accounts::state));
        let expires_at = sessions::table
            .filter(sessions::organization_id.eq($session.organization.stored()))
            .filter(sessions::id.eq($session.session.stored()))
            .filter(sessions::account_id.eq($session.account.stored()))
            .select(sessions::expires_at);
        let (organization, account, expires_at) = ($hold!(organization), $hold!(account), $hold!(expires_at));
        pipeline!(
            $connection,
            |own| organization.get_result(own).await.optional(),
            |own| account.get_result(own).await.optional(),
            |own| expires_at.get_result(own).await.optional()
        )
        .map(|(organization, account, expires_at)| authorize::Found { organization, account, expires_at })
    }};
}

/// Rows that others may change.
macro_rules! unheld {
    ($query:expr) => {
        $query
    };
}

/// Judges a principal for a decision that only reads, in one snapshot.
pub(crate) async fn judge(
    connection: &mut Connection,
    principal: &Principal,
    now: Timestamp,
) -> Result<Judgement, Failure> {
    match principal {
        Principal::Operator => Ok(Ok(())),
        Principal::Session(session) => authorize_holder(connection, session, now).await,
        Principal::Embedder(embedder) => {
            let state: Option<Column<OrganizationState>> = organizations::table
                .filter(organizations::id.eq(embedder.organization.stored()))
                .select(organizations::state)
                .get_result(connection)
                .await
                .optional()?;
            judge_organization(embedder.organization, state)
        }
    }
}

/// Reads the first rows of a query and judges who asks, in one exchange with the server. The principal is judged by what
/// is so when the rows have been read, or later: a right that has been taken away before shows nothing.
macro_rules! load_authorized {
    ($query:expr, $connection:expr, $limit:expr, $principal:expr, $now:expr) => {
        match $principal {
            vault_core::principal::Principal::Session(session) => {
                let (rows, found) =
                    pipeline!($connection, |own| load_page!($query, own, $limit).await, |own| load_facts!(
                        own, session, unheld
                    ))?;
                authorize::conclude(session, found, $now)??;
                rows
            }
            other => {
                let rows = load_page!($query, $connection, $limit).await?;
                authorize::judge($connection, other, $now).await??;
                rows
            }
        }
    };
}

pub(crate) use {load_authorized, load_facts, unheld};

/// Judges the holder of a session by what was found.
pub(crate) fn conclude(session: &SessionPrincipal, found: Found, now: Timestamp) -> Result<Judgement, Failure> {
    let role = |(role, state)| active_role(session, role, state);
    let facts = SessionFacts {
        session_live: found.expires_at.is_some_and(|expires_at| now < Timestamp::from_millis(expires_at)),
        active_role: found.account.map_or(Ok(None), role)?,
        organization_active: judge_organization(session.organization, found.organization)?.is_ok(),
    };
    Ok(judge_session(session, facts))
}

/// Judges the holder of a session for a decision that only reads, in one snapshot.
pub(crate) async fn authorize_holder(
    connection: &mut Connection,
    session: &SessionPrincipal,
    now: Timestamp,
) -> Result<Judgement, Failure> {
    let found = load_facts!(connection, session, unheld)?;
    conclude(session, found, now)
}

/// Judges a principal for a decision that writes: what it relies on stays as it is until the decision stands.
pub(crate) async fn authorize_and_lock(
    connection: &mut Connection,
    principal: &Principal,
    now: Timestamp,
) -> Result<Judgement, Failure> {
    match principal {
        Principal::Operator => Ok(Ok(())),
        Principal::Session(session) => authorize_and_lock_holder(connection, session, now).await,
        Principal::Embedder(embedder) => hold_organization(connection, embedder.organization).await,
    }
}

/// Judges the holder of a session for a decision that writes, as [`authorize_and_lock`] does.
pub(crate) async fn authorize_and_lock_holder(
    connection: &mut Connection,
    session: &SessionPrincipal,
    now: Timestamp,
) -> Result<Judgement, Failure> {
    let found = load_facts!(connection, session, for_share)?;
    conclude(session, found, now)
}

/// Judges a principal as [`authorize_and_lock`] does, and tells whether the organization key is active, which it
/// then stays.
pub(crate) async fn authorize_and_lock_with_key(
    connection: &mut Connection,
    principal: &Principal,
    organization: OrganizationId,
    key: KeyId,
    now: Timestamp,
) -> Result<bool, Failure> {
    let key_state = for_share!(
        organization_keys::table
            .filter(organization_keys::organization_id.eq(organization.stored()))
            .filter(organization_keys::id.eq(key.stored()))
            .select(organization_keys::state)
    );
    let state: Option<Column<KeyState>> = match principal {
        Principal::Session(session) => {
            let (found, state) = pipeline!(connection, |own| load_facts!(own, session, for_share), |own| key_state
                .get_result(own)
                .await
                .optional())?;
            conclude(session, found, now)??;
            state
        }
        Principal::Operator | Principal::Embedder(_) => {
            authorize_and_lock(connection, principal, now).await??;
            key_state.get_result(connection).await.optional()?
        }
    };
    state.map_or(Ok(false), |state| is_active(key, state))
}

/// Judges the holder of a session whose account is about to be changed, and takes the account: to hold it first
/// and take it then would have two such decisions wait for each other.
pub(crate) async fn authorize_and_lock_account(
    connection: &mut Connection,
    session: &SessionPrincipal,
    now: Timestamp,
) -> Result<Judgement, Failure> {
    if let Err(refusal) = hold_organization(connection, session.organization).await? {
        return Ok(Err(refusal));
    }
    let _account: Option<AnyId> = for_update!(
        accounts::table
            .filter(accounts::organization_id.eq(session.organization.stored()))
            .filter(accounts::id.eq(session.account.stored()))
            .select(accounts::id)
    )
    .get_result(connection)
    .await
    .optional()?;
    authorize_and_lock_holder(connection, session, now).await
}

/// Judges the holder of a session that is about to end `target`, a session of the same account, and takes both.
/// Whether `target` is live. Of several that end one session at once, one finds it so.
pub(crate) async fn authorize_and_lock_session(
    connection: &mut Connection,
    session: &SessionPrincipal,
    target: SessionId,
    now: Timestamp,
) -> Result<Result<bool, Denial>, Failure> {
    let organization = for_share!(
        organizations::table.filter(organizations::id.eq(session.organization.stored())).select(organizations::state)
    );
    let account = for_share!(
        accounts::table
            .filter(accounts::organization_id.eq(session.organization.stored()))
            .filter(accounts::id.eq(session.account.stored()))
            .select((accounts::role, accounts::state))
    );
    let (organization, account) =
        pipeline!(connection, |own| organization.get_result(own).await.optional(), |own| account
            .get_result(own)
            .await
            .optional())?;
    // In one order, so that two sessions that end each other do not wait for each other.
    let taken: Vec<(Column<SessionId>, i64)> = for_update!(
        sessions::table
            .filter(sessions::organization_id.eq(session.organization.stored()))
            .filter(sessions::id.eq_any([session.session.stored(), target.stored()]))
            .filter(sessions::account_id.eq(session.account.stored()))
            .order(sessions::id)
            .select((sessions::id, sessions::expires_at))
    )
    .load(connection)
    .await?;
    let (mut own, mut target_live) = (None, false);
    for (id, expires_at) in taken {
        let id = id.decode("sessions", &session.session, "id")?;
        own = own.or((id == session.session).then_some(expires_at));
        target_live |= id == target && now < Timestamp::from_millis(expires_at);
    }
    let found = Found { organization, account, expires_at: own };
    Ok(conclude(session, found, now)?.map(|()| target_live))
}

fn active_role(
    session: &SessionPrincipal,
    role: Column<Role>,
    state: Column<AccountState>,
) -> Result<Option<Role>, Failure> {
    let role = role.decode("accounts", &session.account, "role")?;
    let state = state.decode("accounts", &session.account, "state")?;
    Ok((state == AccountState::Active).then_some(role))
}

fn is_active(key: KeyId, state: Column<KeyState>) -> Result<bool, Failure> {
    Ok(state.decode("organization_keys", &key, "state")? == KeyState::Active)
}

/// Whether the organization is in use, which it then stays.
pub(crate) async fn hold_organization(
    connection: &mut Connection,
    organization: OrganizationId,
) -> Result<Judgement, Failure> {
    let state: Option<Column<OrganizationState>> = for_share!(
        organizations::table.filter(organizations::id.eq(organization.stored())).select(organizations::state)
    )
    .get_result(connection)
    .await
    .optional()?;
    judge_organization(organization, state)
}

pub(crate) fn judge_organization(
    id: OrganizationId,
    state: Option<Column<OrganizationState>>,
) -> Result<Judgement, Failure> {
    let state = state.map(|state| state.decode("organizations", &id, "state")).transpose()?;
    Ok(if state == Some(OrganizationState::Active) { Ok(()) } else { Err(Denial::OrganizationClosed) })
}
