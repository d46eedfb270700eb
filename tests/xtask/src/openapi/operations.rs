//! Requests and responses of each operation.

use super::schemas;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use vault_api::{CredentialItem as Item, VersionItem as Version, *};

type Of = fn(&mut SchemaGenerator) -> Schema;

/// One operation.
pub(crate) struct Operation {
    /// Its name in the table of routes.
    pub(crate) name: &'static str,
    pub(crate) tag: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) caller: Caller,
    pub(crate) parameters: &'static [&'static str],
    /// Filter, whose fields are parameters too.
    pub(crate) filter: &'static [Of],
    pub(crate) request: Option<Request>,
    pub(crate) status: u16,
    pub(crate) answer: Answer,
    /// Problems in addition to those that its caller and its request imply.
    pub(crate) problems: &'static [ProblemCode],
}

/// Permitted callers.
#[derive(Clone, Copy)]
pub(crate) enum Caller {
    Anybody,
    /// Anyone who has an enrolment code.
    Invited,
    /// Every role.
    Member,
    Editor,
    Admin,
    Integration,
}

pub(crate) struct Request {
    pub(crate) schema: Of,
    pub(crate) example: fn() -> Value,
    pub(crate) is_read: fn(Value) -> bool,
    pub(crate) required: bool,
    pub(crate) patch: bool,
}

pub(crate) enum Answer {
    Nothing,
    One(Of),
    /// A response with the entity tag.
    Tagged(Of),
    List(Of),
    /// A list in pages.
    Page(Of),
}

const fn none() -> Option<Request> {
    None
}

const fn takes<T: JsonSchema + DeserializeOwned>(example: fn() -> Value) -> Option<Request> {
    described::<T>(one::<T>(), example)
}

/// An optional body.
const fn may_take<T: JsonSchema + DeserializeOwned>(example: fn() -> Value) -> Option<Request> {
    let is_read = |example| serde_json::from_value::<T>(example).is_ok();
    Some(Request { schema: one::<T>(), example, is_read, required: false, patch: false })
}

/// A body whose schema is in [`schemas`].
const fn described<T: DeserializeOwned>(schema: Of, example: fn() -> Value) -> Option<Request> {
    let is_read = |example| serde_json::from_value::<T>(example).is_ok();
    Some(Request { schema, example, is_read, required: true, patch: false })
}

const fn one<T: JsonSchema>() -> Of {
    |generator| generator.subschema_for::<T>()
}

const SAVE: Option<Request> = described::<SaveRequest<Value>>(schemas::SAVE, || {
    json!({
        "type": "s3", "namespace": "imports/nightly", "data": schemas::example(schemas::S3),
        "labels": {"team": "import"}, "description": "The nightly import"
    })
});
const REPLACE: Option<Request> = described::<ReplaceRequest<Value>>(
    schemas::REPLACE,
    || json!({"data": schemas::example(schemas::S3), "stage": true}),
);
const MATCH: Option<Request> =
    described::<MatchRequest<Value>>(schemas::MATCH, || json!({"data": schemas::example(schemas::S3)}));
const DESCRIBE: Option<Request> = Some(Request {
    schema: schemas::DESCRIBE,
    example: || json!({"labels": {"team": "import", "stage": null}, "description": null}),
    is_read: |example| example.is_object(),
    required: true,
    patch: true,
});

use Answer::{List, Nothing, One, Page, Tagged};
use Caller::{Admin, Anybody, Editor, Integration, Invited, Member};

/// Name, tag, summary, caller and parameters; request; status, response and problems of each operation.
macro_rules! operations {
    ($($name:literal, $tag:literal, $summary:literal, $caller:ident, [$($parameter:literal),* $(; $filter:ty)?],
        $request:expr => $status:literal $answer:expr, [$($problem:ident)*];)*) => {
        pub(crate) const OPERATIONS: &[Operation] = &[$(Operation {
            name: $name,
            tag: $tag,
            summary: $summary,
            caller: $caller,
            parameters: &[$($parameter),*],
            filter: &[$(|generator| <$filter>::json_schema(generator))?],
            request: $request,
            status: $status,
            answer: $answer,
            problems: &[$(ProblemCode::$problem),*],
        }),*];
    };
}

