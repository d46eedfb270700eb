//! Rows that are changed with SQL: for each kind of row and each change, what an operation that uses the row does, and what the
//! integrity check finds. `docs/tampering.md` has the results.

mod filled;
mod rows;

use filled::{Filled, HOLDER, LATER_PASSWORD, OPERATOR, Open, World, editor, federation, new, repeated};
use rows::{Rows, sql};
use secrecy::ExposeSecret as _;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use uuid::Uuid;
use vault_core::activation::ActivationTtl;
use vault_core::audit::AuditFinding;
use vault_core::credential::{CredentialPatch, Description, LabelFilter, ListFilter};
use vault_core::cursor::PageRequest;
use vault_core::entity::Kind;
use vault_core::id::ActivationId;
use vault_core::inspect::PROTECTED_TABLES;
use vault_core::integration::{IntegrationRef, IntegrationState};
use vault_core::port::{AuditOrder, SealError, StoreError};
use vault_core::principal::{Denial, Scope};
use vault_core::receiver::{ReceiverKey, ReceiverState};
use vault_core::role::Role;
use vault_core::usecase::activations::RenewalRequest;
use vault_core::usecase::integrations::IntegrationEdit;
use vault_core::usecase::receivers::ReceiverEdit;
use vault_core::usecase::*;
use vault_core::{Error, Refusal};

/// Change of rows with SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Flipped,
    Moved,
    Exchanged,
    PutBack,
    Resigned,
    Deleted,
    Revived,
}

use Change::*;

const CHANGES: [Change; 7] = [Flipped, Moved, Exchanged, PutBack, Resigned, Deleted, Revived];

/// Result of a use as if no row had been changed.
const ACCEPTED: &str = "accepted";
/// The row whose content an operation replaces without reading it: a user enrols again.
const REPLACED: &str = "Account: password and TOTP secret";

/// Kinds of rows: name | table, content, and condition of the row | condition of another row of the kind | deleted object, or
/// condition of deleted rows | result of the use without a change, if it is not accepted. `{name}` is the ID of an object. `@`
/// instead of table and content is an entity of the kind, and `-` no content. Of a row with `!`, only this column is changed.
const CASES: &str = "
Organization | @organization Rotated | Acme | Deleted
Organization that is disabled | @organization Disabled | | | invalid login
Account | @account demoted | kept | removed
Account of a session | @account owner | kept
Account: password and TOTP secret | @account_secrets reworded | kept
Account with password and TOTP secret | entities - kind IN ('account', 'account_secrets') AND id = {reworded}
Pending TOTP secret | @pending_seed owner | kept
Recovery codes | recovery_codes code account_id = {owner} | | account_id = {kept}
Recovery codes that were replaced | recovery_codes - account_id = {recoded}
Session | sessions account_id id = {session owner} | id = {session kept} | id = {session ended}
Sessions that ended when the account changed | sessions - account_id = {demoted} | | | account changed
Sessions that ended when the user changed secrets | sessions - id = {session recoded-too} | | | session ended
Counters of logins | attempt_classes attempts account_id = {locked} | | | invalid login
Concerns that are set aside | @set_aside owner | kept
Invitation | @invitation invited | invited-too | uninvited
Draft of an enrolment | @enrolment_draft drafted | drafted-too
Integration | @integration narrowed | other | gone
Integration: version | entities version! id = {narrowed}
Integration: expiry | entities due_at! id = {narrowed}
Activation | activations expires_at id = {activation} | id = {other-activation} | id = {ended-activation}
Namespace that is frozen | @namespace namespace held | namespace exports | | frozen
Credential, with one of another organization | credentials card id = {imports} | id = {elsewhere} | dropped
Credential: namespace | credentials namespace! id = {imports} | | | namespace empty
Credential: type | credentials type! id = {imports}
Credential: number of the version | credentials version! id = {imports}
Credential: data | credential_secrets data id = {imports} AND version = 2 | id = {exports} | id = {versions} AND version = 1
Credential: data key | credential_secrets data_key! id = {imports} AND version = 2
Credential: label | credential_labels label id = {imports} | id = {exports}
Key of a request that may be repeated | idempotency_keys body credential_id = {repeated}
Counters of an organization | organizations credentials id = {Acme} | id = {Rotated}
Receiver | @receiver receiver | other-receiver | gone-receiver
Event for a receiver | event_deliveries body receiver_id = {waiting} | receiver_id = {waiting-too}
Position of the reader of events | event_position checkpoint TRUE
Issuer | @issuer issuer | other-issuer | gone-issuer
Keys of an issuer | @issuer_keys issuer | other-issuer
Signing keys of keyless access | @signing_keys signing_keys
Checks of their publication | @publication_checks signing_keys
Lookup of a frozen namespace | lookups value name = 'frozen_namespace' AND value = 'held' | name = 'frozen_namespace' AND value = 'exports' \
| name = 'frozen_namespace' AND value = 'lifted' | frozen
Lookup of an organization | global_lookups value name = 'organization_name' AND id = {Acme} | name = 'organization_name' AND id = {Rotated}
Lookup of a disabled organization | lookups value name = 'organization_state' AND id = {Disabled} | | | invalid login
Lookup of an address | global_lookups value name = 'account_address' AND id = {kept} | name = 'account_address' AND id = {owner}
Lookup of a token | global_lookups value value NOT LIKE 'AAAA%' AND id = {narrowed} | value NOT LIKE 'AAAA%' AND id = {keeper} | id = {other}
Audit entry | audit actor id = {entry demoted} | id = {entry reworded}
Audit entries about an integration | audit - subject = printf('integration:%s', {text keeper})
Checkpoint of the audit log | audit_checkpoints entries number = 1 | number = 2
Newest checkpoint | audit_checkpoints code number = (SELECT max(number) FROM audit_checkpoints)
Position of the delivery of the audit log | audit_delivery checkpoint TRUE
Instance: its key | instance wrapped TRUE
Instance: its keyring | instance keyring! TRUE
Version of the schema | schema_versions version TRUE
";

