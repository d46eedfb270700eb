//! Requests and responses of each operation.

use crate::schemas;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use vault_api::*;

type Of = fn(&mut SchemaGenerator) -> Schema;

/// One operation.
pub(crate) struct Operation {
    /// Its name in the table of routes.
    pub(crate) name: &'static str,
    pub(crate) tag: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) caller: Caller,
    pub(crate) parameters: &'static [&'static str],
    pub(crate) request: Option<Request>,
    pub(crate) status: u16,
    pub(crate) answer: Answer,
    /// Problems in addition to those that its caller and its request imply.
    pub(crate) problems: &'static [ProblemCode],
}

/// Permitted callers.
#[derive(Clone, Copy, PartialEq, Eq)]
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

const fn takes<T: JsonSchema + DeserializeOwned>(example: fn() -> Value) -> Option<Request> {
    let is_read = |example| serde_json::from_value::<T>(example).is_ok();
    Some(Request { schema: |generator| generator.subschema_for::<T>(), example, is_read, required: true, patch: false })
}

/// An optional body.
const fn may_take<T: JsonSchema + DeserializeOwned>(example: fn() -> Value) -> Option<Request> {
    match takes::<T>(example) {
        Some(request) => Some(Request { required: false, ..request }),
        None => None,
    }
}

const fn one<T: JsonSchema>() -> Of {
    |generator| generator.subschema_for::<T>()
}

use Answer::{List, Nothing, One, Page, Tagged};
use Caller::{Admin, Anybody, Editor, Integration, Invited, Member};
use ProblemCode as P;

type Item = CredentialItem;
type Version = VersionItem;

const DEFAULT: Operation = Operation {
    name: "",
    tag: "Credentials",
    summary: "",
    caller: Member,
    parameters: &[],
    request: None,
    status: 200,
    answer: Nothing,
    problems: &[],
};

