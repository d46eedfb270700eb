//! Client of the activation listener.

use super::args::{CLIENT_CERT, CLIENT_KEY, ListenerArgs};
use super::identity::TokenSource;
use crate::failure::Failure;
use crate::output::note;
use crate::secret_file;
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};
use vault_client::{
    ActivateRequest, ActivationAddress, ActivationClient, ActivationSettings, BegunActivation, CheckRequest,
    CheckedNamespace, ClientError, ClientIdentity, ProblemCode, RenewRequest,
};
use vault_core::port::Entropy as _;
use vault_crypto::OsEntropy;

/// Maximum size of a key file in bytes.
const MAX_KEY_FILE: usize = 64 * 1024;
/// First pause between attempts to activate. Each pause doubles, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(4);

/// The result of a renewal.
pub(crate) enum Renewed {
    /// The activation was renewed.
    Answer(BegunActivation),
    /// The activation has ended, or a credential is no longer available in a renewable form.
    Refused,
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
    pub(crate) fn activate(&self, request: &ActivateRequest) -> Result<BegunActivation, Failure> {
        self.activate_within(request, Duration::ZERO)
    }

    /// Activates a namespace. For up to `wait`, retries if the connection is refused or the server responds with status
    /// 503, because it may be restarting. Other responses and TLS errors are final.
    pub(crate) fn activate_within(
        &self,
        request: &ActivateRequest,
        wait: Duration,
    ) -> Result<BegunActivation, Failure> {
        let (start, mut pause) = (Instant::now(), FIRST_PAUSE);
        loop {
            let error = match self.client()?.activate(request) {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let failure = self.failure(&format!("activate {}", request.namespace), &error);
            let remaining = wait.saturating_sub(start.elapsed());
            if remaining.is_zero() || !may_pass(&error) {
                return Err(failure);
            }
            if pause == FIRST_PAUSE {
                note(&format!("{failure}\n  Retrying for {}", humantime::format_duration(wait)));
            }
            std::thread::sleep(jittered(pause).min(remaining));
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }

    /// Renews an activation for `ttl` seconds.
    pub(crate) fn renew(&self, activation: &str, ttl: Option<i64>) -> Result<Renewed, Failure> {
        match self.client()?.renew(activation, &RenewRequest { ttl }) {
            Ok(answer) => Ok(Renewed::Answer(answer)),
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
            (ClientError::Problem(problem), Some(ProblemCode::InvalidToken)) => format!(
                "cannot {doing}: {address} does not accept the token {}. It was replaced, has expired or was deleted, or \
                 its integration or organization is disabled. Ask an admin for a new token\n  request {}",
                self.source, problem.request_id
            ),
            (ClientError::Problem(_), Some(ProblemCode::NotFound)) => format!(
                "cannot {doing} at {address}: {message}\n  If the namespace has credentials, check that --activation-url is the \
                 activation listener's"
            ),
            _ => format!("cannot {doing}: {message}"),
        })
    }
}

/// Returns whether a later attempt may succeed, because the server is restarting.
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
        // The response may come from a proxy in front of the server.
        ClientError::Unexpected { status, .. } => *status == 503,
        error => error.code() == Some(ProblemCode::Unavailable),
    }
}

/// Returns half to all of `pause` at random, so that many jobs do not retry simultaneously.
fn jittered(pause: Duration) -> Duration {
    let mut random = [0; 1];
    // Without randomness, use the whole pause.
    let share = OsEntropy.fill(&mut random).map_or(u8::MAX, |()| random[0]);
    pause / 2 + (pause / 2) * u32::from(share) / u32::from(u8::MAX)
}
