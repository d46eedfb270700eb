//! `orgvault issuer …`: issuers of identity tokens.

use super::organization::{self, Organizations};
use crate::cli::{AddIssuer, IssuerCommand as Asked};
use crate::egress;
use crate::settings::Settings;
use serde::Serialize;
use std::fs;
use std::path::Path;
use vault_cli::failure::{Doing, Failure, refused, wrong_flag};
use vault_cli::output::{Output, table};
use vault_cli::text::{legible_line, rfc3339};
use vault_core::Refusal;
use vault_core::cursor::PageRequest;
use vault_core::id::IssuerId;
use vault_core::identity::{ClaimPointer, Issuer, IssuerName, KeySource, StoredIssuer};
use vault_core::port::TokenVerifier as _;
use vault_core::principal::{Principal, Scope};
use vault_core::usecase::integrations::IntegrationRef;
use vault_crypto::JwtVerifier;
use vault_embed::OpenVault;
use vault_storage::IssuerClient;

const PAGE: usize = 1_000;
/// Maximum size of a file with keys or certificates, in bytes.
const MAX_FILE: u64 = 1024 * 1024;
const NO_ISSUER: &str = "no issuer has this name; `orgvault issuer list` lists them";

/// An issuer in JSON output.
#[derive(Serialize)]
struct Shown {
    name: String,
    issuer: String,
    keys_from: String,
    keys: usize,
    /// Key IDs in the key set, also of keys that verify no tokens.
    key_ids: Vec<String>,
    required_claims: Vec<String>,
    organizations: Vec<String>,
    fetched_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
}

pub(crate) async fn run(settings: &Settings, vault: &OpenVault, command: Asked, output: Output) -> Result<(), Failure> {
    match command {
        Asked::Add(add) => add_issuer(settings, vault, add, output).await,
        Asked::List { name: None } => list(vault, output).await,
        Asked::List { name: Some(name) } => {
            let name = parse_name(&name)?;
            let issuers = vault.operator().issuers().await?;
            let found = issuers.iter().find(|stored| stored.issuer.name == name);
            let found = found.ok_or_else(|| Failure::new(NO_ISSUER.to_owned()))?;
            let shown = shown(found, &Organizations::of(vault).await?);
            output.print(&shown, &text(&shown))
        }
        Asked::Remove { name, force } => remove(vault, &parse_name(&name)?, force, output).await,
    }
}

async fn add_issuer(settings: &Settings, vault: &OpenVault, add: AddIssuer, output: Output) -> Result<(), Failure> {
    let mut organizations = Vec::with_capacity(add.org.len());
    for name in &add.org {
        organizations.push(organization::named(vault, name).await?.id);
    }
    Issuer::check_url(&add.issuer, "--issuer").map_err(|error| wrong_flag(&error))?;
    let source = match (&add.jwks_url, &add.jwks_file) {
        (Some(url), _) => {
            Issuer::check_url(url, "--jwks-url").map_err(|error| wrong_flag(&error))?;
            KeySource::Url(url.clone())
        }
        (None, Some(_)) => KeySource::Pasted,
        (None, None) if add.issuer.starts_with("spiffe://") => {
            return Err(Failure::usage(
                "a SPIFFE trust domain does not support discovery: pass --jwks-url or --jwks-file",
            ));
        }
        (None, None) => KeySource::Discovery(String::new()),
    };
    let required = add.require_claim.iter().map(|claim| ClaimPointer::parse(claim, "--require-claim"));
    let issuer = Issuer {
        id: IssuerId::from_uuid(vault.ports().environment.ids.random()),
        name: parse_name(&add.name)?,
        url: add.issuer,
        source,
        ca: add.ca_file.as_deref().map(|path| read(path, "--ca-file")).transpose()?.unwrap_or_default(),
        required: required.collect::<Result<_, _>>().map_err(|error| wrong_flag(&error))?,
        organizations,
        created_at: vault.ports().environment.now(),
    };
    let pasted = add.jwks_file.as_deref().map(|path| read(path, "--jwks-file")).transpose()?;
    let what = format!("add issuer {}", issuer.name);
    let client = IssuerClient::new(&egress::of(settings)?);
    let added = vault.operator().add_issuer(issuer, pasted, (&JwtVerifier, &client)).await;
    let added = added.doing(|| what)?;
    let shown = shown(&added, &Organizations::of(vault).await?);
    output.print(&shown, &format!("Added issuer {}.\n\n{}", shown.name, text(&shown)))
}

