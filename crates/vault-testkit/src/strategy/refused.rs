//! Invalid values, each with the error that it must be rejected with, or without if only one error is possible.

use super::{Members, credential_members, integration_token, object, quoted};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use std::fmt::Debug;
use vault_core::activation::{ActivationTtl, Purpose};
use vault_core::credential::{CredentialType, Description, Labels};
use vault_core::email::EmailAddress;
use vault_core::field::FieldCode;
use vault_core::integration::{IntegrationName, MAX_OVERLAP_SECONDS, NamespacePatterns};
use vault_core::organization::OrganizationName;
use vault_core::password::{MAX_BYTES, MIN_CHARACTERS, PasswordError};
use vault_core::time::Ttl;

/// Characters that are invisible or separate, join or end text: controls and format characters.
const UNSEEN: [char; 9] = ['\0', '\n', '\t', '\u{7f}', '\u{85}', '\u{200b}', '\u{202e}', '\u{2028}', '\u{200f}'];

fn labelled<T: Clone + Debug + 'static>(
    code: FieldCode,
    texts: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<(T, FieldCode)> {
    texts.prop_map(move |text| (text, code)).boxed()
}

/// Generates text that is not a [`Namespace`](vault_core::namespace::Namespace).
pub fn namespace() -> impl Strategy<Value = (String, FieldCode)> {
    let foreign = "[A-Za-z0-9][a-z/]{0,10}[ \\\\?:#%@äé\u{0}\n\u{200b}][a-z/]{0,10}";
    prop_oneof![
        labelled(FieldCode::Blank, Just(String::new())),
        labelled(FieldCode::TooLong, "[A-Za-z0-9][A-Za-z0-9._/-]{128,300}"),
        labelled(FieldCode::Malformed, foreign),
        labelled(FieldCode::Malformed, "[._/-][A-Za-z0-9._/-]{0,100}"),
        // It would appear in lists and in the audit log.
        labelled(FieldCode::NotAllowed, integration_token()),
    ]
}

/// Generates text that is not a [`NamespacePattern`](vault_core::integration::NamespacePattern).
pub fn namespace_pattern() -> impl Strategy<Value = (String, FieldCode)> {
    prop_oneof![
        namespace(),
        namespace().prop_map(|(text, code)| (format!("{text}/*"), code)),
        labelled(FieldCode::Malformed, "[a-z/]{0,5}\\*[a-z]{1,5}|[a-z]{0,5}\\*|[a-z]{1,5}/\\*\\*"),
    ]
}

/// Invalid [`NamespacePatterns`], with the index of the first violation, or `None` for the list itself.
pub fn namespace_patterns() -> impl Strategy<Value = (Vec<String>, Option<usize>, FieldCode)> {
    let sound = || vec("[a-z]{1,9}(/\\*)?", 0..5);
    let too_many = vec("[a-z]{1,9}", NamespacePatterns::MAX + 1..NamespacePatterns::MAX + 20);
    prop_oneof![
        Just((Vec::new(), None, FieldCode::Blank)),
        too_many.prop_map(|texts| (texts, None, FieldCode::TooLong)),
        (sound(), namespace_pattern(), sound()).prop_map(|(mut texts, (violation, code), rest)| {
            let place = texts.len();
            texts.push(violation);
            texts.extend(rest);
            (texts, Some(place), code)
        }),
    ]
}

/// Generates text that is not 1 to `most` printable characters.
fn printable(most: usize) -> impl Strategy<Value = (String, FieldCode)> {
    let long = most + 1..most + 100;
    let unseen = ("[a-z ]{0,20}", select(UNSEEN.to_vec()), "[a-z ]{0,20}");
    prop_oneof![
        labelled(FieldCode::Blank, "[ \t\n\u{a0}]{0,9}"),
        labelled(FieldCode::TooLong, vec("[a-zäж😀]", long).prop_map(|characters| characters.concat())),
        labelled(FieldCode::ControlCharacter, unseen.prop_map(|(before, c, after)| format!("a{before}{c}{after}z"))),
    ]
}

/// Generates text that is not an [`IntegrationName`].
pub fn integration_name() -> impl Strategy<Value = (String, FieldCode)> {
    let surrounded = "[ \t\u{a0}][a-z]{1,20}|[a-z]{1,20}[ \n\u{2003}]";
    prop_oneof![3 => printable(IntegrationName::MAX_LENGTH), 1 => labelled(FieldCode::Surrounded, surrounded)]
}

/// Generates text that is not a [`Purpose`].
pub fn purpose() -> impl Strategy<Value = (String, FieldCode)> {
    printable(Purpose::MAX_LENGTH)
}

/// Generates text that is not a [`Description`].
pub fn description() -> impl Strategy<Value = (String, FieldCode)> {
    printable(Description::MAX_LENGTH)
}