/// A kind of row.
struct Case {
    name: &'static str,
    table: &'static str,
    /// Kind and ID of an entity.
    kind: Option<(Kind, Uuid)>,
    /// Condition of the rows.
    rows: String,
    /// Condition of the row of another object.
    other: Option<String>,
    /// Column of which a bit is flipped.
    column: Option<&'static str>,
    is_column: bool,
    gone: Option<Gone>,
    usual: &'static str,
}

/// Objects that the service deleted.
enum Gone {
    /// All rows of the object with this ID.
    Object(Uuid),
    /// Rows of the table that fulfil this condition.
    Rows(String),
}

impl Case {
    fn read(line: &'static str, filled: &Filled) -> Self {
        let mut cells = line.split('|').map(str::trim);
        let mut next = || cells.next().filter(|cell| !cell.is_empty());
        let (name, target) = (next().unwrap(), next().unwrap());
        let (first, rest) = target.split_once(' ').unwrap();
        let (other, gone, usual) = (cells.next(), cells.next(), cells.next().unwrap_or(ACCEPTED));
        let [other, gone] = [other, gone].map(|cell| cell.filter(|cell| !cell.is_empty()));
        let gone = gone.map(|gone| match gone.contains('=') {
            true => Gone::Rows(filled.sql(gone)),
            false => Gone::Object(filled.id(gone)),
        });
        if let Some(kind) = first.strip_prefix('@') {
            let kind: Kind = kind.parse().unwrap();
            let of = |name: &str| format!("kind = '{}' AND id = {}", kind.as_str(), sql(&filled.id(name)));
            let (kind, rows, other) = (Some((kind, filled.id(rest))), of(rest), other.map(of));
            return Self {
                name,
                table: "entities",
                kind,
                rows,
                other,
                column: Some("sealed"),
                is_column: false,
                gone,
                usual,
            };
        }
        let (column, rows) = rest.split_once(' ').unwrap();
        let (rows, other, is_column) = (filled.sql(rows), other.map(|other| filled.sql(other)), column.ends_with('!'));
        let column = Some(column.trim_end_matches('!')).filter(|column| *column != "-");
        Self { name, table: first, kind: None, rows, other, column, is_column, gone, usual }
    }
}

