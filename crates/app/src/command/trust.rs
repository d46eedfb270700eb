//! Syntax of trusts on the command line: JSON, or the name of a pipeline or service account.

use serde_json::{Value, json};

const GITHUB: &str = "github:OWNER[@ID]/REPO[@ID][@BRANCH][,environment=NAME], with both ids or none";
const GITLAB: &str = "gitlab:GROUP/PROJECT[@BRANCH]";
/// The values of `--trust`, for its error messages.
pub(crate) const FORMS: &str = "JSON, or github:OWNER[@ID]/REPO[@ID][@BRANCH][,environment=NAME], \
                                gitlab:GROUP/PROJECT[@BRANCH] or kubernetes:ISSUER:NAMESPACE/SERVICEACCOUNT";

/// Converts the text of a trust to the HTTP API's JSON.
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text).map_err(|error| format!("is not JSON: {error}"));
    }
    let (kind, rest) = text.split_once(':').ok_or_else(|| format!("must be {FORMS}"))?;
    match kind {
        "github" => github(rest),
        "gitlab" => gitlab(rest),
        "kubernetes" => kubernetes(rest),
        _ => Err(format!("must be {FORMS}")),
    }
}

fn github(text: &str) -> Result<Value, String> {
    let (place, environment) = match text.split_once(",environment=") {
        Some((place, environment)) => (place, Some(environment)),
        None => (text, None),
    };
    let wrong = || format!("must be {GITHUB}");
    let (owner, rest) = place.split_once('/').ok_or_else(wrong)?;
    let (owner, owner_id) = split_at_sign(owner);
    // GitHub includes either both numeric IDs in the subject, or none.
    let ((repository, repository_id), branch) = match owner_id {
        None => {
            let (repository, branch) = split_at_sign(rest);
            ((repository, None), branch)
        }
        Some(_) => {
            let (repository, rest) = rest.split_once('@').ok_or_else(wrong)?;
            let (id, branch) = split_at_sign(rest);
            ((repository, Some(id)), branch)
        }
    };
    let is_id = |id: &str| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
    let mac_is_valid = [owner, repository].iter().all(|name| is_name(name) && !name.contains('/'))
        && owner_id.into_iter().chain(repository_id).all(is_id)
        && branch != Some("")
        && environment != Some("");
    if !mac_is_valid {
        return Err(wrong());
    }
    let mut claims = serde_json::Map::new();
    let subject = match (owner_id, repository_id) {
        (Some(owner_id), Some(repository_id)) => {
            claims.insert("/repository_owner_id".to_owned(), owner_id.into());
            claims.insert("/repository_id".to_owned(), repository_id.into());
            format!("repo:{owner}@{owner_id}/{repository}@{repository_id}")
        }
        _ => format!("repo:{owner}/{repository}"),
    };
    let reference = branch.map(reference);
    // A job with an environment has it in its subject instead of the branch. GitHub escapes colons in its name.
    let subject = match (environment, &reference) {
        (Some(environment), _) => format!("{subject}:environment:{}", environment.replace(':', "%3A")),
        (None, Some(reference)) => format!("{subject}:ref:{reference}"),
        (None, None) => format!("{subject}:*"),
    };
    claims.insert("/sub".to_owned(), subject.into());
    if let (Some(_), Some(reference)) = (environment, reference) {
        claims.insert("/ref".to_owned(), reference.into());
    }
    Ok(json!({"issuer": "github", "claims": claims}))
}

/// Returns the ref of a branch name. A full ref name stays unchanged.
fn reference(text: &str) -> String {
    if text.starts_with("refs/") { text.to_owned() } else { format!("refs/heads/{text}") }
}

fn gitlab(text: &str) -> Result<Value, String> {
    let (project, branch) = split_at_sign(text);
    let mac_is_valid = project.contains('/') && project.split('/').all(is_name) && branch != Some("");
    if !mac_is_valid {
        return Err(format!("must be {GITLAB}"));
    }
    let subject = match branch.map(|branch| (branch, branch.strip_prefix("refs/tags/"))) {
        Some((_, Some(tag))) => format!("project_path:{project}:ref_type:tag:ref:{tag}"),
        Some((branch, None)) => format!("project_path:{project}:ref_type:branch:ref:{branch}"),
        None => format!("project_path:{project}:*"),
    };
    Ok(json!({"issuer": "gitlab", "claims": {"/sub": subject}}))
}

