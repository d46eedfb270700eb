//! Concerns of the console's overview that a user has set aside until a time. They change only that user's view, so no audit
//! entry records them.

use crate::audit::{Affected, Subject};
use crate::entity::{Entity, EntityKey, Kind, Lookup};
use crate::error::Refusal;
use crate::field::{FieldCode, FieldError};
use crate::id::AccountId;
use crate::operation::{Access, Failure, Operation, Unit};
use crate::principal::SessionPrincipal;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Maximum number of concerns that one account can have set aside.
pub const MAX_SET_ASIDE: usize = 200;
/// Maximum length of the key of a concern, in bytes.
const MAX_CONCERN: usize = 500;
/// Maximum time ahead, in seconds: a leap year.
const MAX_SECONDS: i64 = 366 * 86_400;

/// A concern that is set aside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetAside {
    /// Key of the concern. It contains the cause, so that another problem has another key.
    pub concern: String,
    /// Time at which it is shown again.
    pub until: Timestamp,
}

/// The concerns that an account has set aside, under its ID.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetAsides(Vec<SetAside>);

impl Entity for SetAsides {
    const KIND: Kind = Kind::SetAside;

    fn lookups(&self, _id: Uuid) -> Vec<Lookup> {
        Vec::new()
    }

    fn subject(&self, id: Uuid) -> Affected {
        Subject::Account(AccountId::from_uuid(id)).into()
    }
}

impl SetAsides {
    /// Returns the concerns that are set aside at `now`.
    fn current(self, now: Timestamp) -> Vec<SetAside> {
        self.0.into_iter().filter(|one| one.until > now).collect()
    }

    /// Sets a concern aside until a time, or shows it again. Drops those that have expired.
    ///
    /// # Errors
    /// [`Refusal::LimitReached`].
    pub fn with(self, concern: &str, until: Option<Timestamp>, now: Timestamp) -> Result<Self, Refusal> {
        let mut all = self.current(now);
        all.retain(|one| one.concern != concern);
        all.extend(until.map(|until| SetAside { concern: concern.to_owned(), until }));
        match all.len() {
            ..=MAX_SET_ASIDE => Ok(Self(all)),
            _ => Err(Refusal::LimitReached { what: "concerns set aside", limit: MAX_SET_ASIDE as i64 }),
        }
    }
}

/// Reads what the account of a session has set aside. If it does not open, it is reported, and all concerns are shown.
async fn read(unit: &Unit<'_>, key: EntityKey) -> Result<SetAsides, Failure> {
    let row = unit.rows().entity(key).await?;
    let opened = row.map(|row| unit.open_or_report::<SetAsides>(&row)).transpose()?.flatten();
    Ok(opened.map(|opened| opened.into_value()).unwrap_or_default())
}

const fn key_of(session: &SessionPrincipal) -> EntityKey {
    EntityKey { organization: session.organization, kind: Kind::SetAside, id: *session.account.as_uuid() }
}

/// Lists the concerns that the account of a session has set aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListSetAside(pub SessionPrincipal);

impl Operation for ListSetAside {
    type Outcome = Vec<SetAside>;
    const ACCESS: Access<Self> = Access::Read(|operation| Some(operation.0.organization));

    async fn run(&self, unit: &Unit<'_>) -> Result<Vec<SetAside>, Failure> {
        unit.authorize().await?;
        Ok(read(unit, key_of(&self.0)).await?.current(unit.now()))
    }
}

/// Sets a concern aside for the account of a session, or shows it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeSetAside {
    /// The session.
    pub session: SessionPrincipal,
    /// Key of the concern.
    pub concern: String,
    /// Time at which it is shown again. `None` shows it now.
    pub until: Option<Timestamp>,
}

impl Operation for ChangeSetAside {
    type Outcome = ();
    const ACCESS: Access<Self> = Access::Write(|operation| Some(operation.session.organization));

    async fn run(&self, unit: &Unit<'_>) -> Result<(), Failure> {
        unit.authorize().await?;
        validate(&self.concern, self.until, unit.now()).map_err(Failure::Invalid)?;
        let key = key_of(&self.session);
        let after = read(unit, key).await?.with(&self.concern, self.until, unit.now())?;
        // Not a replacement, which a document that does not open would prevent.
        unit.remove::<SetAsides>(key.organization, key.id).await?;
        unit.insert(key.organization, key.id, &after).await?;
        unit.commit_without_entry();
        Ok(())
    }
}

/// Validates a concern and the time until which it is set aside.
///
/// # Errors
/// The fields that are refused.
fn validate(concern: &str, until: Option<Timestamp>, now: Timestamp) -> Result<(), Vec<FieldError>> {
    let mut errors = Vec::new();
    let mut refuse = |pointer, code, detail| errors.push(FieldError::new(pointer, code, detail));
    match concern {
        "" => refuse("/concern", FieldCode::Blank, "must not be empty"),
        long if long.len() > MAX_CONCERN => refuse("/concern", FieldCode::TooLong, "must have at most 500 bytes"),
        text if text.contains(char::is_control) => {
            refuse("/concern", FieldCode::ControlCharacter, "must not contain control characters");
        }
        _ => {}
    }
    if until.is_some_and(|until| until <= now || until > now.plus_seconds(MAX_SECONDS)) {
        refuse("/until", FieldCode::OutOfRange, "must be in the future and at most one year ahead");
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}
