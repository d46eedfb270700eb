//! Activations: a batch integration starts one before each job and ends it afterwards.

use super::saves::{Id, fill, id};
use super::{Flood, Ground, evaluate};
use crate::Result;
use crate::account::Organization;
use crate::client::{Answer, Next, Plan, Sample, Verdict, Workload, run};
use crate::report::{Bound, Rate, Report};
use crate::request::{NAMESPACES, Template};
use std::time::{Duration, Instant};
use vault_tests::issuer::{SigningKey, audience, now};

/// Maximum number of integrations to create. With more connections, connections share them.
const MOST: usize = 64;

/// The next request of a connection.
#[derive(Clone, Copy)]
enum Turn {
    Activate,
    End(Id),
}

/// Each connection repeatedly activates its own namespace and ends the activation.
struct Jobs {
    /// The requests that start and end an activation, for each integration.
    of: Vec<(Template, Template)>,
    turns: Vec<Turn>,
}

impl Jobs {
    fn new(plan: &Plan, tokens: &[String]) -> Self {
        let of = tokens
            .iter()
            .map(|token| (Template::activate(plan.address, token), Template::end_activation(plan.address, token)));
        Self { of: of.collect(), turns: vec![Turn::Activate; plan.connections] }
    }
}

impl Workload for Jobs {
    fn next(&mut self, slot: usize, request: &mut Vec<u8>, _now: Instant) -> Next {
        let (activate, end) = &self.of[slot % self.of.len()];
        match &self.turns[slot] {
            // Namespaces are numbered from one.
            Turn::Activate => activate.write_number(1 + slot as u32, request),
            Turn::End(id) => end.write(id, request),
        }
        Next::Ask
    }

    fn answered(&mut self, slot: usize, answer: &Answer<'_>) -> Verdict {
        let (expected_status, next) = match self.turns[slot] {
            Turn::Activate => (201, id(answer.body).map(Turn::End)),
            Turn::End(_) => (204, Some(Turn::Activate)),
        };
        match (evaluate(answer, expected_status), next) {
            (Verdict::Good, Some(next)) => {
                self.turns[slot] = next;
                Verdict::Good
            }
            (Verdict::Good, None) => Verdict::Bad,
            (verdict, _) => verdict,
        }
    }
}

/// Measures the start and the end of activations with one integration, and with one integration per connection.
pub(crate) fn activations(ground: &Ground<'_>, report: &mut Report) -> Result<()> {
    let organization = Organization::create(ground.vault, ground.server, "Activations")?;
    let most = ground.options.connections.iter().copied().max().unwrap_or(1);
    let patience = Duration::from_secs(60);
    fill(ground, &organization, most as u64, patience, false)?;
    let tokens =
        (0..MOST.min(most)).map(|number| integration(ground, &organization, number)).collect::<Result<Vec<_>>>()?;
    let workload = Identity::trusted(ground, &organization)?;
    for connections in ground.options.connections.iter().copied() {
        let plan = Plan { address: ground.server.activation, ..ground.round(connections) };
        let (mut one, mut many, mut identity) = (Sample::empty()?, Sample::empty()?, Sample::empty()?);
        for _ in 0..ground.options.rounds {
            identity.add(run(&plan, &mut Jobs::new(&plan, &[workload.token()]))?)?;
            one.add(run(&plan, &mut Jobs::new(&plan, &tokens[..1]))?)?;
            many.add(run(&plan, &mut Jobs::new(&plan, &tokens[..connections.min(tokens.len())]))?)?;
        }
        let what = "activation, or its end, of one integration".to_owned();
        let references = vec![Bound::new("many integrations", many.rate())];
        let by_token = Bound::new("by token", one.rate());
        report.rate(Rate { what, connections, sample: one, references, target: None });
        let what = "the same by an identity token (ES256)".to_owned();
        report.rate(Rate { what, connections, sample: identity, references: vec![by_token], target: None });
    }
    forged(ground, &workload, report)
}

/// Measures one job that authenticates with identity tokens, without other load and during a flood of forged tokens.
/// Forged tokens have the right issuer and key ID but a signature by another key.
fn forged(ground: &Ground<'_>, workload: &Identity, report: &mut Report) -> Result<()> {
    let address = ground.server.activation;
    let plan = |connections| Plan { address, ..ground.round(connections) };
    let job = || run(&plan(1), &mut Jobs::new(&plan(1), &[workload.token()]));
    let mut alone = Sample::empty()?;
    for _ in 0..ground.options.rounds {
        alone.add(job()?)?;
    }
    for connections in [16, 256] {
        let token = Identity { key: SigningKey::new("load"), integration: workload.integration.clone() }.token();
        let mut request = Vec::new();
        Template::activate(address, &token).write_number(1, &mut request);
        let mut flood = Flood { request, expected_status: 401 };
        let (mut sample, mut refused) = (Sample::empty()?, Sample::empty()?);
        for _ in 0..ground.options.rounds {
            let (under_load, flooded) = flood.under_load(&plan(connections), job)?;
            sample.add(under_load)?;
            refused.add(flooded)?;
        }
        let what = format!("one job by identity token during {connections} connections with forged ones");
        let references = vec![Bound::new("alone", alone.rate())];
        report.rate(Rate { what, connections: 1, sample, references, target: None });
        let what = "refusal of a forged identity token".to_owned();
        report.rate(Rate { what, connections, sample: refused, references: Vec::new(), target: None });
    }
    Ok(())
}

/// Creates an integration for all saved credentials. Returns its token.
fn integration(ground: &Ground<'_>, organization: &Organization, number: usize) -> Result<String> {
    let name = format!("jobs-{number}");
    let arguments = ["integration", "create", "--org", &organization.name, "--name", &name, "--namespace", NAMESPACES];
    let made = ground.vault.run(&arguments)?;
    Ok(made.get("token").and_then(|token| token.as_str()).ok_or("`integration create` printed no token")?.to_owned())
}

/// Issues the identity tokens of a workload.
struct Identity {
    key: SigningKey,
    integration: String,
}

impl Identity {
    const ISSUER: &str = "https://issuer.example";
    const SUBJECT: &str = "job:load/activations";

    /// Creates the identity of a workload that an integration without a token trusts by pasted keys.
    fn trusted(ground: &Ground<'_>, organization: &Organization) -> Result<Self> {
        let key = SigningKey::new("load");
        let directory = tempfile::tempdir()?;
        let keys = directory.path().join("keys.json");
        std::fs::write(&keys, serde_json::json!({"keys": [key.public()]}).to_string())?;
        let keys = keys.to_str().ok_or("the path of the keys is no text")?;
        ground.vault.run(&["issuer", "add", "load", "--issuer", Self::ISSUER, "--jwks-file", keys])?;
        let trust = serde_json::json!({"issuer": "load", "claims": {"/sub": Self::SUBJECT}}).to_string();
        let create =
            ["integration", "create", "--org", &organization.name, "--name", "workload", "--namespace", NAMESPACES];
        let made = ground.vault.run(&[&create[..], &["--no-token", "--trust", &trust]].concat())?;
        let integration = made.get("id").and_then(|id| id.as_str()).ok_or("no integration was made")?;
        Ok(Self { key, integration: integration.to_owned() })
    }

    /// Returns a token that is valid for five minutes.
    fn token(&self) -> String {
        let now = now();
        self.key.sign(&serde_json::json!({
            "iss": Self::ISSUER, "aud": audience(&self.integration), "sub": Self::SUBJECT, "iat": now, "exp": now + 300,
        }))
    }
}
