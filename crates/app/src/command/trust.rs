//! How trusts are written on the command line: as JSON, or by what people know of their pipelines.

use serde_json::{Value, json};

/// What `--trust` takes, in its help.
pub(crate) const FORMS: &str = "JSON, or github:OWNER/REPO[@BRANCH][,environment=NAME], gitlab:GROUP/PROJECT[@BRANCH] or \
                                kubernetes:ISSUER:NAMESPACE/SERVICEACCOUNT";

/// The trust in `text`, as the interface takes it.
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
    let (repository, branch) = branch_of(place);
    two_parts(repository, "github:OWNER/REPO[@BRANCH][,environment=NAME]")?;
    let mut claims = serde_json::Map::new();
    // A job with an environment has it as its subject, whatever its branch.
    let subject = match (environment, branch) {
        (Some(environment), _) => format!("repo:{repository}:environment:{environment}"),
        (None, Some(branch)) => format!("repo:{repository}:ref:refs/heads/{branch}"),
        (None, None) => format!("repo:{repository}:*"),
    };
    claims.insert("/sub".to_owned(), subject.into());
    if let (Some(_), Some(branch)) = (environment, branch) {
        claims.insert("/ref".to_owned(), format!("refs/heads/{branch}").into());
    }
    Ok(json!({"issuer": "github", "claims": claims}))
}

fn gitlab(text: &str) -> Result<Value, String> {
    let (project, branch) = branch_of(text);
    two_parts(project, "gitlab:GROUP/PROJECT[@BRANCH]")?;
    let subject = match branch {
        Some(branch) => format!("project_path:{project}:ref_type:branch:ref:{branch}"),
        None => format!("project_path:{project}:*"),
    };
    Ok(json!({"issuer": "gitlab", "claims": {"/sub": subject}}))
}

fn kubernetes(text: &str) -> Result<Value, String> {
    const FORM: &str = "kubernetes:ISSUER:NAMESPACE/SERVICEACCOUNT";
    let (issuer, account) = text.split_once(':').ok_or_else(|| format!("must be {FORM}"))?;
    two_parts(account, FORM)?;
    let (namespace, account) = account.split_once('/').unwrap_or_default();
    Ok(json!({"issuer": issuer, "claims": {"/sub": format!("system:serviceaccount:{namespace}:{account}")}}))
}

fn branch_of(text: &str) -> (&str, Option<&str>) {
    text.split_once('@').map_or((text, None), |(place, branch)| (place, Some(branch)))
}

fn two_parts(text: &str, form: &str) -> Result<(), String> {
    let sound = text.split('/').count() >= 2 && text.split('/').all(|part| !part.is_empty());
    if sound && !text.contains(['*', ',', ' ']) { Ok(()) } else { Err(format!("must be {form}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(text: &str) -> Option<String> {
        parse(text).ok()?.pointer("/claims/~1sub")?.as_str().map(str::to_owned)
    }

    #[test]
    fn what_people_know_becomes_a_trust() {
        for (text, expected) in [
            ("github:acme/etl", "repo:acme/etl:*"),
            ("github:acme/etl@main", "repo:acme/etl:ref:refs/heads/main"),
            ("github:acme/etl,environment=prod", "repo:acme/etl:environment:prod"),
            ("gitlab:acme/data/etl", "project_path:acme/data/etl:*"),
            ("gitlab:acme/etl@main", "project_path:acme/etl:ref_type:branch:ref:main"),
            ("kubernetes:prod:etl/nightly", "system:serviceaccount:etl:nightly"),
            (r#"{"issuer": "own", "claims": {"/sub": "job-7"}}"#, "job-7"),
        ] {
            assert_eq!(subject(text).as_deref(), Some(expected), "{text}");
        }
        let both = parse("github:acme/etl@main,environment=prod").unwrap_or_default();
        assert_eq!(both.pointer("/claims/~1ref").and_then(Value::as_str), Some("refs/heads/main"));
        for wrong in ["", "acme/etl", "github:acme", "github:*/etl", "gitlab:/x", "kubernetes:etl/nightly", "{", "x:y"]
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
