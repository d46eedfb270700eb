//! Many decisions of one kind in one organization in one transaction. What is refused is found before anything is written
//! and drops out, so it undoes no other. Saves, deletes and plain replacements are read and written for all at once; other
//! changes are carried out one after the other, which saves their commits and the waiting for the rows that all of them
//! take.

use super::decision::credential::versions::Current;
use super::decision::{Decided, Decision, Verdict, authorize, carry_out};
use super::gather::Gathered;
use super::store::PostgresStore;
use crate::failure::Failure;
use crate::schema::credentials;
use crate::stored::{IdText, ToIdText as _};
use diesel::result::Error as SqlError;
use diesel::{ExpressionMethods as _, QueryDsl as _, SelectableHelper as _};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use std::collections::HashMap;
use std::sync::Arc;
use vault_core::Command;
use vault_core::id::{CredentialId, KeyId, OrganizationId};
use vault_core::principal::{Denial, Principal};
use vault_core::time::Timestamp;

/// The most decisions in one transaction that reads and writes for all of them at once.
pub(super) const AT_ONCE: usize = 64;

/// A decision that may share a transaction with others of its kind in its organization.
pub(super) trait Together: Decision<Outcome: 'static> + Send + 'static {
    /// Where decisions of this kind wait.
    fn gathered(store: &PostgresStore) -> &Arc<Gathered<Self>>;

    /// Its organization.
    fn organization(&self) -> OrganizationId;

    /// About how many bytes it brings.
    fn size(&self) -> usize {
        0
    }

    /// Makes decisions in one organization, in the order of locks, and records them. What each came to, in their order,
    /// and whether anything was written.
    fn decide_all(
        connection: &mut AsyncPgConnection,
        organization: OrganizationId,
        commands: &[Command<Self>],
    ) -> impl Future<Output = Fates<Self::Outcome>> + Send;
}

/// What one of several decisions came to.
#[derive(Debug)]
pub(super) enum Fate<T> {
    /// Decided.
    Decided(T),
    /// Its principal may not act.
    Denied(Denial),
    /// Not decided: it relies on what others of them came to, and is to be decided after them.
    Again,
    /// Not decided: something is wrong with it, which is told when it is decided alone.
    Alone,
}

/// What each of several decisions came to, and whether anything was written.
pub(super) type Fates<T> = Result<(Vec<Fate<T>>, bool), Failure>;

/// Makes the decisions in one transaction.
pub(super) async fn decide_together<A: Together>(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    commands: &[Command<A>],
) -> Decided<Vec<Fate<A::Outcome>>> {
    let (fates, written) = A::decide_all(connection, organization, commands).await?;
    Ok(if written { Verdict::Recorded(fates) } else { Verdict::Refused(fates) })
}

/// Carries decisions out one after the other; each finds what those before it left. `judged` has what each of them holds, or
/// what it came to already.
pub(super) async fn carry_out_in_turn<A: Together>(
    connection: &mut AsyncPgConnection,
    commands: &[Command<A>],
    judged: Vec<Result<A::Held, Fate<A::Outcome>>>,
) -> Fates<A::Outcome> {
    let (mut fates, mut written) = (Vec::with_capacity(commands.len()), false);
    for (command, judged) in commands.iter().zip(judged) {
        let verdict = match judged {
            Ok(held) => carry_out(connection, command, held).await?,
            Err(fate) => {
                fates.push(fate);
                continue;
            }
        };
        match verdict {
            Verdict::Refused(outcome) => fates.push(Fate::Decided(outcome)),
            // Nothing that shares its transaction would stand: each is to be decided alone.
            Verdict::Undo(_) => return Err(SqlError::RollbackTransaction.into()),
            verdict => {
                written = true;
                fates.push(Fate::Decided(verdict.into_outcome()));
            }
        }
    }
    Ok((fates, written))
}

/// The rows of a table that belong to one of the credentials.
macro_rules! of_credentials {
    ($table:ident, $organization:expr, $ids:expr) => {{
        use crate::schema::$table as rows;
        rows::table.filter(rows::organization_id.eq($organization.text())).filter(rows::id.eq_any($ids))
    }};
}

pub(super) use of_credentials;

/// Takes the credentials, to change them, and reads what changes rely on. By id, as all take them who take several.
pub(super) async fn hold(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    ids: impl Iterator<Item = CredentialId>,
) -> Result<HashMap<String, Current>, Failure> {
    let ids: Vec<IdText> = ids.map(|id| id.text()).collect();
    let rows: Vec<(String, Current)> = of_credentials!(credentials, organization, ids)
        .order(credentials::id)
        .select((credentials::id, Current::as_select()))
        .for_update()
        .load(connection)
        .await?;
    Ok(rows.into_iter().collect())
}

/// What judging a principal came to.
#[derive(Clone, Copy)]
pub(super) enum Judged {
    /// It may act; whether the key that it brought is active.
    May(bool),
    Denied(Denial),
    Unknown,
}

impl Judged {
    fn of(judged: Result<bool, Failure>) -> Result<Self, Failure> {
        match judged {
            Ok(key_active) => Ok(Self::May(key_active)),
            Err(Failure::Denied(denial)) => Ok(Self::Denied(denial)),
            Err(Failure::Refused(_) | Failure::Damaged { .. }) => Ok(Self::Unknown),
            Err(failure @ (Failure::Sql(_) | Failure::Overtaken)) => Err(failure),
        }
    }
}

/// Judges each principal once, with the key that it brought, if it brought one; all stays as it is until the decisions
/// stand. At the latest of the commands' times: who may act then may have acted before.
pub(super) async fn judge_each<A: Sync>(
    connection: &mut AsyncPgConnection,
    commands: &[Command<A>],
    organization: OrganizationId,
    key: impl Fn(&A) -> Option<KeyId> + Send + Sync,
) -> Result<Vec<Judged>, Failure> {
    let now = commands.iter().map(|command| command.now).max().unwrap_or(Timestamp::from_millis(0));
    let mut different: Vec<(&Principal, Option<KeyId>)> = Vec::new();
    for command in commands {
        let brought = (&command.principal, key(&command.act));
        if !different.contains(&brought) {
            different.push(brought);
        }
    }
    // Accounts are taken by id, where several are.
    different.sort_by_key(|(principal, _)| match principal {
        Principal::Session(session) => Some((session.account, session.session)),
        Principal::Operator | Principal::Embedder(_) => None,
    });
    let mut judged = Vec::with_capacity(different.len());
    for (principal, key) in &different {
        let outcome = match key {
            Some(key) => authorize::judge_and_hold_with_key(connection, principal, organization, *key, now).await,
            None => match authorize::judge_and_hold(connection, principal, now).await {
                Ok(judgement) => judgement.map(|()| true).map_err(Failure::from),
                Err(failure) => Err(failure),
            },
        };
        judged.push(Judged::of(outcome)?);
    }
    let find = |command: &Command<A>| {
        let brought = (&command.principal, key(&command.act));
        let place = different.iter().position(|one| *one == brought);
        place.and_then(|place| judged.get(place)).copied().unwrap_or(Judged::Unknown)
    };
    Ok(commands.iter().map(find).collect())
}