pub(crate) const OPERATIONS: &[Operation] = &[
    Operation {
        name: "log-in",
        tag: "Session",
        summary: "Log in with address, password and passcode",
        caller: Anybody,
        request: takes::<LoginRequest>(
            || json!({"email": "admin@example.com", "password": "correct horse battery", "passcode": "123456", "ttl": 3600}),
        ),
        answer: One(one::<LoginResponse>()),
        problems: &[P::InvalidLogin],
        ..DEFAULT
    },
    Operation { name: "log-out", tag: "Session", summary: "Revoke the token", status: 204, ..DEFAULT },
    Operation {
        name: "save",
        summary: "Save a credential under a namespace",
        caller: Editor,
        parameters: &["Idempotency-Key", "verify"],
        request: Some(Request {
            schema: schemas::SAVE,
            example: || {
                json!({
                    "type": "s3", "namespace": "imports/nightly", "data": schemas::example(schemas::S3),
                    "labels": {"team": "import"}, "description": "The nightly import"
                })
            },
            is_read: |example| serde_json::from_value::<SaveRequest<Value>>(example).is_ok(),
            required: true,
            patch: false,
        }),
        status: 201,
        answer: One(one::<SavedCredential>()),
        problems: &[P::PreconditionFailed, P::IdempotencyMismatch, P::LimitReached, P::NotUsable, P::TooManyRequests],
        ..DEFAULT
    },
    Operation {
        name: "list",
        summary: "List credentials, newest first",
        parameters: &["namespace", "type", "label", "health", "expires_before", "limit", "cursor"],
        answer: Page(one::<Item>()),
        ..DEFAULT
    },
    Operation {
        name: "show",
        summary: "Show one credential",
        answer: Tagged(one::<Item>()),
        problems: &[P::NotFound],
        ..DEFAULT
    },
    Operation {
        name: "delete",
        summary: "Delete a credential and all its versions",
        caller: Editor,
        parameters: &["If-Match"],
        status: 204,
        problems: &[P::NotFound, P::PreconditionFailed],
        ..DEFAULT
    },
    Operation {
        name: "describe",
        summary: "Change labels, description, expiry or rule of a credential",
        caller: Editor,
        parameters: &["If-Match"],
        request: Some(Request {
            schema: schemas::DESCRIBE,
            example: || json!({"labels": {"team": "import", "stage": null}, "description": null}),
            is_read: |example| example.is_object(),
            required: true,
            patch: true,
        }),
        answer: Tagged(one::<Item>()),
        problems: &[P::NotFound, P::Conflict, P::PreconditionFailed],
        ..DEFAULT
    },
    Operation {
        name: "replace",
        summary: "Replace the data of a credential, or stage the new data",
        caller: Editor,
        parameters: &["Idempotency-Key", "If-Match", "verify"],
        request: Some(Request {
            schema: schemas::REPLACE,
            example: || json!({"data": schemas::example(schemas::S3), "stage": true}),
            is_read: |example| serde_json::from_value::<ReplaceRequest<Value>>(example).is_ok(),
            required: true,
            patch: false,
        }),
        status: 201,
        answer: Tagged(one::<ReplacedCredential>()),
        problems: &[
            P::NotFound,
            P::PreconditionFailed,
            P::IdempotencyMismatch,
            P::LimitReached,
            P::NotUsable,
            P::TooManyRequests,
        ],
        ..DEFAULT
    },
    Operation {
        name: "list-versions",
        summary: "List the versions of a credential",
        answer: List(one::<Version>()),
        problems: &[P::NotFound],
        ..DEFAULT
    },
    Operation {
        name: "promote",
        summary: "Promote a version",
        caller: Editor,
        parameters: &["If-Match"],
        request: takes::<PromoteRequest>(|| json!({"version": 2})),
        answer: Tagged(one::<Item>()),
        problems: &[P::NotFound, P::Conflict, P::PreconditionFailed],
        ..DEFAULT
    },
    Operation {
        name: "destroy-version",
        summary: "Destroy a staged or previous version",
        caller: Editor,
        parameters: &["If-Match"],
        status: 204,
        problems: &[P::NotFound, P::Conflict, P::PreconditionFailed],
        ..DEFAULT
    },
    Operation {
        name: "match",
        summary: "Compare data with the stored data",
        caller: Editor,
        request: Some(Request {
            schema: schemas::MATCH,
            example: || json!({"data": schemas::example(schemas::S3)}),
            is_read: |example| serde_json::from_value::<MatchRequest<Value>>(example).is_ok(),
            required: true,
            patch: false,
        }),
        answer: One(one::<MatchedCredential>()),
        problems: &[P::NotFound, P::TooManyRequests],
        ..DEFAULT
    },
    Operation {
        name: "check-credential",
        summary: "Request a check of a credential at its storage",
        caller: Editor,
        request: may_take::<CheckCredentialRequest>(|| json!({"version": 2})),
        status: 202,
        problems: &[P::NotFound, P::NoChecker, P::TooManyRequests],
        ..DEFAULT
    },
    Operation {
        name: "list-uses",
        summary: "List the activations that issued a credential, newest first",
        caller: Editor,
        parameters: &["limit", "cursor"],
        answer: Page(one::<CredentialUse>()),
        problems: &[P::NotFound],
        ..DEFAULT
    },
    Operation {
        name: "show-trust",
        summary: "Show what the provider of a keyless credential must trust, and how to configure it",
        answer: One(one::<ProviderTrust>()),
        problems: &[P::NotFound, P::Conflict],
        ..DEFAULT
    },
    Operation {
        name: "list-accounts",
        tag: "Accounts",
        summary: "List accounts and invitations",
        caller: Admin,
        parameters: &["limit", "cursor"],
        answer: Page(one::<AccountItem>()),
        ..DEFAULT
    },
    Operation {
        name: "invite",
        tag: "Accounts",
        summary: "Invite a user",
        caller: Admin,
        request: takes::<InviteRequest>(|| json!({"email": "ada@example.com", "role": "editor"})),
        status: 201,
        answer: One(one::<InvitedAccount>()),
        problems: &[P::AddressInUse, P::Conflict, P::LimitReached, P::TooManyRequests],
        ..DEFAULT
    },
    Operation {
        name: "change-account",
        tag: "Accounts",
        summary: "Change the role of an account, disable or enable it",
        caller: Admin,
        request: takes::<ChangeAccountRequest>(|| json!({"role": "viewer"})),
        answer: One(one::<AccountItem>()),
        problems: &[P::NotFound, P::Conflict],
        ..DEFAULT
    },
    Operation {
        name: "delete-account",
        tag: "Accounts",
        summary: "Delete an account or an invitation",
        caller: Admin,
        status: 204,
        problems: &[P::NotFound, P::Conflict],
        ..DEFAULT
    },
    Operation {
        name: "unlock-account",
        tag: "Accounts",
        summary: "Unlock an account",
        caller: Admin,
        status: 204,
        problems: &[P::NotFound, P::Conflict],
        ..DEFAULT
    },
    Operation {
        name: "re-enrol",
        tag: "Accounts",
        summary: "Require a user to enrol again",
        caller: Admin,
        status: 201,
        answer: One(one::<ReEnrolment>()),
        problems: &[P::NotFound, P::Conflict],
        ..DEFAULT
    },
    Operation {
        name: "show-invitation",
        tag: "Enrolment",
        summary: "Show the invitation of an enrolment code",
        caller: Invited,
        request: takes::<InvitationRequest>(|| json!({"enrolment_code": "oven_EXAMPLE"})),
        answer: One(one::<InvitationItem>()),
        problems: &[P::InvalidEnrolment],
        ..DEFAULT
    },
    Operation {
        name: "enrol",
        tag: "Enrolment",
        summary: "Accept an invitation: set a password and get a secret for an authenticator",
        caller: Invited,
        request: takes::<EnrolRequest>(
            || json!({"enrolment_code": "oven_EXAMPLE", "password": "correct horse battery"}),
        ),
        answer: One(one::<EnrolResponse>()),
        problems: &[P::InvalidEnrolment],
        ..DEFAULT
    },
    Operation {
        name: "confirm-enrolment",
        tag: "Enrolment",
        summary: "Confirm the enrolment with a first passcode",
        caller: Invited,
        request: takes::<ConfirmEnrolmentRequest>(|| json!({"enrolment_code": "oven_EXAMPLE", "passcode": "123456"})),
        status: 204,
        problems: &[P::InvalidEnrolment, P::AddressInUse, P::LimitReached],
        ..DEFAULT
    },
    Operation {
        name: "show-account",
        tag: "Own account",
        summary: "Show your own account",
        answer: One(one::<OwnAccount>()),
        ..DEFAULT
    },
    Operation {
        name: "list-sessions",
        tag: "Own account",
        summary: "List your own sessions",
        answer: List(one::<SessionItem>()),
        ..DEFAULT
    },
    Operation {
        name: "end-session",
        tag: "Own account",
        summary: "Revoke one of your own sessions",
        status: 204,
        problems: &[P::NotFound],
        ..DEFAULT
    },
    Operation {
        name: "change-password",
        tag: "Own account",
        summary: "Change your password",
        request: takes::<ChangePasswordRequest>(
            || json!({"password": "correct horse battery", "passcode": "123456", "new_password": "staple correct horse"}),
        ),
        status: 204,
        problems: &[P::InvalidLogin, P::TooManyRequests],
        ..DEFAULT
    },
    Operation {
        name: "replace-passcode",
        tag: "Own account",
        summary: "Get a new secret for an authenticator",
        request: takes::<ProofRequest>(|| json!({"password": "correct horse battery", "passcode": "123456"})),
        answer: One(one::<NewPasscode>()),
        problems: &[P::InvalidLogin, P::TooManyRequests],
        ..DEFAULT
    },
    Operation {
        name: "confirm-passcode",
        tag: "Own account",
        summary: "Confirm the new secret with a first passcode",
        request: takes::<ConfirmPasscodeRequest>(|| json!({"passcode": "123456"})),
        status: 204,
        problems: &[P::InvalidLogin, P::Conflict, P::TooManyRequests],
        ..DEFAULT
    },
    Operation {
        name: "replace-recovery-codes",
        tag: "Own account",
        summary: "Get new recovery codes",
        request: takes::<ProofRequest>(|| json!({"password": "correct horse battery", "passcode": "123456"})),
        answer: One(one::<NewRecoveryCodes>()),
        problems: &[P::InvalidLogin, P::TooManyRequests],
        ..DEFAULT
    },
    Operation {
        name: "list-integrations",
        tag: "Integrations",
        summary: "List integrations",
        caller: Admin,
        parameters: &["limit", "cursor"],
        answer: Page(one::<IntegrationItem>()),
        ..DEFAULT
    },
    Operation {
        name: "create-integration",
        tag: "Integrations",
        summary: "Create an integration and its token",
        caller: Admin,
        request: takes::<CreateIntegrationRequest>(|| json!({"name": "nightly", "namespaces": ["imports/*"]})),
        status: 201,
        answer: One(one::<IssuedIntegration>()),
        problems: &[P::Conflict, P::LimitReached],
        ..DEFAULT
    },
    Operation {
        name: "list-trusts",
        tag: "Integrations",
        summary: "List the trusts of an integration",
        caller: Admin,
        answer: List(one::<TrustItem>()),
        problems: &[P::NotFound],
        ..DEFAULT
    },
    Operation {
        name: "create-trust",
        tag: "Integrations",
        summary: "Trust workloads of an issuer for an integration",
        caller: Admin,
        request: takes::<TrustRequest>(
            || json!({"issuer": "github", "claims": {"/sub": "repo:acme/etl:ref:refs/heads/main"}}),
        ),
        status: 201,
        answer: One(one::<TrustItem>()),
        problems: &[P::NotFound, P::Conflict],
        ..DEFAULT
    },
    Operation {
        name: "delete-trust",
        tag: "Integrations",
        summary: "Remove a trust from an integration",
        caller: Admin,
        status: 204,
        problems: &[P::NotFound],
        ..DEFAULT
    },
    Operation {
        name: "list-integration-usage",
        tag: "Integrations",
        summary: "Count activations and denied requests of integrations within the last 30 days",
        caller: Admin,
        parameters: &["since"],
        answer: List(one::<IntegrationUsageItem>()),
        ..DEFAULT
    },
    Operation {
        name: "list-issuers",
        tag: "Integrations",
        summary: "List the issuers of identity tokens that integrations may trust",
        caller: Admin,
        answer: List(one::<IssuerItem>()),
        ..DEFAULT
    },
    Operation {
        name: "list-receivers",
        tag: "Receivers",
        summary: "List the receivers of events",
        caller: Admin,
        answer: List(one::<ReceiverItem>()),
        ..DEFAULT
    },
    Operation {
        name: "add-receiver",
        tag: "Receivers",
        summary: "Add a receiver of events; the signing secret of a webhook is shown once",
        caller: Admin,
        request: takes::<AddReceiverRequest>(
            || json!({"kind": "webhook", "url": "https://hooks.example.com/orgvault", "events": ["credential.expiring"]}),
        ),
        status: 201,
        answer: One(one::<IssuedReceiver>()),
        problems: &[P::LimitReached],
        ..DEFAULT
    },
    Operation {
        name: "change-receiver",
        tag: "Receivers",
        summary: "Change a receiver's events, or enable or disable it",
        caller: Admin,
        request: takes::<ChangeReceiverRequest>(|| json!({"state": "active"})),
        answer: One(one::<ReceiverItem>()),
        problems: &[P::NotFound],
        ..DEFAULT
    },
    Operation {
        name: "remove-receiver",
        tag: "Receivers",
        summary: "Remove a receiver and its pending events",
        caller: Admin,
        status: 204,
        problems: &[P::NotFound],
        ..DEFAULT
    },
    Operation {
        name: "rotate-receiver-secret",
        tag: "Receivers",
        summary: "Replace the signing secret of a webhook; the old one also signs for a day",
        caller: Admin,
        answer: One(one::<IssuedReceiver>()),
        problems: &[P::NotFound],
        ..DEFAULT
    },
    Operation {
        name: "test-receiver",
        tag: "Receivers",
        summary: "Send a test event to a receiver",
        caller: Admin,
        status: 202,
        answer: One(one::<DeliveryItem>()),
        problems: &[P::NotFound],
        ..DEFAULT
    },
    Operation {
        name: "list-deliveries",
        tag: "Receivers",
        summary: "List the deliveries to a receiver, newest first",
        caller: Admin,
        parameters: &["limit", "cursor"],
        answer: Page(one::<DeliveryItem>()),
        problems: &[P::NotFound],
        ..DEFAULT
    },
    Operation {
        name: "resend-event",
        tag: "Receivers",
        summary: "Send an event to a receiver again",
        caller: Admin,
        status: 202,
        answer: One(one::<DeliveryItem>()),
        problems: &[P::NotFound],
        ..DEFAULT
    },
    Operation {
        name: "rotate-integration",
        tag: "Integrations",
        summary: "Replace the token of an integration",
        caller: Admin,
        request: may_take::<RotateIntegrationRequest>(|| json!({"overlap": 3600})),
        answer: One(one::<IssuedIntegration>()),
        problems: &[P::NotFound, P::Conflict],
        ..DEFAULT
    },
    Operation {
        name: "change-integration",
        tag: "Integrations",
        summary: "Change state, namespaces or expiry of an integration",
        caller: Admin,
        request: takes::<ChangeIntegrationRequest>(|| json!({"state": "disabled"})),
        answer: One(one::<IntegrationItem>()),
        problems: &[P::NotFound, P::Conflict],
        ..DEFAULT
    },
    Operation {
        name: "delete-integration",
        tag: "Integrations",
        summary: "Delete an integration",
        caller: Admin,
        status: 204,
        problems: &[P::NotFound],
        ..DEFAULT
    },
    Operation {
        name: "list-namespaces",
        tag: "Namespaces",
        summary: "List namespaces",
        parameters: &["limit", "cursor"],
        answer: Page(one::<NamespaceItem>()),
        ..DEFAULT
    },
    Operation {
        name: "show-namespace-usage",
        tag: "Namespaces",
        summary: "Count activations and denied requests of namespaces within the last 30 days",
        caller: Admin,
        parameters: &["since", "integration"],
        answer: One(one::<NamespaceUsage>()),
        ..DEFAULT
    },
    Operation {
        name: "freeze-namespace",
        tag: "Namespaces",
        summary: "Freeze a namespace: stop its activations immediately",
        caller: Admin,
        request: takes::<NamespaceRequest>(|| json!({"namespace": "imports/nightly"})),
        answer: One(one::<FrozenNamespace>()),
        problems: &[P::LimitReached],
        ..DEFAULT
    },
    Operation {
        name: "thaw-namespace",
        tag: "Namespaces",
        summary: "Thaw a namespace",
        caller: Admin,
        request: takes::<NamespaceRequest>(|| json!({"namespace": "imports/nightly"})),
        answer: One(one::<FrozenNamespace>()),
        ..DEFAULT
    },
    Operation {
        name: "list-audit",
        tag: "Audit",
        summary: "List audit entries",
        caller: Admin,
        parameters: &[
            "since",
            "until",
            "action",
            "outcome",
            "reads",
            "subject",
            "actor",
            "namespace",
            "order",
            "limit",
            "cursor",
        ],
        answer: Page(one::<AuditItem>()),
        ..DEFAULT
    },
    Operation {
        name: "live",
        tag: "Probes",
        summary: "Check whether the process responds (liveness)",
        caller: Anybody,
        answer: One(one::<ProbeStatus>()),
        ..DEFAULT
    },
    Operation {
        name: "ready",
        tag: "Probes",
        summary: "Check whether the server can serve requests (readiness)",
        caller: Anybody,
        answer: One(one::<ProbeStatus>()),
        ..DEFAULT
    },
    Operation {
        name: "activate",
        tag: "Activation",
        summary: "Get the credentials of a namespace",
        caller: Integration,
        request: takes::<ActivateRequest>(
            || json!({"namespace": "imports/nightly", "purpose": "nightly import", "ttl": 3600}),
        ),
        status: 201,
        answer: One(one::<BegunActivation>()),
        problems: &[
            P::NamespaceNotAllowed,
            P::Frozen,
            P::NotFound,
            P::Conflict,
            P::NamespaceTooLarge,
            P::TooManyRequests,
        ],
        ..DEFAULT
    },
    Operation {
        name: "list-activations",
        tag: "Activation",
        summary: "List the integration's active activations",
        caller: Integration,
        answer: List(one::<ActivationItem>()),
        ..DEFAULT
    },
    Operation {
        name: "end-activation",
        tag: "Activation",
        summary: "End an activation",
        caller: Integration,
        status: 204,
        problems: &[P::NotFound],
        ..DEFAULT
    },
    Operation {
        name: "renew-activation",
        tag: "Activation",
        summary: "Get the current credentials of an activation, and extend it",
        caller: Integration,
        request: takes::<RenewRequest>(|| json!({"ttl": 3600})),
        answer: One(one::<BegunActivation>()),
        problems: &[
            P::NamespaceNotAllowed,
            P::Frozen,
            P::NotFound,
            P::Conflict,
            P::NamespaceTooLarge,
            P::TooManyRequests,
        ],
        ..DEFAULT
    },
    Operation {
        name: "check-namespace",
        tag: "Activation",
        summary: "Check the credentials of a namespace without issuing them",
        caller: Integration,
        request: takes::<CheckRequest>(|| json!({"namespace": "imports/nightly", "operations": ["list", "read"]})),
        answer: One(one::<CheckedNamespace>()),
        problems: &[P::NamespaceNotAllowed, P::Frozen, P::NotFound, P::NamespaceTooLarge, P::TooManyRequests],
        ..DEFAULT
    },
];
