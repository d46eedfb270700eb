//! `orgvault identity inspect`: prints the claims of the available identity token, and a trust that matches it.

use crate::activation::args::IdentityCommand;
use crate::activation::identity::{TokenSource, claims, integration_id};
use crate::failure::Failure;
use crate::output::Output;
use crate::text::rfc3339;
use serde_json::{Map, Value, json};
use vault_client::github_identity_token;
use vault_core::identity::{audience, integration_of};
use vault_core::time::Timestamp;

/// Claims about the time or method of issuance, rather than about the workload.
const NOT_TRUSTED: [&str; 7] = ["iss", "aud", "exp", "nbf", "iat", "jti", "sub"];
/// Claims that identify an owner by a number, which does not change when the owner is renamed.
const STABLE: [&str; 3] = ["repository_id", "repository_owner_id", "project_id"];

/// Runs a command of `orgvault identity`.
pub fn run(command: &IdentityCommand, output: Output) -> Result<(), Failure> {
    let IdentityCommand::Inspect(args) = command;
    let source = match &args.file {
        Some(path) => TokenSource::File(path.clone()),
        None => TokenSource::from_environment().ok_or_else(|| {
            Failure::usage(
                "there is no identity token: pass --file, or set ORGVAULT_IDENTITY_TOKEN_FILE or ORGVAULT_IDENTITY_TOKEN. In \
                 GitHub Actions, give the job `permissions: id-token: write`",
            )
        })?,
    };
    let claims = read(&source)?;
    let document = document(&claims);
    output.print(&document, &text(&source, &document))
}

fn read(source: &TokenSource) -> Result<Value, Failure> {
    let token = match source {
        TokenSource::GitHub => {
            let variable = |name| std::env::var(name).unwrap_or_default();
            let audience = integration_id()?.map_or_else(|| "urn:orgvault:integration:unknown".to_owned(), audience);
            let bearer = variable("ACTIONS_ID_TOKEN_REQUEST_TOKEN").into();
            github_identity_token(&variable("ACTIONS_ID_TOKEN_REQUEST_URL"), &bearer, &audience)?
        }
        source => source.stored()?,
    };
    claims(&token).ok_or_else(|| Failure::new(format!("the identity token {source} is not a JSON Web Token")))
}

fn document(claims: &Value) -> Value {
    let time = |name: &str| {
        let seconds = claims.get(name).and_then(Value::as_i64)?;
        Some(rfc3339(Timestamp::from_millis(seconds.checked_mul(1_000)?)))
    };
    let audience = claims.get("aud").and_then(|aud| match aud {
        Value::Array(several) if several.len() == 1 => several[0].as_str(),
        aud => aud.as_str(),
    });
    let mut trusted = Map::new();
    trusted.insert("/sub".to_owned(), claims.get("sub").cloned().unwrap_or(Value::Null));
    for name in STABLE {
        if let Some(value) = claims.get(name) {
            trusted.insert(format!("/{name}"), value.clone());
        }
    }
    let others: Map<String, Value> = claims
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| !NOT_TRUSTED.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    json!({
        "issuer": claims.get("iss"),
        "subject": claims.get("sub"),
        "audience": claims.get("aud"),
        "integration_id": audience.and_then(integration_of).map(|id| id.to_string()),
        "issued_at": time("iat"),
        "not_before": time("nbf"),
        "expires_at": time("exp"),
        "claims": others,
        "trust": {"issuer": "NAME", "claims": trusted},
    })
}

fn text(source: &TokenSource, document: &Value) -> String {
    let line = |name: &str| match &document[name] {
        Value::Null => "none".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let audience = match &document["integration_id"] {
        Value::Null => {
            format!("{} (must be exactly one audience: urn:orgvault:integration:<id>)", line("audience"))
        }
        _ => line("audience"),
    };
    let mut text = format!(
        "Claims of the identity token {source} (not verified):\n\n  issuer      {}\n  subject     {}\n  audience    {audience}\n  \
         issued      {}\n  not before  {}\n  expires     {}\n\n",
        line("issuer"),
        line("subject"),
        line("issued_at"),
        line("not_before"),
        line("expires_at"),
    );
    let claims = document["claims"].as_object().into_iter().flatten();
    let others: String = claims.map(|(name, value)| format!("  {name} = {value}\n")).collect();
    if !others.is_empty() {
        text.push_str(&format!("{others}\n"));
    }
    text.push_str(&format!(
        "This trust would accept it. Use the issuer's name from `orgvault issuer list`:\n\n  {}\n",
        document["trust"]
    ));
    text
}
