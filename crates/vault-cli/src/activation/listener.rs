//! Client of the activation listener.

use super::args::{CLIENT_CERT, CLIENT_KEY, ListenerArgs};
use super::identity::TokenSource;
use crate::failure::Failure;
use crate::output::{note, warn};
use crate::secret_file;
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};
use vault_client::{
    ActivateRequest, ActivationAddress, ActivationClient, ActivationSettings, BegunActivation, CheckRequest,
    CheckedNamespace, ClientError, ClientIdentity, DatedActivation, ProblemCode, RenewRequest,
};
use vault_core::port::{Clock as _, Entropy as _};
use vault_core::time::Timestamp;
use vault_crypto::{OsEntropy, SystemClock};

/// Maximum size of a key file in bytes.
const MAX_KEY_FILE: usize = 64 * 1024;
/// First pause between attempts to activate. Each pause doubles, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const MAX_BACKOFF: Duration = Duration::from_secs(4);
/// Difference of clocks in milliseconds that is ignored: 1 minute.
const LARGEST_CLOCK_ERROR: i64 = 60_000;

/// The result of a renewal.
pub(crate) enum Renewed {
    /// The activation was renewed.
    Answer(Received),
    /// The activation has ended, or a credential is no longer available in a renewable form.
    Refused,
}

/// An activation, with the error of this host's clock.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) activation: BegunActivation,
    /// Milliseconds by which this host's clock is ahead of the server's. Zero if they differ by less than a minute.
    pub(crate) clock_ahead: i64,
}

impl Received {
    /// Compares the server's time with `now`, the time at which the response arrived.
    fn at(now: Timestamp, dated: DatedActivation) -> Self {
        let DatedActivation { activation, sent_at } = dated;
        let ahead = sent_at.map_or(0, |sent_at| now.as_millis().saturating_sub(sent_at.saturating_mul(1_000)));
        Self { activation, clock_ahead: if ahead.abs() < LARGEST_CLOCK_ERROR { 0 } else { ahead } }
    }

    /// Prints a warning if this host's clock is wrong.
    pub(crate) fn warn_of_clock(&self) {
        if self.clock_ahead != 0 {
            let difference = Duration::from_secs(self.clock_ahead.unsigned_abs() / 1_000);
            let direction = if self.clock_ahead > 0 { "ahead of" } else { "behind" };
            warn(&format!(
                "the clock of this host is {} {direction} the clock of the server. Expiry times are converted to this \
                 host's clock. Synchronize the clocks: storage providers refuse requests with a wrong time",
                humantime::format_duration(difference)
            ));
        }
    }
}

/// The activation listener. Errors name the values of the command line.
pub(crate) struct Listener {
    settings: ActivationSettings,
    address: ActivationAddress,
    source: TokenSource,
}

impl Listener {
    /// Creates a client from the flags. Does not connect.
    pub(crate) fn open(args: &ListenerArgs, base_path: Option<&str>) -> Result<Self, Failure> {
        args.address()?;
        let source = TokenSource::of(args.token_file.as_deref())?;
        let mut settings = ActivationSettings {
            ca_file: args.ca_file.clone(),
            server_user: args.server_user,
            ..ActivationSettings::default()
        };
        if let Some(base_path) = base_path {
            base_path.clone_into(&mut settings.base_path);
        }
        match (&args.client_cert_file, &args.client_key_file) {
            (Some(chain), Some(key)) => {
                let unreadable =
                    |error| Failure::new(format!("{CLIENT_CERT}: cannot read {}: {error}", chain.display()));
                let chain = std::fs::read(chain).map_err(unreadable)?;
                let key = secret_file::read(CLIENT_KEY, key, MAX_KEY_FILE)?;
                settings.identity = Some(ClientIdentity::from_pem(&chain, &key)?);
            }
            (None, None) => {}
            _ => return Err(Failure::usage(format!("{CLIENT_CERT} and {CLIENT_KEY} must be set together"))),
        }
        let listener = Self { settings, address: args.address()?.clone(), source };
        listener.client()?;
        Ok(listener)
    }

    /// Describes the token's source, if it is an identity token.
    pub(crate) fn identity(&self) -> Option<String> {
        self.source.identity()
    }