/// Uses the row, or that of the deleted object.
async fn used(case: &str, filled: &Filled, open: &Open, revived: bool) -> Result<&'static str, Error> {
    let (accounts, vault) = (open.vault.accounts(), open.vault.vault());
    let choose = |usual: bool, otherwise: &'static str| if usual { ACCEPTED } else { otherwise };
    let log_in = async |name: &str| open.log_in(&filled.people[name]).await.map(|_| ACCEPTED);
    match case {
        "Organization" => {
            let organization = if revived { "Deleted" } else { "Rotated" };
            vault.save(&editor(filled.id(organization)), new("imports")).await?;
        }
        "Organization that is disabled" | "Lookup of a disabled organization" => return log_in("shut-out").await,
        "Account of a session" => drop(accounts.own(&filled.sessions["owner"]).await?),
        "Account" if revived => return log_in("removed").await,
        "Account" => {
            let session = open.log_in(&filled.people["demoted"]).await?;
            return Ok(choose(session.role == Role::Viewer, "earlier role"));
        }
        "Account: password and TOTP secret" | "Account with password and TOTP secret" => {
            let person = &filled.people["reworded"];
            let later = OwnerProof { password: LATER_PASSWORD.into(), ..person.proof() };
            let Err(error) = open.log_in_with(person, later).await else { return Ok(ACCEPTED) };
            return open.log_in(person).await.map(|_| "earlier password").or(Err(error));
        }
        "Pending TOTP secret" => {
            let confirm = async |name: &str| {
                accounts.confirm_passcode(&filled.sessions["owner"], &open.passcode(&filled.totp[name])).await
            };
            let Err(error) = confirm("pending").await else { return Ok(ACCEPTED) };
            return confirm("earlier-pending").await.map(|()| "earlier secret").or(Err(error));
        }
        "Recovery codes" if revived => {
            let person = &filled.people["kept"];
            let proof = OwnerProof { passcode: filled.secrets["used-code"].clone(), ..person.proof() };
            open.log_in_with(person, proof).await?;
        }
        "Recovery codes" => return log_in("owner").await,
        "Recovery codes that were replaced" => {
            let person = &filled.people["recoded"];
            let Err(error) = open.log_in(person).await else { return Ok(ACCEPTED) };
            let proof = OwnerProof { passcode: filled.secrets["old-code"].clone(), ..person.proof() };
            return open.log_in_with(person, proof).await.map(|_| "earlier code").or(Err(error));
        }
        "Session" => drop(accounts.own(&filled.sessions[if revived { "ended" } else { "owner" }]).await?),
        "Sessions that ended when the user changed secrets" => {
            drop(accounts.own(&filled.sessions["recoded-too"]).await?)
        }
        "Sessions that ended when the account changed" => drop(accounts.own(&filled.sessions["demoted"]).await?),
        "Counters of logins" => return log_in("locked").await,
        "Concerns that are set aside" => {
            let aside = accounts.set_aside(&filled.sessions["owner"]).await?;
            return Ok(choose(aside.len() == 2, if aside.is_empty() { "none" } else { "earlier list" }));
        }
        "Invitation" | "Draft of an enrolment" => {
            let is_draft = case != "Invitation";
            let name = if is_draft {
                "drafted"
            } else if revived {
                "uninvited"
            } else {
                "invited"
            };
            let code = &filled.secrets[name];
            if is_draft {
                let confirm =
                    async |draft: &str| accounts.confirm_enrolment(code, &open.passcode(&filled.totp[draft])).await;
                let Err(error) = confirm("draft").await else { return Ok(ACCEPTED) };
                return confirm("earlier-draft").await.map(|()| "earlier draft").or(Err(error));
            }
            let draft = open.enrol(code).await?;
            accounts.confirm_enrolment(code, &open.passcode(&draft)).await?;
            let created = accounts.account(&OPERATOR, AccountRef::email(&format!("{name}@example.com"))).await?;
            return Ok(choose(created.grant.role == Role::Viewer, "earlier role"));
        }
        "Integration" if revived => drop(open.activate(&filled.secrets["gone"], "imports").await?),
        "Integration" | "Integration: version" | "Integration: expiry" => {
            open.activate(&filled.secrets["narrowed"], "imports").await?;
            match open.activate(&filled.secrets["narrowed"], "secret").await {
                Err(Error::Refused(Refusal::NamespaceNotAllowed)) => {}
                wider => return wider.map(|_| "earlier rights"),
            }
        }
        "Activation" => {
            let activation =
                ActivationId::from_uuid(filled.id(if revived { "ended-activation" } else { "activation" }));
            let activations = open.vault.activations(open.opener.clone());
            let principal = activations.authenticate(&filled.secrets["narrowed"], None).await?;
            let ttl = ActivationTtl::parse(None).unwrap();
            activations.renew(&principal, RenewalRequest { activation, ttl }).await?;
        }
        "Namespace that is frozen" => drop(open.activate(&filled.secrets["keeper"], "held").await?),
        "Lookup of a frozen namespace" => {
            open.activate(&filled.secrets["keeper"], if revived { "lifted" } else { "held" }).await?;
        }
        "Credential, with one of another organization" if revived => {
            drop(vault.show(&editor(filled.id("Acme")), filled.credential("dropped")).await?)
        }
        "Credential: data" if revived => {
            let credential = filled.credential("versions").into();
            vault.promote(&editor(filled.id("Acme")), credential, 1).await?;
        }
        "Credential, with one of another organization"
        | "Credential: type"
        | "Credential: number of the version"
        | "Credential: data"
        | "Credential: data key" => {
            let activated = open.activate(&filled.secrets["narrowed"], "imports").await?;
            return Ok(choose(activated.credentials[0].version == 2, "earlier version"));
        }
        "Credential: namespace" => drop(open.activate(&filled.secrets["keeper"], "importr").await?),
        "Credential: label" => {
            let labels = vec![LabelFilter::parse("team:imports", "").unwrap()];
            let filter = ListFilter { labels, ..ListFilter::default() };
            let listed = vault.list(&editor(filled.id("Acme")), filter, PageRequest::default()).await?.items;
            let is_listed = listed.iter().any(|credential| credential.id == filled.credential("imports"));
            return Ok(choose(is_listed, "not listed"));
        }
        "Key of a request that may be repeated" => {
            let saved = vault.save(&editor(filled.id("Acme")), repeated()).await?;
            return Ok(choose(saved == filled.credential("repeated"), "saved again"));
        }
        "Counters of an organization" => drop(vault.save(&editor(filled.id("Acme")), new("imports")).await?),
        "Receiver" => {
            let (name, world) = (if revived { "gone-receiver" } else { "receiver" }, Arc::new(World::default()));
            let id = filled.receiver(name);
            open.vault.receivers().test(&OPERATOR, id).await?;
            open.vault.notifier(world.clone()).deliver(ReceiverKey { owner: None, id }).await?;
            let signed_with = world.signed_with();
            let is_usual = signed_with.iter().any(|secret| secret == filled.secrets[name].expose_secret());
            return Ok(choose(is_usual, if signed_with.is_empty() { "not sent" } else { "earlier secret" }));
        }
        "Event for a receiver" => {
            let id = filled.receiver("waiting");
            let sent = open.vault.notifier(Arc::new(World::default())).deliver(ReceiverKey { owner: None, id }).await?;
            return Ok(choose(sent == 1, "not sent"));
        }
        "Position of the reader of events" => {
            open.vault.notifier(Arc::new(World::default())).read_events(HOLDER).await?;
        }
        "Issuer" if revived => {
            let issuers = open.vault.operator().issuers().await?;
            return Ok(choose(issuers.iter().any(|stored| stored.issuer.name.as_str() == "gone"), "not found"));
        }
        "Issuer" | "Keys of an issuer" => {
            let result = open.identify(filled.id("workload"), "second").await;
            if open.identify(filled.id("workload"), "first").await.is_ok() {
                return Ok("earlier key");
            }
            result?;
        }
        "Signing keys of keyless access" => {
            let [_, keys] = open.vault.federation().documents(&federation()).await?;
            let is_used = open.signs().await;
            assert_eq!(keys.contains(&filled.kid), is_used, "what is published is used");
            return Ok(choose(is_used, "not published"));
        }
        "Checks of their publication" => {
            let checks = open.vault.federation().status(&federation()).await?.checks;
            let Some(checked) = checks.of(&filled.kid) else { return Ok("none") };
            return Ok(choose(checked.failure.is_none(), "earlier check"));
        }
        "Lookup of an organization" => {
            let found = open.vault.operator().organization("Acme").await?;
            return Ok(choose(found.id == filled.organization("Acme"), "another organization"));
        }
        "Lookup of an address" => return log_in("kept").await,
        "Lookup of a token" => {
            let name = if revived { "other" } else { "narrowed" };
            open.activate(&filled.secrets[name], if revived { "others" } else { "imports" }).await?;
        }
        "Audit entry" | "Audit entries about an integration" | "Checkpoint of the audit log" | "Newest checkpoint" => {
            let (filter, page) = (AuditFilter::default(), PageRequest::default());
            open.vault.audit_reader().list(&OPERATOR, Scope::All, AuditOrder::NewestFirst, &filter, &page).await?;
        }
        "Position of the delivery of the audit log" => drop(open.vault.operator().begin_delivery(HOLDER).await?),
        "Instance: its key" | "Instance: its keyring" | "Version of the schema" => {}
        case => panic!("no use of {case}"),
    }
    Ok(ACCEPTED)
}

