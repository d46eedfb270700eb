//! Selection of a namespace's credentials. An ambiguous selection is an error.

use super::names::named;
use super::opened::{Candidate, Opened};
use crate::failure::Failure;
use crate::form::FormName;
use clap::Args;
use std::fmt::{self, Write as _};
use std::str::FromStr;
use vault_core::credential::CredentialType;
use vault_core::id::CredentialId;
use vault_core::namespace::Namespace;

/// Flags that select credentials of a namespace.
#[derive(Args)]
pub(crate) struct ChoiceArgs {
    /// Only the credential with this ID
    #[arg(long, value_name = "ID")]
    id: Option<CredentialId>,
    /// Only credentials of this type
    #[arg(long = "type", value_parser = named(CredentialType::ISSUED.map(CredentialType::as_str), issued))]
    kind: Option<CredentialType>,
    /// Only credentials for this bucket or container; a credential for several buckets is passed on with only this one
    #[arg(long, value_name = "NAME")]
    bucket: Option<String>,
    /// Prefix of the variables, or name of the profile or remote. For several credentials, repeat NAME=ID or NAME=TYPE
    #[arg(long = "name", value_name = "NAME[=ID|TYPE]")]
    names: Vec<Naming>,
}

/// Returns the issued type with the name `text`.
fn issued(text: &str) -> Option<CredentialType> {
    CredentialType::parse(text).filter(|kind| kind.issued_as() == *kind)
}

/// The value of `--name`: `NAME`, `NAME=ID` or `NAME=TYPE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Naming {
    name: FormName,
    of: Option<Pick>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pick {
    Id(CredentialId),
    Type(CredentialType),
}

impl Pick {
    fn fits(self, candidate: &Candidate) -> bool {
        match self {
            Self::Id(wanted) => wanted == candidate.id,
            Self::Type(wanted) => wanted == candidate.kind,
        }
    }
}

impl FromStr for Naming {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, of) = match text.split_once('=') {
            None => (text, None),
            Some((name, of)) => {
                let kind = issued(of).map(Pick::Type);
                let pick = kind.or_else(|| of.parse().ok().map(Pick::Id));
                (name, Some(pick.ok_or("expected the id of a credential or a type after =")?))
            }
        };
        Ok(Self { name: FormName::parse(name).map_err(|violation| violation.to_string())?, of })
    }
}

/// The index of a credential in the list, and its name.
pub(crate) type Chosen = (usize, Option<FormName>);

/// The reason why a selection is invalid or ambiguous.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unclear {
    /// No credential of the namespace matches.
    Nothing(Namespace, Vec<Candidate>),
    /// Several credentials match.
    Several(Namespace, Vec<Candidate>),
    /// One of several names does not select a credential.
    NameAlone,
    /// Two names result in the same variables.
    SameName,
}

impl fmt::Display for Unclear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing(namespace, all) => write!(f, "{namespace} has no matching credential, only:{}", list(all)),
            Self::Several(namespace, matching) => write!(
                f,
                "{namespace} has {} matching credentials. Choose one with --bucket, --type or --id, or name each with \
                 --name NAME=ID:{}",
                matching.len(),
                list(matching)
            ),
            Self::NameAlone => f.write_str("--name: for several credentials, write each as NAME=ID or NAME=TYPE"),
            Self::SameName => {
                f.write_str("--name: two names result in the same variables: case, - and _ are not distinguished")
            }
        }
    }
}

impl std::error::Error for Unclear {}

fn list(credentials: &[Candidate]) -> String {
    let mut text = String::new();
    for Candidate { id, kind, buckets } in credentials {
        let _ = write!(text, "\n  {id}  {kind}  {buckets}"); // writing to a String cannot fail
    }
    text
}

impl ChoiceArgs {
    /// Leaves out what `--bucket` does not select.
    ///
    /// # Errors
    /// No credential is for this bucket.
    pub(crate) fn narrow(&self, opened: &mut Opened) -> Result<(), Failure> {
        let Some(bucket) = &self.bucket else { return Ok(()) };
        opened.credentials.retain_mut(|credential| credential.vended.keep_bucket(bucket));
        match opened.credentials.is_empty() {
            true => Err(Failure::new(format!("{} has no credential for --bucket {bucket}", opened.namespace))),
            false => Ok(()),
        }
    }

    /// Returns the only matching credential of `opened`, or the named ones. Without names, `all` returns every matching
    /// credential, for forms that can contain several.
    pub(crate) fn of(&self, opened: &Opened, all: bool) -> Result<Vec<Chosen>, Unclear> {
        self.among(&opened.namespace, &opened.candidates(), all)
    }