async fn list(vault: &OpenVault, output: Output) -> Result<(), Failure> {
    let organizations = Organizations::of(vault).await?;
    let issuers = vault.operator().issuers().await?;
    let listed: Vec<Shown> = issuers.iter().map(|stored| shown(stored, &organizations)).collect();
    let rows: Vec<Vec<String>> = listed
        .iter()
        .map(|row| {
            let error = row.last_error.clone().unwrap_or_default();
            let keys = row.keys.to_string();
            vec![row.name.clone(), row.issuer.clone(), keys, row.fetched_at.clone(), error]
        })
        .collect();
    output.print(&listed, &table(&["NAME", "ISSUER", "KEYS", "FETCHED", "LAST ERROR"], &rows))
}

async fn remove(vault: &OpenVault, name: &IssuerName, force: bool, output: Output) -> Result<(), Failure> {
    let (organizations, integrations) = (Organizations::of(vault).await?, vault.integrations());
    let (mut trusting, mut cursor) = (Vec::new(), None);
    loop {
        let page = PageRequest { limit: PAGE, cursor };
        let page = integrations.list(&Principal::Operator, Scope::All, page).await?;
        let trusts = |stored: &vault_core::integration::StoredIntegration| {
            stored.integration.trusts.iter().any(|trust| trust.issuer == *name)
        };
        trusting.extend(page.items.into_iter().filter(trusts));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    let named = |stored: &vault_core::integration::StoredIntegration| {
        format!("{} of {}", stored.integration.name, organizations.name_of(stored.organization))
    };
    if !trusting.is_empty() && !force {
        let error = Refusal::IssuerTrusted(trusting.iter().map(named).collect());
        return Err(Failure::new(format!("{error}. Remove these trusts first, or all of them with --force")));
    }
    // Remove the issuer before the trusts. Its tokens are then rejected immediately.
    let removed = vault.operator().remove_issuer(name).await.map_err(|error| refused(error, NO_ISSUER));
    removed.doing(|| format!("remove issuer {name}"))?;
    for stored in &trusting {
        let (integration, organization) = (&stored.integration, stored.organization);
        for trust in integration.trusts.iter().filter(|trust| trust.issuer == *name) {
            let place = IntegrationRef::Id(stored.id);
            let ended = integrations.distrust(&Principal::Operator, organization, &place, trust.id).await;
            ended.doing(|| format!("end the trust of {}", named(stored)))?;
        }
    }
    let document = serde_json::json!({"name": name.as_str(), "trusts_removed_from": trusting.len()});
    output.print(&document, &format!("Removed issuer {name}. Its tokens are no longer accepted."))
}

fn shown(stored: &StoredIssuer, organizations: &Organizations) -> Shown {
    let issuer = &stored.issuer;
    Shown {
        name: issuer.name.to_string(),
        issuer: issuer.url.clone(),
        keys_from: issuer.source.to_string(),
        keys: JwtVerifier.count_keys(&stored.set.keys, issuer.key_use()).unwrap_or_default().usable,
        key_ids: key_ids(&stored.set.keys),
        required_claims: issuer.required.iter().map(ToString::to_string).collect(),
        organizations: issuer.organizations.iter().map(|id| organizations.name_of(*id)).collect(),
        fetched_at: rfc3339(stored.set.fetched_at),
        last_error: Some(stored.set.failure.clone()).filter(|failure| !failure.is_empty()),
    }
}

/// Returns the `kid` of each key of a key set that has one.
fn key_ids(keys: &str) -> Vec<String> {
    let set: serde_json::Value = serde_json::from_str(keys).unwrap_or_default();
    let ids = set["keys"].as_array().into_iter().flatten().filter_map(|key| key["kid"].as_str());
    ids.map(|id| legible_line(id).into_owned()).collect()
}

fn text(shown: &Shown) -> String {
    let or = |list: &[String], none: &str| if list.is_empty() { none.to_owned() } else { list.join(", ") };
    let mut text = format!(
        "  issuer           {}\n  keys             {}, from {}\n  key IDs          {}\n  fetched          {}\n  required claims  {}\n  \
         organizations    {}\n",
        shown.issuer,
        shown.keys,
        shown.keys_from,
        or(&shown.key_ids, "none"),
        shown.fetched_at,
        or(&shown.required_claims, "none"),
        or(&shown.organizations, "all"),
    );
    if let Some(error) = &shown.last_error {
        text.push_str(&format!("  last error       {error}\n"));
    }
    text
}

fn parse_name(text: &str) -> Result<IssuerName, Failure> {
    IssuerName::parse(text, "NAME").map_err(|error| wrong_flag(&error))
}

fn read(path: &Path, flag: &str) -> Result<String, Failure> {
    let failed = |reason: String| Failure::new(format!("{flag}: {}: {reason}", path.display()));
    let size = path.metadata().map_err(|error| failed(error.to_string()))?.len();
    if size > MAX_FILE {
        return Err(failed("is larger than 1 MiB".to_owned()));
    }
    fs::read_to_string(path).map_err(|error| failed(error.to_string()))
}