/// Changes an object whose earlier row was put back, with an operation. Returns `None` if no operation changes it.
async fn resigned(case: &str, filled: &Filled, open: &Open) -> Option<Result<(), Error>> {
    let acme = filled.organization("Acme");
    Some(match case {
        "Organization" | "Organization that is disabled" => {
            let name = if case == "Organization" { "Rotated" } else { "Disabled" };
            open.vault.operator().change_organization(name, OrganizationCommand::Disable).await.map(drop)
        }
        "Account" => filled.command(open, "demoted", AccountCommand::SetRole(Role::Editor)).await,
        "Account: password and TOTP secret" | "Account with password and TOTP secret" => {
            filled.command(open, "reworded", AccountCommand::ReEnrol).await
        }
        "Invitation" => filled.command(open, "invited", AccountCommand::SetRole(Role::Editor)).await,
        "Draft of an enrolment" => open.enrol(&filled.secrets["drafted"]).await.map(drop),
        "Integration" => {
            let edit = IntegrationEdit { state: Some(IntegrationState::Disabled), ..Default::default() };
            let narrowed = IntegrationRef::Name("narrowed".to_owned());
            open.vault.integrations().change(&OPERATOR, acme, &narrowed, edit).await.map(drop)
        }
        "Namespace that is frozen" => filled.freeze(open, "held", true).await.map(drop),
        "Credential, with one of another organization" => {
            let description = Some(Some(Description::parse("other", "").unwrap()));
            let patch = CredentialPatch { labels: None, description, expires_at: None, vend: None };
            let credential = filled.credential("imports").into();
            open.vault.vault().describe(&editor(filled.id("Acme")), credential, patch).await.map(drop)
        }
        "Receiver" => {
            let edit = ReceiverEdit { state: Some(ReceiverState::Disabled), events: None };
            let id = filled.receiver("receiver");
            open.vault.receivers().change(&OPERATOR, id, edit).await.map(drop)
        }
        "Signing keys of keyless access" => open.vault.federation().promote_key(&federation(), true).await.map(drop),
        _ => return None,
    })
}