/// Generates text that is not an [`OrganizationName`].
pub fn organization_name() -> impl Strategy<Value = String> {
    let surrounded = "[ \t\u{a0}][a-z]{1,20}|[a-z]{1,20}[ \n\u{2003}]";
    prop_oneof![printable(OrganizationName::MAX_LENGTH).prop_map(|(text, _)| text), surrounded]
}

/// Generates text that is not an [`EmailAddress`].
pub fn email() -> impl Strategy<Value = String> {
    let (local, domain) = ("[a-z0-9]{1,12}", "[a-z]{1,12}\\.example");
    let locals = prop_oneof![
        "",                                                // no local part
        "\"[a-z ]{1,8}\"",                                 // quoted
        "[a-z]{0,5}[ \t\n\\(\\)<>,;:\\\\]{1,2}[a-z]{0,5}", // spaces, comments, lists
        "\\.[a-z]{1,9}",                                   // dots at the edges and in a row
        "[a-z]{1,9}\\.",
        "[a-z]{1,4}\\.\\.[a-z]{1,4}",
        "[a-z]{0,4}[äéжß][a-z]{0,4}", // not ASCII
        "[a-z]{65,90}",               // too long
    ];
    let domains = prop_oneof![
        "",
        "\\[127\\.0\\.0\\.[0-9]\\]", // literals and numbers
        "([0-9]{1,3}\\.){1,3}[0-9]{1,3}",
        "[a-z]{1,5}\\.\\.[a-z]{1,5}",
        "[a-z]{1,9}\\.example\\.",
        "-[a-z]{1,9}\\.example",
        "[a-z]{1,9}-\\.example",
        "[a-z]{1,5}_[a-z]{1,5}\\.example",
        "xn--[a-z]{1,6}-\\.example", // no label that is encoded so
        "[a-z]{1,5}[ \n\u{0}][a-z]{1,5}\\.example",
        "[a-z]{64}\\.example", // a label too long
        "([a-z]{60}\\.){5}example",
    ];
    prop_oneof![
        "[a-z0-9.]{0,20}",
        (locals, domain).prop_map(|(local, domain)| format!("{local}@{domain}")),
        (local, domains).prop_map(|(local, domain)| format!("{local}@{domain}")),
        (local, domain).prop_map(|(local, domain)| format!(" {local}@{domain}")),
        (local, domain).prop_map(|(local, domain)| format!("{local}@{domain} ")),
    ]
}

/// Generates text that is not an [`IdempotencyKey`](vault_core::usecase::IdempotencyKey).
pub fn idempotency_key() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[!-~]{256,300}", "[!-~]{0,20}[ \t\n\u{7f}äé\u{200b}][!-~]{0,20}"]
}

/// Generates other spellings of IDs, which are invalid.
pub fn id() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9A-F]{7}A-[0-9A-F]{4}-4[0-9A-F]{3}-8[0-9A-F]{3}-[0-9A-F]{12}",
        "[0-9a-f]{32}",
        "\\{[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}\\}",
        "urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}",
        "[0-9a-f-]{0,35}",
        "[g-z]{36}",
    ]
}

/// Generates other spellings of the name `of`, which are invalid.
pub fn spelling(of: &str) -> impl Strategy<Value = String> {
    let cut = of[..of.len() - 1].to_owned();
    select(vec![format!(" {of}"), format!("{of} "), format!("{of}\0"), of.to_uppercase(), cut, format!("{of}{of}")])
}

/// Generates numbers that are not a [`Ttl`], each with its upper limit.
pub fn ttl() -> impl Strategy<Value = (i64, u32)> {
    (Ttl::MIN..=Ttl::MAX).prop_flat_map(|ceiling| {
        let above = i64::from(ceiling) + 1;
        prop_oneof![i64::MIN..i64::from(Ttl::MIN), Just(i64::from(Ttl::MIN) - 1), Just(above), above..=i64::MAX]
            .prop_map(move |requested| (requested, ceiling))
    })
}

/// Generates numbers that are not an [`ActivationTtl`].
pub fn activation_ttl() -> impl Strategy<Value = i64> {
    prop_oneof![
        i64::MIN..i64::from(ActivationTtl::MIN),
        Just(i64::from(ActivationTtl::MIN) - 1),
        Just(i64::from(ActivationTtl::MAX) + 1),
        i64::from(ActivationTtl::MAX) + 1..=i64::MAX,
    ]
}

/// Generates numbers that are not an [`Overlap`](vault_core::integration::Overlap).
pub fn overlap() -> impl Strategy<Value = i64> {
    prop_oneof![i64::MIN..0, Just(-1), Just(MAX_OVERLAP_SECONDS + 1), MAX_OVERLAP_SECONDS + 1..=i64::MAX]
}

