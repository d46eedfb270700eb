//! Card of a credential: everything that is stored about it except its data, sealed as one document.

use super::{CredentialType, Description, Information, Labels, Metadata, Superseded, VersionLimits, effective_expiry};
use crate::activation::VendRule;
use crate::error::Refusal;
use crate::field::Invalid;
use crate::id::VersionId;
use crate::namespace::Namespace;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// A credential without its data. An attacker with write access only to the database can therefore not make another version
/// current, restore a destroyed one, relax a vend rule or change labels. A complete old card still opens with its old revision,
/// which the integrity check detects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// Its type.
    pub kind: CredentialType,
    /// Its namespace.
    pub namespace: Namespace,
    /// Forms in which the credential may be issued.
    pub vend: VendRule,
    /// Highest version number ever assigned, including destroyed versions. No number is assigned twice.
    pub highest: i64,
    /// The current version.
    pub current: CardVersion,
    /// The staged and the previous versions, ordered by number.
    pub others: Vec<CardVersion>,
    /// Labels, description and declared expiries.
    pub metadata: Metadata,
}

/// A version of a credential that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardVersion {
    /// Version number.
    pub number: i64,
    /// Random ID to which its data is bound.
    pub id: VersionId,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time at which it stopped being the current version. `None` if it is current or staged.
    pub superseded: Option<Superseded>,
    /// Expiry in its data.
    pub expires_at: Option<Timestamp>,
    /// The displayable part of its data.
    pub information: Information,
}

impl CardVersion {
    /// Returns whether the version is within its retention at `now`.
    pub fn is_kept(&self, now: Timestamp) -> bool {
        self.superseded.is_none_or(|superseded| superseded.is_kept(now))
    }

    /// Returns the time from which it counts as destroyed. `None` if it is current or staged.
    pub fn destroy_at(&self) -> Option<Timestamp> {
        self.superseded.map(|superseded| superseded.destroy_at)
    }
}

/// Effects of a change on the stored data of versions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionEffects {
    /// Numbers of the versions to destroy.
    pub destroyed: Vec<i64>,
    /// Numbers of the versions that are kept with another time of destruction.
    pub moved: Vec<(i64, Option<Timestamp>)>,
}

impl Card {
    /// Returns all versions, the current one first.
    pub fn versions(&self) -> impl Iterator<Item = &CardVersion> {
        std::iter::once(&self.current).chain(&self.others)
    }

    /// Returns the version with this number.
    pub fn version(&self, number: i64) -> Option<&CardVersion> {
        self.versions().find(|version| version.number == number)
    }

    /// Returns the staged version, if any.
    pub fn staged(&self) -> Option<&CardVersion> {
        self.others.iter().find(|version| version.superseded.is_none())
    }

    /// Returns the version that was current before, while it is kept.
    pub fn previous(&self, now: Timestamp) -> Option<&CardVersion> {
        let kept = self.others.iter().filter(|version| version.superseded.is_some_and(|it| it.is_kept(now)));
        kept.max_by_key(|version| (version.superseded.map(|superseded| superseded.at), version.number))
    }

    /// Returns the expiry: the earlier of the declared one and the one in the data.
    pub fn expires_at(&self) -> Option<Timestamp> {
        effective_expiry(self.metadata.expires_at(self.current.number), self.current.expires_at)
    }

    /// Returns the card after `new` became the current version. The old one is kept as a previous version.
    #[must_use]
    pub fn replaced(&self, new: CardVersion, limits: VersionLimits, now: Timestamp) -> Self {
        let highest = self.highest.max(new.number);
        let superseded = CardVersion { superseded: Some(limits.supersede(now)), ..self.current.clone() };
        let others = self.others.iter().cloned().chain([superseded]);
        let others = others.filter(|version| version.number != new.number).collect();
        let replaced = Self { highest, current: CardVersion { superseded: None, ..new }, others, ..self.clone() };
        let most = limits.versions.max(2).saturating_sub(1 + usize::from(replaced.staged().is_some()));
        replaced.keeping(most, now)
    }

    /// Returns the card with the staged version `new`, in place of an earlier one.
    #[must_use]
    pub fn with_staged(&self, new: CardVersion, limits: VersionLimits, now: Timestamp) -> Self {
        let highest = self.highest.max(new.number);
        let others = self.others.iter().filter(|version| version.superseded.is_some()).cloned().chain([new]).collect();
        Self { highest, others, ..self.clone() }.keeping(limits.versions.max(2).saturating_sub(2), now)
    }

    /// Returns the card after the staged or a previous version became the current one.
    ///
    /// # Errors
    /// [`Refusal::NoSuchVersion`]
    pub fn promoted(&self, number: i64, limits: VersionLimits, now: Timestamp) -> Result<Self, Refusal> {
        let promoted = self.others.iter().find(|version| version.number == number && version.is_kept(now));
        Ok(self.replaced(promoted.ok_or(Refusal::NoSuchVersion)?.clone(), limits, now))
    }

    /// Returns the card without the staged or a previous version.
    ///
    /// # Errors
    /// [`Refusal::NoSuchVersion`] or [`Refusal::CurrentVersion`]
    pub fn without(&self, number: i64, now: Timestamp) -> Result<Self, Refusal> {
        match self.version(number).filter(|version| version.is_kept(now)) {
            None => Err(Refusal::NoSuchVersion),
            Some(version) if version.number == self.current.number => Err(Refusal::CurrentVersion),
            Some(_) => Ok(self.retaining(|version| version.number != number)),
        }
    }