/// Returns the result of a use in words.
fn words(result: Result<&'static str, Error>) -> String {
    let variant = match &result {
        Ok(result) => return (*result).to_owned(),
        Err(
            Error::Refused(Refusal::Damaged { .. })
            | Error::Seal(SealError::Integrity { .. } | SealError::UnknownKey { .. }),
        )
        | Err(Error::Store(StoreError::Integrity { .. })) => return "damaged".to_owned(),
        Err(Error::Denied(Denial::Integration(_))) => return "invalid token".to_owned(),
        Err(Error::Refused(Refusal::FederationKey(refusal))) => format!("{refusal:?}"),
        Err(Error::Refused(refusal)) => format!("{refusal:?}"),
        Err(Error::Denied(denial)) => format!("{denial:?}"),
        Err(other) => panic!("{other:?}"),
    };
    let name = variant.split(|c: char| !c.is_alphanumeric()).next().unwrap();
    let spaced = name.chars().flat_map(|c| [c.is_uppercase().then_some(' '), Some(c.to_ascii_lowercase())]).flatten();
    spaced.collect::<String>().trim_start().to_owned()
}

/// Runs the checks of `orgvault doctor --deep` on rows. Returns the findings in words, and the rows that they name.
async fn findings(open: &Open, directory: &Path) -> (BTreeSet<&'static str>, BTreeSet<String>) {
    let (mut found, mut named) = (BTreeSet::new(), BTreeSet::new());
    let mut round = open.vault.inspector(Some(open.opener.clone())).begin();
    let mut report = |RowFinding { violation, id, .. }: RowFinding| {
        named.insert(id);
        found.insert(match violation {
            Violation::Unreadable("no object lists this value") => "stray lookup",
            Violation::Unreadable(_) | Violation::Sealed { .. } => "unreadable",
            Violation::Labels => "labels",
            Violation::NotAsRecorded { .. } => "not as recorded",
            Violation::Removed { .. } => "removed",
            Violation::Deleted { .. } => "deleted",
            Violation::Lookup { .. } => "no lookup",
            Violation::NoCredential => "no credential",
            Violation::Unrecorded => "unrecorded",
            Violation::Entry { .. } => "entry",
            other => panic!("{other:?}"),
        });
    };
    while round.step(256, &mut report).await.unwrap() {}
    let anchor = open.vault.read_anchor(&directory.join("anchor")).unwrap().unwrap();
    let mut in_audit = |_: AuditFinding| _ = found.insert("audit log");
    open.vault.operator().verify_audit(Some(anchor.checkpoint), &mut in_audit, &mut |_, _| {}).await.unwrap();
    if open.vault.operator().delivery_progress().await.unwrap().is_some_and(|progress| progress.breach.is_some()) {
        found.insert("delivery");
    }
    open.has_reported();
    (found, named)
}