/// Generates text that is not a time in RFC 3339.
pub fn rfc3339() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,20}",
        "20[0-9]{2}-0[1-9]-[12][0-9]",                                 // a day
        "20[0-9]{2}-0[1-9]-[12][0-9]T[01][0-9]:[0-5][0-9]:[0-5][0-9]", // of no zone
        "20[0-9]{2}-(00|1[3-9])-[12][0-9]T00:00:00Z",
        "20[0-9]{2}-02-3[01]T00:00:00Z",
        "19[0-6][0-9]-0[1-9]-[12][0-9]T00:00:00Z", // before 1970
        "[0-9]{10}",
    ]
}

/// Generates text that is not an enrolment code.
pub fn enrolment_code() -> impl Strategy<Value = String> {
    prop_oneof!["[a-km-np-z2-9]{0,25}", "[a-km-np-z2-9]{27,40}", "[a-km-np-z2-9]{25}[A-Zlo01 -]", "\\PC{0,30}"]
        .prop_filter("a code", |text| {
            !(text.len() == 26 && text.bytes().all(|byte| b"abcdefghijkmnpqrstuvwxyz23456789".contains(&byte)))
        })
}

/// Invalid texts of an [`IntegrationToken`](vault_core::integration::IntegrationToken): other texts, and tokens with
/// typing errors.
pub fn integration_token_text() -> impl Strategy<Value = String> {
    let corrupted =
        (integration_token(), any::<Index>(), "[A-Za-z0-9]").prop_filter_map("the same", |(text, at, typed)| {
            let at = at.index(text.len());
            let corrupted = format!("{}{typed}{}", &text[..at], &text[at + 1..]);
            (corrupted != text).then_some(corrupted)
        });
    prop_oneof![corrupted, integration_token().prop_map(|text| text + " "), "(ovi_)?[A-Za-z0-9]{0,40}"]
}

/// Generates text that is not a [`LabelFilter`](vault_core::credential::LabelFilter).
pub fn label_filter() -> impl Strategy<Value = (String, FieldCode)> {
    labelled(
        FieldCode::Malformed,
        prop_oneof![
            "[a-z0-9]{0,20}", // no colon
            ":[a-z]{0,9}",    // no name
            "[a-z]{0,5}[A-Z *ä][a-z]{0,5}:[a-z]{0,9}",
            "[a-z]{64,70}:[a-z]{0,9}",
            "[a-z]{1,9}:[a-z]{0,5}[ :/*ä][a-z]{0,5}",
            "[a-z]{1,9}:[a-z]{64,70}",
        ],
    )
}

/// Invalid [`Labels`]: JSON, and the position of the violation as a JSON pointer.
pub fn labels() -> impl Strategy<Value = (String, String, FieldCode)> {
    let here = |code, texts: BoxedStrategy<String>| texts.prop_map(move |text| (text, String::new(), code)).boxed();
    let at = |code, values: BoxedStrategy<String>| {
        ("[a-z0-9._-]{1,63}", values)
            .prop_map(move |(name, value)| (format!("{{\"{name}\":{value}}}"), format!("/{name}"), code))
            .boxed()
    };
    let bad_names = prop_oneof!["", "[a-z]{0,5}[A-Z *:][a-z]{0,5}", "[a-z]{64,70}"];
    let bad_values = prop_oneof!["[a-z]{0,5}[ :/*ä][a-z]{0,5}", "[a-z]{64,70}"];
    prop_oneof![
        here(FieldCode::WrongType, select(vec!["[]", "1", "\"a\"", "true", "null"]).prop_map(str::to_owned).boxed()),
        here(FieldCode::WrongType, "[a-z]{1,9}".prop_map(|name| format!("{{\"{name}\":null}}")).boxed()),
        here(FieldCode::Malformed, bad_names.prop_map(|name| format!("{{\"{name}\":\"a\"}}")).boxed()),
        here(
            FieldCode::TooLong,
            (Labels::MAX + 1..Labels::MAX + 20)
                .prop_map(|count| object(&(0..count).map(|n| (format!("l{n}"), quoted("a"))).collect::<Vec<_>>()))
                .boxed(),
        ),
        at(FieldCode::Malformed, bad_values.prop_map(quoted).boxed()),
        at(FieldCode::WrongType, select(vec!["1", "true", "[]", "{}"]).prop_map(str::to_owned).boxed()),
    ]
}

