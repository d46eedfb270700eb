//! Properties of the parsers for arbitrary bodies and queries. The fuzz targets in `tests/fuzz` check them, and every
//! test run checks them for the seeds. Other builds do not contain this module.

#![allow(clippy::unwrap_used, reason = "a property fails by panicking")]

use crate::body::parse as read;
use crate::problem::ProblemResponse;
use crate::query;
use crate::respond::time_text;
use crate::subject::credentials::{DescribeRequest, SaveRequest, new_credential, patch};
use crate::subject::versions::{ReplaceRequest, replacement};
use actix_web::body::MessageBody as _;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use vault_api::{
    ActivateRequest, ChangeAccountRequest, ChangeIntegrationRequest, ChangePasswordRequest, CheckCredentialRequest,
    CheckRequest, CreateIntegrationRequest, EnrolRequest, InviteRequest, LoginRequest, Problem, ProblemCode,
    PromoteRequest, RenewRequest, RotateIntegrationRequest,
};
use vault_core::credential::CredentialPatch;
use vault_core::credential::{CredentialData, CredentialType, FieldClass, Fingerprint};
use vault_core::cursor::PageRequest;
use vault_core::json::{Limits, parse};
use vault_core::namespace::Namespace;
use vault_core::usecase::NewCredential;

/// Inserted into values to detect whether a response repeats them. `~` occurs in no fixed text and in no repeated name.
const MARK: &str = "~Q9~";

/// A request is either parsed losslessly, or rejected with the name of an invalid field and without its value.
pub fn body(body: &[u8]) {
    assert_read::<LoginRequest>(body);
    assert_read::<InviteRequest>(body);
    assert_read::<ChangeAccountRequest>(body);
    assert_read::<ChangePasswordRequest>(body);
    assert_read::<EnrolRequest>(body);
    assert_read::<CreateIntegrationRequest>(body);
    assert_read::<ChangeIntegrationRequest>(body);
    assert_read::<RotateIntegrationRequest>(body);
    assert_read::<ActivateRequest>(body);
    assert_read::<RenewRequest>(body);
    assert_read::<CheckRequest>(body);
    assert_read::<PromoteRequest>(body);
    assert_read::<CheckCredentialRequest>(body);
}

fn assert_read<T: DeserializeOwned + Serialize>(body: &[u8]) {
    let written = |body: &[u8]| read::<T>(body).map(|request| json!(request));
    match written(body) {
        Ok(request) => assert_eq!(written(request.to_string().as_bytes()).ok(), Some(request)),
        Err(problem_response) => assert_names_its_violations(problem_response, body),
    }
    for marked in marked(body) {
        assert_repeats_nothing(written(&marked).err());
    }
}

fn parse_save(body: &[u8]) -> Result<NewCredential, ProblemResponse> {
    new_credential(read::<SaveRequest>(body)?, CredentialData::parse)
}

fn parse_description(body: &[u8]) -> Result<CredentialPatch, ProblemResponse> {
    patch(read::<DescribeRequest>(body)?)
}

/// A credential is either parsed to one canonical form, which can be decoded again and whose list entry contains no
/// secret, or rejected with the names of invalid fields and without their values.
pub fn save(body: &[u8]) {
    match parse_save(body) {
        Ok(NewCredential { namespace, data, labels, .. }) => {
            assert_one_form(&namespace, &data);
            assert_shows_nothing_secret(body, data.kind());
            let labels = serde_json::to_vec(&json!({ "labels": labels })).unwrap();
            assert!(parse_description(&labels).is_ok(), "labels that a save takes, a patch takes");
        }
        Err(problem_response) => assert_names_its_violations(problem_response, body),
    }
    for marked in marked(body) {
        assert_repeats_nothing(parse_save(&marked).err());
    }
    for kind in CredentialType::ALL {
        assert_replaces_or_refused(body, kind);
    }
    assert_describes_or_refused(body);
}

/// Same as [`save`], for metadata. Labels are serialized unchanged, because a patch of them has only one form.
fn assert_describes_or_refused(body: &[u8]) {
    match parse_description(body) {
        Ok(request) => {
            let CredentialPatch { labels, description, expires_at, vend } = request;
            let mut written = serde_json::Map::new();
            if labels.is_some() {
                let document: Value = serde_json::from_slice(body).unwrap();
                written.insert("labels".into(), document["labels"].clone());
            }
            if let Some(description) = &description {
                let text = description.as_ref().map(|text| text.as_str().to_owned());
                written.insert("description".into(), json!(text));
            }
            if let Some(expires_at) = expires_at {
                written.insert("expires_at".into(), json!(expires_at.map(time_text)));
            }
            if let Some(vend) = vend {
                written.insert("vend".into(), vend.as_str().into());
            }
            let again = parse_description(Value::from(written).to_string().as_bytes()).ok().unwrap();
            assert_eq!((again.labels, again.description), (labels, description));
            assert_eq!((again.expires_at, again.vend), (expires_at, vend));
        }
        Err(problem_response) => assert_names_its_violations(problem_response, body),
    }
    for marked in marked(body) {
        assert_repeats_nothing(parse_description(&marked).err());
    }
}