/// A copy of the filled vault.
fn copy(template: &Path) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(template).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), directory.path().join(entry.file_name())).unwrap();
    }
    directory
}

/// Returns the result of a change: what the use does, and what the check finds. `None` if the kind has no such change.
async fn cell(case: &Case, change: Change, filled: &Filled, template: &Path) -> Option<String> {
    let directory = copy(template);
    let rows = Rows::of(directory.path());
    let is_changed = match change {
        Flipped => rows.flip(case),
        _ if case.is_column => false,
        Moved | Exchanged => rows.exchange(case, change == Moved),
        PutBack | Resigned => rows.put_back(case),
        Deleted => rows.delete(case),
        Revived => rows.revive(case),
    };
    drop(rows);
    if !is_changed {
        return None;
    }
    let Ok(open) = Open::at(directory.path()).await else { return Some("does not open".to_owned()) };
    let (mut found, named) = findings(&open, directory.path()).await;
    let result = match change {
        Resigned => resigned(case.name, filled, &open).await?.map(|()| "changed"),
        _ => used(case.name, filled, &open, change == Revived).await,
    };
    let mut result = words(result);
    match open.has_reported() {
        true if result != "damaged" => result += ", reported",
        is_reported => assert!(is_reported || result != "damaged", "{} {change:?}: damage is reported", case.name),
    }
    match change {
        Resigned => found = findings(&open, directory.path()).await.0,
        Flipped if case.kind.is_some() => {
            let id = case.kind.unwrap().1;
            assert!(named.contains(&id.to_string()), "{}: the finding names {id}: {named:?}", case.name);
            // No operation seals what does not open.
            if let Some(changed) = resigned(case.name, filled, &open).await {
                assert_eq!(changed.is_ok(), case.name == REPLACED, "{}", case.name);
            }
            if case.name == "Integration" {
                let narrowed = IntegrationRef::Name("narrowed".to_owned());
                let acme = filled.organization("Acme");
                open.vault.integrations().delete(&OPERATOR, acme, &narrowed).await.expect("it can be deleted");
            }
        }
        _ => {}
    }
    open.vault.close().await.unwrap();
    let found = found.into_iter().collect::<Vec<_>>().join(", ");
    Some(if found.is_empty() { result } else { format!("{result}; **{found}**") })
}

/// Every change of every kind of row has the result on the page. `ORGVAULT_UPDATE=1` rewrites the page.
#[tokio::test(flavor = "multi_thread")]
async fn tampering_reference_matches_results() {
    let template = tempfile::tempdir().unwrap();
    let filled = Filled::create(template.path()).await;
    let mut table = String::new();
    let cases: Vec<_> = CASES.trim().lines().map(|line| Case::read(line, &filled)).collect();
    let has = |table: &str| cases.iter().any(|case| case.table == table);
    assert!(PROTECTED_TABLES.into_iter().all(has));
    for kind in Rows::of(template.path()).kinds() {
        assert!(cases.iter().any(|case| case.kind.is_some_and(|(of, _)| of.as_str() == kind)), "no case of {kind}");
    }
    for case in &cases {
        let directory = copy(template.path());
        let open = Open::at(directory.path()).await.unwrap();
        assert_eq!(findings(&open, directory.path()).await, Default::default());
        assert_eq!(words(used(case.name, &filled, &open, false).await), case.usual, "{} without a change", case.name);
        open.vault.close().await.unwrap();
        let _ = write!(table, "| {} |", case.name);
        for change in CHANGES {
            let cell = cell(case, change, &filled, template.path()).await;
            let _ = write!(table, " {} |", cell.as_deref().unwrap_or("–"));
        }
        table.push('\n');
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tampering.md");
    let head = "| Row | Bit flipped | Replaced by another row | Exchanged with another row | Earlier state put back | … and changed by an operation | Deleted | Put back after its deletion |\n|---|---|---|---|---|---|---|---|\n";
    vault_testkit::page::assert_table(&page, head, &table);
}