/// Generates passwords that are not allowed for the account `email` of `organization`.
pub fn password(email: &EmailAddress, organization: &str) -> impl Strategy<Value = (String, PasswordError)> + use<> {
    let guesses = [email.as_str(), email.local_part(), organization, "orgvault"];
    let guesses: Vec<_> =
        guesses.into_iter().filter(|guess| guess.chars().count() >= MIN_CHARACTERS).map(str::to_owned).collect();
    // For the address 1@example.com, 12345678 is rejected because of the address before it is rejected as common.
    let begins = [email.local_part().to_lowercase(), organization.to_lowercase()];
    let is_guess = |text: &str| {
        let folded = text.to_lowercase();
        let mut rests = begins.iter().filter_map(|begin| folded.strip_prefix(begin.as_str()));
        rests.any(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '!'))
    };
    let mut common = vec!["password", "Password1", "12345678", "QWERTYUIOP", "iloveyou", "trustno1"];
    common.retain(|text| !is_guess(text));
    prop_oneof![
        "\\PC{0,7}".prop_map(|text| (text, PasswordError::TooShort)),
        vec("[a-zж🔐]", MAX_BYTES + 1..MAX_BYTES + 50).prop_map(|text| (text.concat(), PasswordError::TooLong)),
        select(common).prop_map(|text| (text.to_owned(), PasswordError::Common)),
        (select(guesses), "[0-9!]{0,4}", any::<bool>()).prop_map(|(guess, end, upper)| {
            let guess = if upper { guess.to_uppercase() } else { guess };
            (guess + &end, PasswordError::Guessable)
        }),
    ]
}

/// Returns `text` as screens, shells and templates often damage it.
pub fn corrupted(text: &str) -> Vec<(String, FieldCode)> {
    let tail: String = text.chars().skip(text.chars().count().saturating_sub(4)).collect();
    vec![
        (String::new(), FieldCode::Blank),
        (" \t ".into(), FieldCode::Blank),
        (format!("\"{text}\""), FieldCode::Surrounded),
        (format!("'{text}'"), FieldCode::Surrounded),
        (format!("\u{201c}{text}\u{201d}"), FieldCode::Surrounded),
        ("***".into(), FieldCode::Masked),
        ("\u{2022}\u{2022}\u{2022}\u{2022}".into(), FieldCode::Masked),
        ("<redacted>".into(), FieldCode::Masked),
        ("[REDACTED]".into(), FieldCode::Masked),
        (format!("****************{tail}"), FieldCode::Masked),
        (format!("\u{2026}{tail}"), FieldCode::Masked),
        ("${SECRET}".into(), FieldCode::Placeholder),
        ("{{ secret }}".into(), FieldCode::Placeholder),
        ("$(cat secret)".into(), FieldCode::Placeholder),
        ("%SECRET%".into(), FieldCode::Placeholder),
        ("<your-secret>".into(), FieldCode::Placeholder),
        ("a".repeat(16 * 1024 + 1), FieldCode::TooLong),
    ]
}

/// Returns damaged values as [`corrupted`] does, for values that contain no white space or control characters.
pub fn corrupted_by_space(text: &str) -> Vec<(String, FieldCode)> {
    vec![
        (format!(" {text}"), FieldCode::Surrounded),
        (format!("{text}\n"), FieldCode::Surrounded),
        (format!("\u{feff}{text}"), FieldCode::Surrounded),
        (format!("{text}\u{a0}"), FieldCode::Surrounded),
        (format!("a\0{text}"), FieldCode::ControlCharacter),
        (format!("{text}\u{1b}[0m"), FieldCode::ControlCharacter),
    ]
}

/// Invalid data of a credential of a type: JSON, and the position of the violation as a JSON pointer.
pub fn credential_json() -> impl Strategy<Value = (CredentialType, String, String, FieldCode)> {
    (credential_members(), any::<Index>(), any::<Index>(), option::weighted(0.5, 0_u8..4)).prop_map(
        |((kind, mut members), at, which, form)| {
            let at = at.index(members.len());
            let name = members[at].0;
            let required = kind.fields().iter().any(|field| field.name == name && field.required);
            let is_text = members[at].1.starts_with('"');
            let code = match form {
                Some(0) if required => {
                    members.remove(at);
                    FieldCode::Required
                }
                Some(1) => {
                    let again = members[at].clone();
                    members.push(again);
                    FieldCode::Duplicate
                }
                None if is_text => {
                    let text = members[at].1.trim_matches('"').to_owned();
                    let mut corrupted = corrupted(&text);
                    corrupted.extend(corrupted_by_space(&text));
                    let (value, code) = corrupted.swap_remove(which.index(corrupted.len()));
                    members[at].1 = escaped(&value);
                    code
                }
                Some(2) => return surplus(kind, members),
                _ => {
                    "7".clone_into(&mut members[at].1);
                    FieldCode::WrongType
                }
            };
            (kind, object(&members), format!("/{name}"), code)
        },
    )
}

fn surplus(kind: CredentialType, mut members: Members) -> (CredentialType, String, String, FieldCode) {
    members.push(("surplus", "{}".to_owned()));
    (kind, object(&members), "/surplus".to_owned(), FieldCode::Unknown)
}

/// Returns any text as JSON.
fn escaped(text: &str) -> String {
    let escape = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    };
    quoted(text.chars().map(escape).collect::<String>())
}