operations! {
    "log-in", "Session", "Log in with address, password and passcode", Anybody, [],
        takes::<LoginRequest>(|| json!({"email": "admin@example.com", "password": "correct horse battery", "passcode":
            "123456", "ttl": 3600}))
        => 200 One(one::<LoginResponse>()), [InvalidLogin];
    "log-out", "Session", "Revoke the token", Member, [], none() => 204 Nothing, [];
    "save", "Credentials", "Save a credential under a namespace", Editor, ["Idempotency-Key", "verify"],
        SAVE
        => 201 One(one::<SavedCredential>()), [PreconditionFailed IdempotencyMismatch LimitReached NotUsable
            TooManyRequests];
    "read", "Credentials", "Read the credentials in a text of another program, without saving them", Editor, [],
        takes::<ReadRequest>(|| json!({"text": "AWS_ACCESS_KEY_ID=EXAMPLE\nAWS_SECRET_ACCESS_KEY=example-secret"}))
        => 200 List(one::<ReadEntry>()), [];
    "find-key", "Credentials", "Find the versions that contain a key, without storing it", Editor, [],
        takes::<FindKeyRequest>(|| json!({"text": "PK3E"})) => 200 List(one::<FoundKey>()), [];
    "list", "Credentials", "List credentials, newest first", Member,
        ["cursor"; ListFilter],
        none() => 200 Page(one::<Item>()), [];
    "show", "Credentials", "Show one credential", Member, [], none() => 200 Tagged(one::<Item>()), [NotFound];
    "delete", "Credentials", "Delete a credential and all its versions", Editor, ["If-Match"],
        none() => 204 Nothing, [NotFound PreconditionFailed];
    "describe", "Credentials", "Change labels, description, expiry or rule of a credential", Editor, ["If-Match"],
        DESCRIBE => 200 Tagged(one::<Item>()), [NotFound Conflict PreconditionFailed];
    "replace", "Credentials", "Replace the data of a credential, or stage the new data", Editor,
        ["Idempotency-Key", "If-Match", "verify"],
        REPLACE
        => 201 Tagged(one::<ReplacedCredential>()), [NotFound PreconditionFailed IdempotencyMismatch LimitReached
            NotUsable TooManyRequests];
    "list-versions", "Credentials", "List the versions of a credential", Member, [],
        none() => 200 List(one::<Version>()), [NotFound];
    "promote", "Credentials", "Promote a version", Editor, ["If-Match"],
        takes::<PromoteRequest>(|| json!({"version": 2}))
        => 200 Tagged(one::<Item>()), [NotFound Conflict PreconditionFailed];
    "destroy-version", "Credentials", "Destroy a staged or previous version", Editor, ["If-Match"],
        none() => 204 Nothing, [NotFound Conflict PreconditionFailed];
    "match", "Credentials", "Compare data with the stored data", Editor, [],
        MATCH => 200 One(one::<MatchedCredential>()), [NotFound TooManyRequests];
    "check-credential", "Credentials", "Request a check of a credential at its storage", Editor, [],
        may_take::<CheckCredentialRequest>(|| json!({"version": 2}))
        => 202 Nothing, [NotFound NoChecker TooManyRequests];
    "list-uses", "Credentials", "List the activations that issued a credential, newest first", Editor,
        ["limit", "cursor"],
        none() => 200 Page(one::<CredentialUse>()), [NotFound];
    "list-holders", "Credentials", "List who may use a version of a credential until when, without a limit", Editor, [],
        none() => 200 List(one::<CredentialHolder>()), [NotFound];
    "show-trust", "Credentials", "Show what the provider of a keyless credential must trust, and how to configure it",
        Member,
        [],
        none() => 200 One(one::<ProviderTrust>()), [NotFound Conflict];
    "list-accounts", "Accounts", "List accounts and invitations", Admin, ["limit", "cursor"],
        none() => 200 Page(one::<AccountItem>()), [];
    "invite", "Accounts", "Invite a user", Admin, [],
        takes::<InviteRequest>(|| json!({"email": "ada@example.com", "role": "editor"}))
        => 201 One(one::<InvitedAccount>()), [AddressInUse Conflict LimitReached TooManyRequests];
    "change-account", "Accounts", "Change the role of an account, disable or enable it", Admin, [],
        takes::<ChangeAccountRequest>(|| json!({"role": "viewer"}))
        => 200 One(one::<AccountItem>()), [NotFound Conflict];
    "delete-account", "Accounts", "Delete an account or an invitation", Admin, [],
        none() => 204 Nothing, [NotFound Conflict];
    "unlock-account", "Accounts", "Unlock an account", Admin, [], none() => 204 Nothing, [NotFound Conflict];
    "re-enrol", "Accounts", "Require a user to enrol again", Admin, [],
        none() => 201 One(one::<ReEnrolment>()), [NotFound Conflict];
    "show-invitation", "Enrolment", "Show the invitation of an enrolment code", Invited, [],
        takes::<InvitationRequest>(|| json!({"enrolment_code": "example2example3example4ex"}))
        => 200 One(one::<InvitationItem>()), [InvalidEnrolment];
    "enrol", "Enrolment", "Accept an invitation: set a password and get a secret for an authenticator", Invited, [],
        takes::<EnrolRequest>(|| json!({"enrolment_code": "example2example3example4ex", "password": "correct horse battery"}))
        => 200 One(one::<EnrolResponse>()), [InvalidEnrolment];
    "confirm-enrolment", "Enrolment", "Confirm the enrolment with a first passcode", Invited, [],
        takes::<ConfirmEnrolmentRequest>(|| json!({"enrolment_code": "example2example3example4ex", "passcode": "123456"}))
        => 204 Nothing, [InvalidEnrolment AddressInUse LimitReached];
    "show-account", "Own account", "Show your own account", Member, [], none() => 200 One(one::<OwnAccount>()), [];
    "list-sessions", "Own account", "List your own sessions", Member, [], none() => 200 List(one::<SessionItem>()), [];
    "end-session", "Own account", "Revoke one of your own sessions", Member, [], none() => 204 Nothing, [NotFound];
    "list-set-aside", "Own account", "List what you have set aside on the overview of the console", Member, [],
        none() => 200 List(one::<SetAsideItem>()), [];
    "change-set-aside", "Own account", "Set a row of the console's overview aside until a time, or show it again", Member,
        [],
        takes::<SetAsideRequest>(|| json!({"concern": "expires 0198f7c2", "until": "2026-12-01T00:00:00Z"}))
        => 204 Nothing, [LimitReached];
    "change-password", "Own account", "Change your password", Member, [],
        takes::<ChangePasswordRequest>(|| json!({"password": "correct horse battery", "passcode": "123456",
            "new_password": "staple correct horse"}))
        => 204 Nothing, [InvalidLogin TooManyRequests];
    "replace-passcode", "Own account", "Get a new secret for an authenticator", Member, [],
        takes::<ProofRequest>(|| json!({"password": "correct horse battery", "passcode": "123456"}))
        => 200 One(one::<NewPasscode>()), [InvalidLogin TooManyRequests];
    "confirm-passcode", "Own account", "Confirm the new secret with a first passcode", Member, [],
        takes::<ConfirmPasscodeRequest>(|| json!({"passcode": "123456"}))
        => 204 Nothing, [InvalidLogin Conflict TooManyRequests];
    "replace-recovery-codes", "Own account", "Get new recovery codes", Member, [],
        takes::<ProofRequest>(|| json!({"password": "correct horse battery", "passcode": "123456"}))
        => 200 One(one::<NewRecoveryCodes>()), [InvalidLogin TooManyRequests];
    "list-integrations", "Integrations", "List integrations", Admin, ["limit", "cursor"],
        none() => 200 Page(one::<IntegrationItem>()), [];
    "create-integration", "Integrations", "Create an integration and its token", Admin, [],
        takes::<CreateIntegrationRequest>(|| json!({"name": "nightly", "namespaces": ["imports/*"]}))
        => 201 One(one::<IssuedIntegration>()), [Conflict LimitReached];
    "list-trusts", "Integrations", "List the trusts of an integration", Admin, [],
        none() => 200 List(one::<TrustItem>()), [NotFound];
    "create-trust", "Integrations", "Trust workloads of an issuer for an integration", Admin, [],
        takes::<TrustRequest>(|| json!({"issuer": "github", "claims": {"/sub": "repo:acme/etl:ref:refs/heads/main"}}))
        => 201 One(one::<TrustItem>()), [NotFound Conflict];
    "delete-trust", "Integrations", "Remove a trust from an integration", Admin, [], none() => 204 Nothing, [NotFound];
    "list-integration-usage", "Integrations",
        "Count activations and denied requests of integrations within the last 30 days", Admin, ["since"],
        none() => 200 List(one::<IntegrationUsageItem>()), [];
    "list-issuers", "Integrations", "List the issuers of identity tokens that integrations may trust", Admin, [],
        none() => 200 List(one::<IssuerItem>()), [];
    "list-receivers", "Receivers", "List the receivers of events", Admin, [],
        none() => 200 List(one::<ReceiverItem>()), [];
    "add-receiver", "Receivers", "Add a receiver of events; the signing secret of a webhook is shown once", Admin, [],
        takes::<AddReceiverRequest>(|| json!({"kind": "webhook", "url": "https://hooks.example.com/orgvault", "events":
            ["credential.expiring"]}))
        => 201 One(one::<IssuedReceiver>()), [LimitReached];
    "change-receiver", "Receivers", "Change a receiver's events, or enable or disable it", Admin, [],
        takes::<ChangeReceiverRequest>(|| json!({"state": "active"})) => 200 One(one::<ReceiverItem>()), [NotFound];
    "remove-receiver", "Receivers", "Remove a receiver and its pending events", Admin, [],
        none() => 204 Nothing, [NotFound];
    "rotate-receiver-secret", "Receivers", "Replace the signing secret of a webhook; the old one also signs for a day",
        Admin,
        [],
        none() => 200 One(one::<IssuedReceiver>()), [NotFound];
    "test-receiver", "Receivers", "Send a test event to a receiver", Admin, [],
        none() => 202 One(one::<DeliveryItem>()), [NotFound];
    "list-deliveries", "Receivers", "List the deliveries to a receiver, newest first", Admin, ["limit", "cursor"],
        none() => 200 Page(one::<DeliveryItem>()), [NotFound];
    "resend-event", "Receivers", "Send an event to a receiver again", Admin, [],
        none() => 202 One(one::<DeliveryItem>()), [NotFound];
    "rotate-integration", "Integrations", "Replace the token of an integration", Admin, [],
        may_take::<RotateIntegrationRequest>(|| json!({"overlap": 3600}))
        => 200 One(one::<IssuedIntegration>()), [NotFound Conflict];
    "change-integration", "Integrations", "Change state, namespaces or expiry of an integration", Admin, [],
        takes::<ChangeIntegrationRequest>(|| json!({"state": "disabled"}))
        => 200 One(one::<IntegrationItem>()), [NotFound Conflict];
    "delete-integration", "Integrations", "Delete an integration", Admin, [], none() => 204 Nothing, [NotFound];
    "list-namespaces", "Namespaces", "List namespaces", Member, ["namespace", "limit", "cursor"],
        none() => 200 Page(one::<NamespaceItem>()), [];
    "show-namespace-usage", "Namespaces",
        "Count activations and denied requests of namespaces within the last 30 days", Admin, ["since", "integration"],
        none() => 200 One(one::<NamespaceUsage>()), [];
    "freeze-namespace", "Namespaces", "Freeze a namespace: stop its activations immediately", Admin, [],
        takes::<NamespaceRequest>(|| json!({"namespace": "imports/nightly"}))
        => 200 One(one::<FrozenNamespace>()), [LimitReached];
    "thaw-namespace", "Namespaces", "Thaw a namespace", Admin, [],
        takes::<NamespaceRequest>(|| json!({"namespace": "imports/nightly"})) => 200 One(one::<FrozenNamespace>()), [];
    "list-audit", "Audit", "List audit entries", Admin,
        ["cursor"; AuditFilter],
        none() => 200 Page(one::<AuditItem>()), [];
    "live", "Probes", "Check whether the process responds (liveness)", Anybody, [],
        none() => 200 One(one::<ProbeStatus>()), [];
    "ready", "Probes", "Check whether the server can serve requests (readiness)", Anybody, [],
        none() => 200 One(one::<ProbeStatus>()), [];
    "activate", "Activation", "Get the credentials of a namespace", Integration, [],
        takes::<ActivateRequest>(|| json!({"namespace": "imports/nightly", "purpose": "nightly import", "ttl": 3600}))
        => 201 One(one::<BegunActivation>()), [NamespaceNotAllowed Frozen NotFound Conflict NamespaceTooLarge
            TooManyRequests];
    "list-activations", "Activation", "List the integration's active activations", Integration, [],
        none() => 200 List(one::<ActivationItem>()), [];
    "end-activation", "Activation", "End an activation", Integration, [], none() => 204 Nothing, [NotFound];
    "renew-activation", "Activation", "Get the current credentials of an activation, and extend it", Integration, [],
        takes::<RenewRequest>(|| json!({"ttl": 3600}))
        => 200 One(one::<BegunActivation>()), [NamespaceNotAllowed Frozen NotFound Conflict NamespaceTooLarge
            TooManyRequests];
    "check-namespace", "Activation", "Check the credentials of a namespace without issuing them", Integration, [],
        takes::<CheckRequest>(|| json!({"namespace": "imports/nightly", "operations": ["list", "read"]}))
        => 200 One(one::<CheckedNamespace>()), [NamespaceNotAllowed Frozen NotFound NamespaceTooLarge TooManyRequests];
}
