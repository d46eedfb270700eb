//! Whether a principal may act: asked first by every vault operation, in its own transaction.

use super::backend::{Connection, RunQuery, for_share, for_update};
use crate::failure::Failure;
use crate::schema::{accounts, organization_keys, organizations, sessions};
use crate::stored::{AnyId, Column, StoredId as _};
use diesel::{ExpressionMethods as _, JoinOnDsl as _, OptionalExtension as _, QueryDsl as _};
use vault_core::account::AccountState;
use vault_core::id::{KeyId, OrganizationId, SessionId};
use vault_core::organization::OrganizationState;
use vault_core::principal::{Denial, Principal, SessionFacts, SessionPrincipal, judge_session};
use vault_core::role::Role;
use vault_core::sealed::KeyState;
use vault_core::time::Timestamp;

pub(crate) type Judgement = Result<(), Denial>;

/// Organization, account and session of a session principal in one row; none, if one of them is missing.
macro_rules! facts_of {
    ($session:expr) => {{
        use crate::schema::{accounts, organizations, sessions};
        use diesel::{BoolExpressionMethods as _, JoinOnDsl as _};
        organizations::table
            .inner_join(accounts::table.on(accounts::organization_id.eq(organizations::id)))
            .inner_join(
                sessions::table
                    .on(sessions::organization_id.eq(organizations::id).and(sessions::account_id.eq(accounts::id))),
            )
            .filter(organizations::id.eq($session.organization.stored()))
            .filter(accounts::id.eq($session.account.stored()))
            .filter(sessions::id.eq($session.session.stored()))
    }};
}