    /// Returns the card without versions past their retention.
    #[must_use]
    pub fn at(&self, now: Timestamp) -> Self {
        self.retaining(|version| version.is_kept(now))
    }

    /// Returns the effects on the stored data of versions if `after` takes the place of this card.
    pub fn effects(&self, after: &Self) -> VersionEffects {
        let mut effects = VersionEffects::default();
        for before in self.versions() {
            match after.version(before.number) {
                None => effects.destroyed.push(before.number),
                Some(kept) if kept.destroy_at() != before.destroy_at() => {
                    effects.moved.push((before.number, kept.destroy_at()));
                }
                Some(_) => {}
            }
        }
        effects
    }

    /// Keeps at most the newest `most` previous versions, and none past its retention.
    fn keeping(&self, most: usize, now: Timestamp) -> Self {
        let mut previous: Vec<_> = self.others.iter().filter(|version| version.is_kept(now)).collect();
        previous.retain(|version| version.superseded.is_some());
        previous.sort_by_key(|version| Reverse((version.superseded.map(|superseded| superseded.at), version.number)));
        let kept: Vec<_> = previous.into_iter().take(most).map(|version| version.number).collect();
        self.retaining(|version| version.superseded.is_none() || kept.contains(&version.number))
    }

    fn retaining(&self, stays: impl Fn(&CardVersion) -> bool) -> Self {
        let mut card = self.clone();
        card.others.retain(stays);
        card.others.sort_unstable_by_key(|version| version.number);
        let numbers: Vec<_> = card.versions().map(|version| version.number).collect();
        card.metadata.keep_expiries_of(&numbers);
        card
    }

    /// Returns the document that is sealed. It is part of the stored formats.
    pub fn to_bytes(&self) -> Vec<u8> {
        let form = Form::V1(FormV1 {
            kind: self.kind.as_str(),
            namespace: self.namespace.as_str(),
            vend: self.vend.as_str(),
            highest: self.highest,
            current: FormVersion::of(&self.current),
            others: self.others.iter().map(FormVersion::of).collect(),
            labels: self.metadata.labels.iter().collect(),
            description: self.metadata.description.as_ref().map(Description::as_str),
            expires: self.metadata.expiries().map(|(number, at)| (number, at.as_millis())).collect(),
        });
        // Writing texts and integers into memory cannot fail.
        postcard::to_allocvec(&form).unwrap_or_default()
    }

    /// Reads the document. Its values were validated when they were written.
    ///
    /// # Errors
    /// The document has another form.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Invalid> {
        let Form::V1(form) = postcard::from_bytes(bytes).map_err(|_| INVALID)?;
        Ok(Self {
            kind: CredentialType::parse(form.kind).ok_or(INVALID)?,
            namespace: Namespace::from_stored(form.namespace),
            vend: VendRule::parse(form.vend).ok_or(INVALID)?,
            highest: form.highest,
            current: form.current.into_version()?,
            others: form.others.into_iter().map(FormVersion::into_version).collect::<Result<_, _>>()?,
            metadata: Metadata::from_stored(
                Labels::from_stored(form.labels),
                form.description.map(Description::from_stored),
                form.expires.into_iter().map(|(number, at)| (number, Timestamp::from_millis(at))),
            ),
        })
    }
}

const INVALID: Invalid = Invalid("not the card of a credential");

/// Stored forms of a card. A new field is a new variant.
#[derive(Serialize, Deserialize)]
enum Form<'a> {
    #[serde(borrow)]
    V1(FormV1<'a>),
}

#[derive(Serialize, Deserialize)]
struct FormV1<'a> {
    kind: &'a str,
    namespace: &'a str,
    vend: &'a str,
    highest: i64,
    #[serde(borrow)]
    current: FormVersion<'a>,
    others: Vec<FormVersion<'a>>,
    labels: Vec<(&'a str, &'a str)>,
    description: Option<&'a str>,
    /// Declared expiries by version number.
    expires: Vec<(i64, i64)>,
}

#[derive(Serialize, Deserialize)]
struct FormVersion<'a> {
    number: i64,
    id: [u8; 16],
    created_at: i64,
    /// When it stopped being the current version, and when it is destroyed.
    superseded: Option<(i64, i64)>,
    expires_at: Option<i64>,
    information: &'a str,
}

impl<'a> FormVersion<'a> {
    fn of(version: &'a CardVersion) -> Self {
        Self {
            number: version.number,
            id: *version.id.as_bytes(),
            created_at: version.created_at.as_millis(),
            superseded: version.superseded.map(|it| (it.at.as_millis(), it.destroy_at.as_millis())),
            expires_at: version.expires_at.map(Timestamp::as_millis),
            information: version.information.as_json(),
        }
    }

    fn into_version(self) -> Result<CardVersion, Invalid> {
        let moment = Timestamp::from_millis;
        Ok(CardVersion {
            number: self.number,
            id: VersionId::from_bytes(self.id),
            created_at: moment(self.created_at),
            superseded: self
                .superseded
                .map(|(at, destroy_at)| Superseded { at: moment(at), destroy_at: moment(destroy_at) }),
            expires_at: self.expires_at.map(moment),
            information: Information::from_authenticated(self.information.to_owned())?,
        })
    }
}