    /// Returns the variables of the token's source that the command must not inherit.
    pub(crate) const fn source_variables(&self) -> &'static [&'static str] {
        self.source.variables()
    }

    /// Creates a client with the current token. Identity tokens expire after minutes, and the last request may be hours
    /// ago.
    fn client(&self) -> Result<ActivationClient, Failure> {
        Ok(ActivationClient::new(&self.address, self.source.token()?, &self.settings)?)
    }

    /// Activates a namespace without retries.
    pub(crate) fn activate(&self, request: &ActivateRequest) -> Result<Received, Failure> {
        self.activate_within(request, Duration::ZERO)
    }

    /// Activates a namespace. For up to `wait`, retries if the connection is refused or the server responds with status
    /// 503, because it may be restarting, and after a limit of requests that states when it ends. Other responses and TLS
    /// errors are final.
    pub(crate) fn activate_within(&self, request: &ActivateRequest, wait: Duration) -> Result<Received, Failure> {
        let (start, mut pause) = (Instant::now(), FIRST_PAUSE);
        loop {
            let error = match self.client()?.activate(request) {
                Ok(answer) => return Ok(Received::at(SystemClock.now(), answer)),
                Err(error) => error,
            };
            let failure = self.failure(&format!("activate {}", request.namespace), &error);
            let remaining = wait.saturating_sub(start.elapsed());
            let Some(until_next) = before_retry(&error, pause, remaining, random_share()) else {
                return Err(match error.retry_after() {
                    Some(after) => {
                        Failure::new(format!("{failure}\n  Retry after {}", humantime::format_duration(after)))
                    }
                    None => failure,
                });
            };
            if pause == FIRST_PAUSE {
                note(&format!("{failure}\n  Retrying for {}", humantime::format_duration(wait)));
            }
            std::thread::sleep(until_next);
            pause = MAX_BACKOFF.min(pause * 2);
        }
    }

    /// Renews an activation for `ttl` seconds.
    pub(crate) fn renew(&self, activation: &str, ttl: Option<i64>) -> Result<Renewed, Failure> {
        match self.client()?.renew(activation, &RenewRequest { ttl }) {
            Ok(answer) => Ok(Renewed::Answer(Received::at(SystemClock.now(), answer))),
            Err(error) if matches!(error.code(), Some(ProblemCode::NotFound | ProblemCode::Conflict)) => {
                Ok(Renewed::Refused)
            }
            Err(error) => Err(self.failure(&format!("renew activation {activation}"), &error)),
        }
    }

    /// Checks the credentials of a namespace.
    pub(crate) fn check(&self, request: &CheckRequest) -> Result<CheckedNamespace, Failure> {
        let answer = self.client()?.check(request);
        answer.map_err(|error| self.failure(&format!("check {}", request.namespace), &error))
    }

    /// Ends an activation. Succeeds if it has already ended.
    pub(crate) fn end(&self, activation: &str) -> Result<(), Failure> {
        match self.client()?.end(activation) {
            Err(error) if error.code() == Some(ProblemCode::NotFound) => Ok(()),
            ended => ended.map_err(|error| self.failure(&format!("end activation {activation}"), &error)),
        }
    }

    /// Describes a failed request: the operation, the cause and the next step.
    fn failure(&self, doing: &str, error: &ClientError) -> Failure {
        let address = &self.address;
        let message = Failure::from(error);
        Failure::new(match (error, error.code()) {
            (ClientError::Transport { source, .. }, _) => {
                let kind = source.downcast_ref().map(io::Error::kind);
                let unreachable = matches!(kind, Some(ErrorKind::NotFound | ErrorKind::ConnectionRefused));
                let hint = if unreachable { ". Is the server running with --activation-listen?" } else { "" };
                format!("cannot {doing}: {message}{hint}")
            }
            // The format of the token was checked before the request. The server does not disclose which of these
            // causes applies.
            (ClientError::Problem { problem, .. }, Some(ProblemCode::InvalidToken)) => format!(
                "cannot {doing}: {address} does not accept the token {}. It was replaced, has expired or was deleted, or \
                 its integration or organization is disabled. Ask an admin for a new token\n  request {}",
                self.source, problem.request_id
            ),
            (ClientError::Problem { .. }, Some(ProblemCode::NotFound)) => format!(
                "cannot {doing} at {address}: {message}\n  If the namespace has credentials, check that --activation-url is the \
                 activation listener's"
            ),
            _ => format!("cannot {doing}: {message}"),
        })
    }
}