/// Judges a principal for a decision that only reads, in one snapshot.
pub(crate) async fn judge(
    connection: &mut Connection,
    principal: &Principal,
    now: Timestamp,
) -> Result<Judgement, Failure> {
    match principal {
        Principal::Operator => Ok(Ok(())),
        Principal::Session(session) => judge_holder(connection, session, now).await,
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

/// What judging the holder of a session relies on.
macro_rules! judged_facts {
    ($session:expr) => {{
        use crate::schema::{accounts, organizations, sessions};
        facts_of!($session).select((organizations::state, accounts::role, accounts::state, sessions::expires_at))
    }};
}

/// Reads the first rows of a query and judges who asks, in one exchange with the server. The principal is judged by what
/// is so when the rows have been read, or later: a right that has been taken away before shows nothing.
macro_rules! load_judged {
    ($query:expr, $connection:expr, $limit:expr, $principal:expr, $now:expr) => {
        match $principal {
            vault_core::principal::Principal::Session(session) => {
                let facts = judged_facts!(session);
                let (rows, found) = pipeline!($connection, |own| load_page!($query, own, $limit).await, |own| facts
                    .get_result(own)
                    .await
                    .optional())?;
                authorize::conclude($connection, session, found, $now).await??;
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

pub(crate) use {facts_of, judged_facts, load_judged};

/// Judges the holder of a session for a decision that only reads, by what was found.
pub(crate) async fn conclude(
    connection: &mut Connection,
    session: &SessionPrincipal,
    found: Option<FactsRow>,
    now: Timestamp,
) -> Result<Judgement, Failure> {
    match found {
        Some(row) => Ok(judge_session(session, facts(session, row, now)?)),
        None => Ok(judge_session(session, partial_facts(connection, session, now).await?)),
    }
}

/// Judges the holder of a session for a decision that only reads, in one snapshot.
pub(crate) async fn judge_holder(
    connection: &mut Connection,
    session: &SessionPrincipal,
    now: Timestamp,
) -> Result<Judgement, Failure> {
    let row: Option<FactsRow> = judged_facts!(session).get_result(connection).await.optional()?;
    conclude(connection, session, row, now).await
}

/// Judges a principal for a decision that writes: what it relies on stays as it is until the decision stands.
pub(crate) async fn authorize_and_lock(
    connection: &mut Connection,
    principal: &Principal,
    now: Timestamp,
) -> Result<Judgement, Failure> {
    match principal {
        Principal::Operator => Ok(Ok(())),
        Principal::Session(session) => judge_and_hold_holder(connection, session, now).await,
        Principal::Embedder(embedder) => hold_organization(connection, embedder.organization).await,
    }
}

/// Judges the holder of a session for a decision that writes, as [`authorize_and_lock`] does.
pub(crate) async fn judge_and_hold_holder(
    connection: &mut Connection,
    session: &SessionPrincipal,
    now: Timestamp,
) -> Result<Judgement, Failure> {
    let row: Option<FactsRow> = for_share!(facts_of!(session).select((
        organizations::state,
        accounts::role,
        accounts::state,
        sessions::expires_at
    )))
    .get_result(connection)
    .await
    .optional()?;
    match row {
        Some(row) => Ok(judge_session(session, facts(session, row, now)?)),
        None => refuse(connection, session, now).await,
    }
}

/// Judges a principal as [`authorize_and_lock`] does, and tells whether the organization key is active, which it
/// then stays.
pub(crate) async fn judge_and_hold_with_key(
    connection: &mut Connection,
    principal: &Principal,
    organization: OrganizationId,
    key: KeyId,
    now: Timestamp,
) -> Result<bool, Failure> {
    if let Principal::Session(session) = principal {
        let row: Option<FactsAndKeyRow> = for_share!(
            facts_of!(session)
                .inner_join(organization_keys::table.on(organization_keys::organization_id.eq(organizations::id)))
                .filter(organization_keys::id.eq(key.stored()))
                .select((
                    organizations::state,
                    accounts::role,
                    accounts::state,
                    sessions::expires_at,
                    organization_keys::state
                ))
        )
        .get_result(connection)
        .await
        .optional()?;
        if let Some((organization, role, account, expires_at, key_state)) = row {
            judge_session(session, facts(session, (organization, role, account, expires_at), now)?)?;
            return is_active(key, key_state);
        }
    }
    authorize_and_lock(connection, principal, now).await??;
    let state: Option<Column<KeyState>> = for_share!(
        organization_keys::table
            .filter(organization_keys::organization_id.eq(organization.stored()))
            .filter(organization_keys::id.eq(key.stored()))
            .select(organization_keys::state)
    )
    .get_result(connection)
    .await
    .optional()?;
    state.map_or(Ok(false), |state| is_active(key, state))
}

/// Judges the holder of a session whose account is about to be changed, and takes the account: to hold it first
/// and take it then would have two such decisions wait for each other.
pub(crate) async fn judge_and_take_account(
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
    judge_and_hold_holder(connection, session, now).await
}

/// Judges the holder of a session that is about to end `target`, a session of the same account, and takes both.
/// Whether `target` is live. Of several that end one session at once, one finds it so.
pub(crate) async fn judge_and_take_session(
    connection: &mut Connection,
    session: &SessionPrincipal,
    target: SessionId,
    now: Timestamp,
) -> Result<Result<bool, Denial>, Failure> {
    let above: Option<(Column<OrganizationState>, Column<Role>, Column<AccountState>)> = for_share!(
        organizations::table
            .inner_join(accounts::table.on(accounts::organization_id.eq(organizations::id)))
            .filter(organizations::id.eq(session.organization.stored()))
            .filter(accounts::id.eq(session.account.stored()))
            .select((organizations::state, accounts::role, accounts::state))
    )
    .get_result(connection)
    .await
    .optional()?;
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
    let judgement = match (above, own) {
        (Some((organization, role, account)), Some(expires_at)) => {
            judge_session(session, facts(session, (organization, role, account, expires_at), now)?)
        }
        _ => refuse(connection, session, now).await?,
    };
    Ok(judgement.map(|()| target_live))
}

pub(crate) type FactsRow = (Column<OrganizationState>, Column<Role>, Column<AccountState>, i64);
type FactsAndKeyRow = (Column<OrganizationState>, Column<Role>, Column<AccountState>, i64, Column<KeyState>);

fn facts(session: &SessionPrincipal, row: FactsRow, now: Timestamp) -> Result<SessionFacts, Failure> {
    let (organization, role, account, expires_at) = row;
    let organization = organization.decode("organizations", &session.organization, "state")?;
    Ok(SessionFacts {
        session_live: now < Timestamp::from_millis(expires_at),
        active_role: active_role(session, role, account)?,
        organization_active: organization == OrganizationState::Active,
    })
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

/// Judges a principal of which a row was missing. If all are there now, the rows changed in between.
async fn refuse(connection: &mut Connection, session: &SessionPrincipal, now: Timestamp) -> Result<Judgement, Failure> {
    match judge_session(session, partial_facts(connection, session, now).await?) {
        Ok(()) => Err(Failure::Overtaken),
        refusal => Ok(refusal),
    }
}

/// The facts where one of the rows is missing.
async fn partial_facts(
    connection: &mut Connection,
    session: &SessionPrincipal,
    now: Timestamp,
) -> Result<SessionFacts, Failure> {
    let organization: Option<Column<OrganizationState>> = organizations::table
        .filter(organizations::id.eq(session.organization.stored()))
        .select(organizations::state)
        .get_result(connection)
        .await
        .optional()?;
    let account: Option<(Column<Role>, Column<AccountState>)> = accounts::table
        .filter(accounts::organization_id.eq(session.organization.stored()))
        .filter(accounts::id.eq(session.account.stored()))
        .select((accounts::role, accounts::state))
        .get_result(connection)
        .await
        .optional()?;
    let expires_at: Option<i64> = sessions::table
        .filter(sessions::organization_id.eq(session.organization.stored()))
        .filter(sessions::id.eq(session.session.stored()))
        .filter(sessions::account_id.eq(session.account.stored()))
        .select(sessions::expires_at)
        .get_result(connection)
        .await
        .optional()?;
    Ok(SessionFacts {
        session_live: expires_at.is_some_and(|expires_at| now < Timestamp::from_millis(expires_at)),
        active_role: account.map_or(Ok(None), |(role, state)| active_role(session, role, state))?,
        organization_active: judge_organization(session.organization, organization)?.is_ok(),
    })
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