/// Same as [`save`], for the replacement of a credential of type `kind`.
fn assert_replaces_or_refused(body: &[u8], kind: CredentialType) {
    let replaced = |body: &[u8]| {
        let replacement = replacement(&read::<ReplaceRequest>(body)?, kind, CredentialData::parse)?;
        let data = replacement.data.to_canonical_json().expose().to_vec(); // for comparison
        Ok::<_, ProblemResponse>((replacement.data.kind(), data, replacement.expires_at, replacement.stage))
    };
    match replaced(body) {
        Ok((found, data, expires_at, stage)) => {
            assert_eq!(found, kind);
            let mut again = format!(r#"{{"stage":{stage},"data":{}"#, std::str::from_utf8(&data).unwrap());
            if let Some(end) = expires_at {
                again += &format!(r#","expires_at":"{}""#, time_text(end));
            }
            again.push('}');
            // A key file in a string may exceed the nesting limit as an object.
            if parse(again.as_bytes(), Limits::REQUEST).is_ok() {
                assert_eq!(replaced(again.as_bytes()).ok(), Some((found, data, expires_at, stage)));
            }
        }
        Err(problem_response) => assert_names_its_violations(problem_response, body),
    }
    for marked in marked(body) {
        assert_repeats_nothing(replaced(&marked).err());
    }
}

fn assert_one_form(namespace: &Namespace, data: &CredentialData) {
    let (kind, canonical) = (data.kind(), data.to_canonical_json());
    let canonical = canonical.expose(); // parsed again
    let opened = CredentialData::from_canonical_json(kind, canonical).unwrap();
    assert_eq!((opened.kind(), opened.to_canonical_json().expose()), (kind, canonical));
    let text = std::str::from_utf8(canonical).unwrap();
    let again = format!(r#"{{"type":"{kind}","namespace":"{namespace}","data":{text}}}"#);
    // A key file in a string may exceed the nesting limit as an object.
    if parse(again.as_bytes(), Limits::REQUEST).is_ok() {
        let same = parse_save(again.as_bytes()).ok().unwrap();
        assert_eq!((same.namespace.as_str(), same.data.kind()), (namespace.as_str(), kind));
        assert_eq!(same.data.to_canonical_json().expose(), canonical);
    }
}

/// Marks the secrets of the accepted `body` and asserts that its information contains no mark.
fn assert_shows_nothing_secret(body: &[u8], kind: CredentialType) {
    let Ok(mut document) = serde_json::from_slice::<Value>(body) else { return };
    if document.to_string().contains(MARK) {
        return; // a fuzzer may produce the mark itself, in a value that is not secret
    }
    let secret = |name: &str| kind.fields().iter().any(|field| field.name == name && field.class == FieldClass::Secret);
    let Some(members) = document.get_mut("data").and_then(Value::as_object_mut) else { return };
    for (_, value) in members.iter_mut().filter(|(name, _)| secret(name)) {
        // After a slash, so that it does not become part of a link's host, which is not secret.
        each_text(value, &mut |text| text.push_str(&format!("/{MARK}")));
    }
    if let Ok(NewCredential { data, .. }) = parse_save(document.to_string().as_bytes()) {
        let information = data.information(Fingerprint::from_digest(&[0; 32]));
        assert!(!information.as_json().contains(MARK), "a list shows a secret");
        let shown: Value = serde_json::from_str(information.as_json()).unwrap();
        assert!(shown.is_object());
    }
}

/// The query of a list is either parsed losslessly, so that the link to the next page selects the same list, or
/// rejected with the names of invalid parameters and without their values.
pub fn list_query(text: &str) {
    match query::list(Some(text)) {
        Ok((filter, page)) => {
            let next = format!("{}&limit={}&cursor=AA", query::list_path("", &filter), page.limit);
            let (same, next) = query::list(next.strip_prefix('?').or(Some(&next))).ok().unwrap();
            assert_eq!((same, next), (filter, PageRequest { cursor: Some("AA".to_owned()), ..page }));
        }
        Err(problem_response) => {
            let problem = problem(problem_response);
            assert!(!problem.errors.is_empty() || problem.detail == "The query is not percent-encoded UTF-8.");
        }
    }
    let marked: Vec<_> = text.split('&').map(|pair| format!("{pair}{MARK}")).collect();
    assert_repeats_nothing(query::list(Some(&marked.join("&"))).err());
}

/// Asserts that a rejection has status 400 or 422 and names at least one field, unless the body is not a JSON document.
fn assert_names_its_violations(problem_response: ProblemResponse, body: &[u8]) {
    let problem = problem(problem_response);
    assert!(!problem.errors.is_empty() || parse(body, Limits::REQUEST).is_err(), "{problem:?}");
}

fn assert_repeats_nothing(problem_response: Option<ProblemResponse>) {
    if let Some(problem) = problem_response.map(problem) {
        let text = serde_json::to_string(&problem).unwrap();
        assert!(!text.contains(MARK), "{text}");
    }
}

/// Returns the problem document after validating its format.
fn problem(problem_response: ProblemResponse) -> Problem {
    let response = problem_response.respond("00000000-0000-0000-0000-000000000000");
    let status = response.status().as_u16();
    let body = response.into_body().try_into_bytes().ok().unwrap();
    let problem: Problem = serde_json::from_slice(&body).unwrap();
    let code = ProblemCode::parse(&problem.code).unwrap();
    assert!(matches!(code, ProblemCode::MalformedRequest | ProblemCode::RefusedValue), "{problem:?}");
    assert_eq!((problem.status, status), (code.status(), code.status()));
    for error in &problem.errors {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/_.-".contains(&byte);
        assert!(error.pointer.bytes().all(plain), "{error:?}");
        assert!(error.pointer.is_empty() || error.pointer.starts_with('/'), "{error:?}");
        assert!(!error.code.is_empty() && !error.detail.is_empty(), "{error:?}");
    }
    problem
}

/// Returns the document `body` with a mark in every string, and a second version with a mark in every name.
fn marked(body: &[u8]) -> Vec<Vec<u8>> {
    let Ok(document) = serde_json::from_slice::<Value>(body) else { return Vec::new() };
    let mut values = document.clone();
    each_text(&mut values, &mut |text| {
        let place = match body.len() % 3 {
            0 => 0,
            1 => (0..=text.len() / 2).rev().find(|place| text.is_char_boundary(*place)).unwrap_or(0),
            _ => text.len(),
        };
        // The type determines how the document is parsed, so it stays unchanged.
        if CredentialType::parse(text).is_none() {
            text.insert_str(place, MARK);
        }
    });
    [values, with_marked_names(document)].map(|document| document.to_string().into_bytes()).into()
}

fn each_text(value: &mut Value, edit: &mut dyn FnMut(&mut String)) {
    match value {
        Value::String(text) => edit(text),
        Value::Array(elements) => elements.iter_mut().for_each(|element| each_text(element, edit)),
        Value::Object(members) => members.values_mut().for_each(|member| each_text(member, edit)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn with_marked_names(value: Value) -> Value {
    match value {
        Value::Array(elements) => elements.into_iter().map(with_marked_names).collect(),
        Value::Object(members) => {
            let marked = |(name, value)| (format!("{name}{MARK}"), with_marked_names(value));
            Value::Object(members.into_iter().map(marked).collect())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use vault_testkit::seed::{edited_seeds, edited_text_seeds, seeds};
    use vault_testkit::strategy::credential_json;

    #[test]
    fn fuzzing_seeds_reach_their_targets() {
        let accepted = |read: &dyn Fn(&[u8]) -> bool, target| seeds(target).iter().filter(|seed| read(seed)).count();
        let request = |body: &[u8]| {
            [read::<LoginRequest>(body).is_ok(), read::<InviteRequest>(body).is_ok()].contains(&true)
                || [read::<ActivateRequest>(body).is_ok(), read::<CheckRequest>(body).is_ok()].contains(&true)
        };
        assert!(accepted(&request, "body") > 3);
        let list = |query: &[u8]| query::list(std::str::from_utf8(query).ok()).is_ok();
        assert!(accepted(&list, "cursor") > 0);
        for kind in CredentialType::ALL {
            let save = |body: &[u8]| parse_save(body).is_ok_and(|request| request.data.kind() == kind);
            assert!(accepted(&save, "save") > 0, "{kind}");
            let replace =
                |body: &[u8]| read(body).is_ok_and(|body| replacement(&body, kind, CredentialData::parse).is_ok());
            assert!(accepted(&replace, "save") > 0, "a replacement of {kind}");
        }
    }

    proptest! {
        #[test]
        fn every_request_is_read_or_refused_by_name(found in edited_seeds("body")) {
            body(&found);
        }

        #[test]
        fn every_save_is_read_or_refused_by_name(body in edited_seeds("save")) {
            save(&body);
        }

        #[test]
        fn every_query_is_read_or_refused_by_name(text in edited_text_seeds("cursor")) {
            list_query(&text);
        }

        #[test]
        fn every_good_credential_is_saved((kind, data) in credential_json()) {
            let body = format!(r#"{{"type":"{kind}","namespace":"a","data":{data}}}"#);
            prop_assert!(parse_save(body.as_bytes()).is_ok());
            save(body.as_bytes());
        }
    }
}