/// Returns the time until the next attempt: that of `Retry-After`, and half to all of `pause`, depending on `share`, so
/// that many jobs do not retry simultaneously. Returns `None` if the error is final, or the time exceeds `remaining`.
fn before_retry(error: &ClientError, pause: Duration, remaining: Duration, share: u8) -> Option<Duration> {
    let after = error.retry_after().unwrap_or_default();
    if remaining.is_zero() || after > remaining || !may_pass(error) {
        return None;
    }
    let jittered = pause / 2 + (pause / 2) * u32::from(share) / u32::from(u8::MAX);
    Some((after + jittered).min(remaining))
}

/// Returns whether a later attempt may succeed, because the server is restarting, or a limit of requests ends.
fn may_pass(error: &ClientError) -> bool {
    match error {
        ClientError::Transport { source, .. } => matches!(
            source.downcast_ref().map(io::Error::kind),
            Some(
                ErrorKind::NotFound
                    | ErrorKind::ConnectionRefused
                    | ErrorKind::ConnectionReset
                    | ErrorKind::ConnectionAborted
                    | ErrorKind::BrokenPipe
                    | ErrorKind::UnexpectedEof
                    | ErrorKind::HostUnreachable
                    | ErrorKind::NetworkUnreachable
            )
        ),
        // The response may come from a proxy in front of the server. A limit without `Retry-After`, such as that of active
        // activations, does not end by waiting.
        error => match error.status() {
            Some(503) => true,
            Some(429) => error.retry_after().is_some(),
            _ => false,
        },
    }
}

/// Returns a random number. Without randomness, jobs use the whole pause.
fn random_share() -> u8 {
    let mut random = [0; 1];
    OsEntropy.fill(&mut random).map_or(u8::MAX, |()| random[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use vault_client::Problem;

    fn problem(code: ProblemCode, seconds: Option<u64>) -> ClientError {
        let problem = Box::new(Problem::new(code, "", "r"));
        ClientError::Problem { problem, retry_after: seconds.map(Duration::from_secs) }
    }

    #[test]
    fn clock_of_server_is_compared_at_arrival() {
        let now = Timestamp::from_millis(1_000_500);
        for (sent_at, expected) in [
            (None, 0),
            (Some(1_000), 0),
            (Some(970), 0),
            (Some(1_030), 0),
            (Some(280), 720_500),
            (Some(1_720), -719_500),
        ] {
            let (id, namespace, expires_at) = ("a".into(), "n".into(), "t".into());
            let activation = BegunActivation { id, namespace, expires_at, credentials: Vec::new() };
            assert_eq!(Received::at(now, DatedActivation { activation, sent_at }).clock_ahead, expected, "{sent_at:?}");
        }
    }

    #[test]
    fn limits_are_retried_after_the_stated_time_within_the_wait() {
        let unexpected = |status, retry_after| ClientError::Unexpected { address: "a".to_owned(), status, retry_after };
        let second = Duration::from_secs(1);
        let half = Duration::from_millis(500);
        for (error, remaining, share, expected) in [
            (problem(ProblemCode::TooManyRequests, Some(3)), 30, 0, Some(3 * second + half)),
            (problem(ProblemCode::TooManyRequests, Some(3)), 30, u8::MAX, Some(4 * second)),
            (problem(ProblemCode::TooManyRequests, Some(3)), 3, u8::MAX, Some(3 * second)),
            (problem(ProblemCode::TooManyRequests, Some(31)), 30, 0, None),
            (problem(ProblemCode::TooManyRequests, Some(0)), 0, 0, None),
            (problem(ProblemCode::TooManyRequests, None), 30, 0, None),
            (problem(ProblemCode::Unavailable, Some(2)), 30, 0, Some(2 * second + half)),
            (problem(ProblemCode::Unavailable, None), 30, 0, Some(half)),
            (problem(ProblemCode::Frozen, Some(1)), 30, 0, None),
            (unexpected(503, None), 30, 0, Some(half)),
            (unexpected(429, Some(second)), 30, 0, Some(second + half)),
            (unexpected(429, None), 30, 0, None),
            (unexpected(502, Some(second)), 30, 0, None),
        ] {
            let remaining = Duration::from_secs(remaining);
            assert_eq!(before_retry(&error, second, remaining, share), expected, "{error:?} {remaining:?}");
        }
    }
}