fn kubernetes(text: &str) -> Result<Value, String> {
    let parts = text.split_once(':').and_then(|(issuer, account)| Some((issuer, account.split_once('/')?)));
    let Some((issuer, (namespace, account))) =
        parts.filter(|(_, (namespace, account))| is_name(namespace) && is_name(account) && !account.contains('/'))
    else {
        return Err("must be kubernetes:ISSUER:NAMESPACE/SERVICEACCOUNT".to_owned());
    };
    Ok(json!({"issuer": issuer, "claims": {"/sub": format!("system:serviceaccount:{namespace}:{account}")}}))
}

/// Splits the text at the first `@`.
fn split_at_sign(text: &str) -> (&str, Option<&str>) {
    text.split_once('@').map_or((text, None), |(place, branch)| (place, Some(branch)))
}

/// Returns whether the text is a valid name. A colon or wildcard would change which part of the subject is matched.
fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.contains(['*', ',', ' ', ':'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(text: &str) -> Option<String> {
        parse(text).ok()?.pointer("/claims/~1sub")?.as_str().map(str::to_owned)
    }

    #[test]
    fn presets_become_trusts() {
        for (text, expected) in [
            ("github:acme/etl", "repo:acme/etl:*"),
            ("github:acme/etl@main", "repo:acme/etl:ref:refs/heads/main"),
            ("github:acme/etl@7", "repo:acme/etl:ref:refs/heads/7"),
            ("github:acme/etl@release/*", "repo:acme/etl:ref:refs/heads/release/*"),
            ("github:acme/etl@refs/tags/v1@a", "repo:acme/etl:ref:refs/tags/v1@a"),
            ("github:acme/etl,environment=prod", "repo:acme/etl:environment:prod"),
            ("github:acme/etl,environment=a:b, c", "repo:acme/etl:environment:a%3Ab, c"),
            ("github:acme@1/etl@2", "repo:acme@1/etl@2:*"),
            ("github:acme@1/etl@2@main", "repo:acme@1/etl@2:ref:refs/heads/main"),
            ("github:acme@1/etl@2@a@b/c", "repo:acme@1/etl@2:ref:refs/heads/a@b/c"),
            ("github:acme@1/etl@2@main,environment=prod", "repo:acme@1/etl@2:environment:prod"),
            ("gitlab:acme/data/etl", "project_path:acme/data/etl:*"),
            ("gitlab:acme/etl@main", "project_path:acme/etl:ref_type:branch:ref:main"),
            ("gitlab:acme/etl@refs/tags/v1", "project_path:acme/etl:ref_type:tag:ref:v1"),
            ("kubernetes:prod:etl/nightly", "system:serviceaccount:etl:nightly"),
            (r#"{"issuer": "own", "claims": {"/sub": "job-7"}}"#, "job-7"),
        ] {
            assert_eq!(subject(text).as_deref(), Some(expected), "{text}");
        }
        let both = parse("github:acme/etl@main,environment=prod").unwrap_or_default();
        assert_eq!(both.pointer("/claims/~1ref").and_then(Value::as_str), Some("refs/heads/main"));
    }

    #[test]
    fn github_ids_are_pinned_as_claims() {
        let trust = parse("github:example-org@1000001/etl@2000002@main").unwrap_or_default();
        let expected = json!({
            "/sub": "repo:example-org@1000001/etl@2000002:ref:refs/heads/main",
            "/repository_owner_id": "1000001",
            "/repository_id": "2000002",
        });
        assert_eq!(trust["claims"], expected);
    }

    #[test]
    fn malformed_presets_are_refused() {
        for wrong in [
            "",
            "acme/etl",
            "github:acme",
            "github:*/etl",
            "github:acme/etl/x",
            "github:acme/etl@",
            "github:acme/etl,environment=",
            "github:acme@1/etl",
            "github:acme@1/etl@main",
            "github:acme@x/etl@2",
            "github:acme@1/etl@2@",
            "gitlab:/x",
            "gitlab:acme",
            "kubernetes:etl/nightly",
            "kubernetes:prod:etl/a/b",
            "{",
            "x:y",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
