//! Identity tokens that the environment of a job issues on request.

use crate::error::{ClientError, transport};
use crate::trust;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use std::time::Duration;
use ureq::Agent;
use vault_api::WireSecret;

/// Maximum duration of a request to GitHub.
const DEADLINE: Duration = Duration::from_secs(20);

#[derive(Deserialize)]
struct Given {
    value: WireSecret,
}

/// Requests an identity token of a GitHub Actions job for `audience`. `url` and `bearer` are the values of
/// `ACTIONS_ID_TOKEN_REQUEST_URL` and `ACTIONS_ID_TOKEN_REQUEST_TOKEN` in the job's environment.
///
/// # Errors
/// [`ClientError::Transport`], also for an invalid URL. [`ClientError::Unexpected`] for an unexpected response.
pub fn github_identity_token(url: &str, bearer: &SecretString, audience: &str) -> Result<SecretString, ClientError> {
    const PLACE: &str = "GitHub's identity tokens (ACTIONS_ID_TOKEN_REQUEST_URL)";
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .timeout_global(Some(DEADLINE));
    let config = if url.starts_with("https:") { config.tls_config(trust::tls(None, None)?) } else { config };
    let agent: Agent = config.build().new_agent();
    let authorization = format!("Bearer {}", bearer.expose_secret()); // token of the runner, for this request
    let answer = agent.get(url).query("audience", audience).header("authorization", authorization).call();
    let mut answer = answer.map_err(|error| transport(PLACE, error))?;
    let unexpected = |status: u16| ClientError::Unexpected { address: PLACE.to_owned(), status, retry_after: None };
    let status = answer.status().as_u16();
    if status != 200 {
        return Err(unexpected(status));
    }
    let given: Given = answer.body_mut().read_json().map_err(|_| unexpected(status))?;
    Ok(given.value.into_secret())
}