    fn among(&self, namespace: &Namespace, there: &[Candidate], all: bool) -> Result<Vec<Chosen>, Unclear> {
        let fits = |one: &Candidate| {
            self.id.is_none_or(|wanted| wanted == one.id) && self.kind.is_none_or(|wanted| wanted == one.kind)
        };
        let fitting: Vec<usize> = (0..there.len()).filter(|index| fits(&there[*index])).collect();
        if self.names.is_empty() && all && !fitting.is_empty() {
            return Ok(fitting.into_iter().map(|index| (index, None)).collect());
        }
        let only = |indices: Vec<usize>| match indices.as_slice() {
            [] => Err(Unclear::Nothing(namespace.clone(), there.to_vec())),
            [index] => Ok(*index),
            _ => Err(Unclear::Several(
                namespace.clone(),
                indices.into_iter().map(|index| there[index].clone()).collect(),
            )),
        };
        match self.names.as_slice() {
            [] => Ok(vec![(only(fitting)?, None)]),
            [Naming { name, of: None }] => Ok(vec![(only(fitting)?, Some(name.clone()))]),
            names => {
                let mut taken: Vec<String> = Vec::new();
                let mut chosen = Vec::new();
                for Naming { name, of } in names {
                    let of = of.ok_or(Unclear::NameAlone)?;
                    let variables = name.variable_prefix();
                    if taken.contains(&variables) {
                        return Err(Unclear::SameName);
                    }
                    taken.push(variables);
                    let named = fitting.iter().copied().filter(|index| of.fits(&there[*index])).collect();
                    chosen.push((only(named)?, Some(name.clone())));
                }
                Ok(chosen)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use uuid::Uuid;

    fn id(number: u128) -> CredentialId {
        CredentialId::from_uuid(Uuid::from_u128(number))
    }

    fn args(id: Option<CredentialId>, kind: Option<CredentialType>, names: &[&str]) -> ChoiceArgs {
        ChoiceArgs { id, kind, bucket: None, names: names.iter().map(|name| name.parse().expect("a name")).collect() }
    }

    fn namespace() -> Namespace {
        Namespace::parse("a/b", "").expect("a namespace")
    }

    fn candidate(number: u128, kind: CredentialType) -> Candidate {
        Candidate { id: id(number), kind, buckets: format!("bucket-{number}") }
    }

    const S3: CredentialType = CredentialType::S3;
    const GCS: CredentialType = CredentialType::Gcs;

    #[test]
    fn single_credential_is_chosen_and_several_are_listed() {
        let there = [candidate(1, S3), candidate(2, GCS), candidate(3, GCS)];
        let places = |args: ChoiceArgs| {
            let chosen = args.among(&namespace(), &there, false)?;
            Ok(chosen.into_iter().map(|(index, name)| (index, name.map(|name| name.as_str().to_owned()))).collect())
        };
        let one = |index, name: Option<&str>| Ok::<_, Unclear>(vec![(index, name.map(str::to_owned))]);
        assert_eq!(places(args(None, Some(S3), &[])), one(0, None));
        assert_eq!(places(args(Some(id(3)), None, &["x"])), one(2, Some("x")));
        assert_eq!(places(args(None, None, &["x=s3"])), one(0, Some("x")));
        let by_id = format!("To={}", id(3));
        let both = places(args(None, None, &["from=s3", &by_id]));
        assert_eq!(both, Ok(vec![(0, Some("from".to_owned())), (2, Some("To".to_owned()))]));
        assert_eq!(places(args(None, None, &["from=s3", "to"])), Err(Unclear::NameAlone));
        assert_eq!(places(args(None, None, &["a-b=s3", &format!("A_b={}", id(2))])), Err(Unclear::SameName));
        assert_eq!(places(args(Some(id(4)), None, &[])), Err(Unclear::Nothing(namespace(), there.to_vec())));
        assert_eq!(places(args(Some(id(1)), Some(GCS), &[])), Err(Unclear::Nothing(namespace(), there.to_vec())));
        let unclear = places(args(None, Some(GCS), &[])).expect_err("there are two");
        assert_eq!(
            unclear.to_string(),
            "a/b has 2 matching credentials. Choose one with --bucket, --type or --id, or name each with --name NAME=ID:\n  \
             00000000-0000-0000-0000-000000000002  gcs  bucket-2\n  00000000-0000-0000-0000-000000000003  gcs  bucket-3"
        );
    }

    #[test]
    fn names_are_read_strictly() {
        for flawed in ["", "=s3", "a=", "a=S3", "a=b", "1a", "a b", "a=s3=s3", "a={0}"] {
            assert!(flawed.parse::<Naming>().is_err(), "{flawed}");
        }
    }

    fn kinds() -> impl Strategy<Value = CredentialType> {
        proptest::sample::select(CredentialType::ALL.to_vec())
    }

    proptest! {
        /// The selection contains only requested credentials, and succeeds exactly if it is unambiguous.
        #[test]
        fn ambiguous_choice_is_refused(
            kinds_there in proptest::collection::vec(kinds(), 0..6),
            wanted_id in proptest::option::of(0..8_usize),
            wanted_kind in proptest::option::of(kinds()),
            name in any::<bool>(),
            all in any::<bool>(),
        ) {
            let there: Vec<_> = kinds_there.iter().enumerate().map(|(index, kind)| candidate(index as u128, *kind)).collect();
            let wanted_id = wanted_id.map(|index| id(index as u128));
            let fits = |one: &Candidate| {
                wanted_id.is_none_or(|wanted| wanted == one.id) && wanted_kind.is_none_or(|wanted| wanted == one.kind)
            };
            let fitting = there.iter().filter(|one| fits(one)).count();
            let chosen = args(wanted_id, wanted_kind, if name { &["n"] } else { &[] }).among(&namespace(), &there, all);
            match &chosen {
                Ok(chosen) => {
                    prop_assert!(chosen.iter().all(|(index, named)| fits(&there[*index]) && named.is_some() == name));
                    prop_assert_eq!(chosen.len(), fitting);
                    prop_assert!(fitting == 1 || all && !name);
                }
                Err(Unclear::Nothing(_, listed)) => prop_assert!(fitting == 0 && *listed == there),
                Err(Unclear::Several(_, listed)) => prop_assert!((name || !all) && listed.len() == fitting && fitting > 1),
                Err(other) => prop_assert!(false, "{other}"),
            }
        }
    }
}
