//! The routes of all listeners.

use super::{Address, Operation};

/// Routes of the public listener.
pub(super) static PUBLIC: [Address; 51] = [
    Address { template: "{base}/login", methods: &[("POST", Operation::LogIn)], allow: "POST" },
    Address { template: "{base}/logout", methods: &[("POST", Operation::LogOut)], allow: "POST" },
    Address {
        template: "{base}/organization-vault",
        methods: &[("GET", Operation::List), ("PATCH", Operation::Save)],
        allow: "GET, HEAD, PATCH",
    },
    Address {
        template: "{base}/organization-vault/{id}",
        methods: &[("GET", Operation::Show), ("PATCH", Operation::Describe), ("DELETE", Operation::Delete)],
        allow: "GET, HEAD, PATCH, DELETE",
    },
    Address {
        template: "{base}/organization-vault/{id}/versions",
        methods: &[("GET", Operation::ListVersions), ("POST", Operation::Replace)],
        allow: "GET, HEAD, POST",
    },
    Address {
        template: "{base}/organization-vault/{id}/versions/{version}",
        methods: &[("DELETE", Operation::DestroyVersion)],
        allow: "DELETE",
    },
    Address {
        template: "{base}/organization-vault/{id}/promote",
        methods: &[("POST", Operation::Promote)],
        allow: "POST",
    },
    Address { template: "{base}/organization-vault/{id}/match", methods: &[("POST", Operation::Match)], allow: "POST" },
    Address {
        template: "{base}/organization-vault/{id}/check",
        methods: &[("POST", Operation::CheckCredential)],
        allow: "POST",
    },
    Address {
        template: "{base}/organization-vault/{id}/activations",
        methods: &[("GET", Operation::ListUses)],
        allow: "GET, HEAD",
    },
    Address {
        template: "{base}/organization-vault/{id}/trust",
        methods: &[("GET", Operation::ShowTrust)],
        allow: "GET, HEAD",
    },
    Address {
        template: "{base}/accounts",
        methods: &[("GET", Operation::ListAccounts), ("POST", Operation::Invite)],
        allow: "GET, HEAD, POST",
    },
    Address {
        template: "{base}/accounts/{id}",
        methods: &[("PATCH", Operation::ChangeAccount), ("DELETE", Operation::DeleteAccount)],
        allow: "PATCH, DELETE",
    },
    Address { template: "{base}/accounts/{id}/unlock", methods: &[("POST", Operation::UnlockAccount)], allow: "POST" },
    Address { template: "{base}/accounts/{id}/re-enrol", methods: &[("POST", Operation::ReEnrol)], allow: "POST" },
    Address { template: "{base}/enrol", methods: &[("POST", Operation::Enrol)], allow: "POST" },
    Address { template: "{base}/enrol/invitation", methods: &[("POST", Operation::ShowInvitation)], allow: "POST" },
    Address { template: "{base}/enrol/confirm", methods: &[("POST", Operation::ConfirmEnrolment)], allow: "POST" },
    Address { template: "{base}/account", methods: &[("GET", Operation::ShowAccount)], allow: "GET, HEAD" },
    Address { template: "{base}/account/sessions", methods: &[("GET", Operation::ListSessions)], allow: "GET, HEAD" },
    Address {
        template: "{base}/account/sessions/{id}",
        methods: &[("DELETE", Operation::EndSession)],
        allow: "DELETE",
    },
    Address { template: "{base}/account/password", methods: &[("POST", Operation::ChangePassword)], allow: "POST" },
    Address { template: "{base}/account/passcode", methods: &[("POST", Operation::ReplacePasscode)], allow: "POST" },
    Address {
        template: "{base}/account/passcode/confirm",
        methods: &[("POST", Operation::ConfirmPasscode)],
        allow: "POST",
    },
    Address {
        template: "{base}/account/recovery-codes",
        methods: &[("POST", Operation::ReplaceRecoveryCodes)],
        allow: "POST",
    },
    Address {
        template: "{base}/integrations",
        methods: &[("GET", Operation::ListIntegrations), ("POST", Operation::CreateIntegration)],
        allow: "GET, HEAD, POST",
    },
    // Must precede the next route, which matches the same path.
    Address {
        template: "{base}/integrations/usage",
        methods: &[("GET", Operation::ListIntegrationUsage)],
        allow: "GET, HEAD",
    },
    Address {
        template: "{base}/integrations/{id}",
        methods: &[("PATCH", Operation::ChangeIntegration), ("DELETE", Operation::DeleteIntegration)],
        allow: "PATCH, DELETE",
    },
    Address {
        template: "{base}/integrations/{id}/trusts",
        methods: &[("GET", Operation::ListTrusts), ("POST", Operation::CreateTrust)],
        allow: "GET, HEAD, POST",
    },
    Address {
        template: "{base}/integrations/{id}/trusts/{trust}",
        methods: &[("DELETE", Operation::DeleteTrust)],
        allow: "DELETE",
    },
    Address { template: "{base}/issuers", methods: &[("GET", Operation::ListIssuers)], allow: "GET, HEAD" },
    Address {
        template: "{base}/integrations/{id}/rotate",
        methods: &[("POST", Operation::RotateIntegration)],
        allow: "POST",
    },
    Address {
        template: "{base}/receivers",
        methods: &[("GET", Operation::ListReceivers), ("POST", Operation::AddReceiver)],
        allow: "GET, HEAD, POST",
    },
    Address {
        template: "{base}/receivers/{id}",
        methods: &[("PATCH", Operation::ChangeReceiver), ("DELETE", Operation::RemoveReceiver)],
        allow: "PATCH, DELETE",
    },
    Address {
        template: "{base}/receivers/{id}/rotate-secret",
        methods: &[("POST", Operation::RotateReceiverSecret)],
        allow: "POST",
    },
    Address { template: "{base}/receivers/{id}/test", methods: &[("POST", Operation::TestReceiver)], allow: "POST" },
    Address {
        template: "{base}/receivers/{id}/deliveries",
        methods: &[("GET", Operation::ListDeliveries)],
        allow: "GET, HEAD",
    },
    Address {
        template: "{base}/receivers/{id}/deliveries/{delivery}/resend",
        methods: &[("POST", Operation::ResendEvent)],
        allow: "POST",
    },
    Address { template: "{base}/namespaces", methods: &[("GET", Operation::ListNamespaces)], allow: "GET, HEAD" },
    Address {
        template: "{base}/namespaces/usage",
        methods: &[("GET", Operation::ShowNamespaceUsage)],
        allow: "GET, HEAD",
    },
    Address { template: "{base}/namespaces/freeze", methods: &[("POST", Operation::FreezeNamespace)], allow: "POST" },
    Address { template: "{base}/namespaces/thaw", methods: &[("POST", Operation::ThawNamespace)], allow: "POST" },
    Address { template: "{base}/audit", methods: &[("GET", Operation::ListAudit)], allow: "GET, HEAD" },
    Address { template: "/openapi.json", methods: &[("GET", Operation::Openapi)], allow: "GET, HEAD" },
    Address {
        template: "/.well-known/openid-configuration",
        methods: &[("GET", Operation::ShowFederationIssuer)],
        allow: "GET, HEAD",
    },
    Address {
        template: "/federation/jwks.json",
        methods: &[("GET", Operation::ShowFederationKeys)],
        allow: "GET, HEAD",
    },
    Address { template: "/docs", methods: &[("GET", Operation::Docs)], allow: "GET, HEAD" },
    Address { template: "/", methods: &[("GET", Operation::Console)], allow: "GET, HEAD" },
    Address { template: "/console/{id}", methods: &[("GET", Operation::ConsoleFile)], allow: "GET, HEAD" },
    LIVE,
    READY,
];

/// Routes of the activation listener.
pub(super) static ACTIVATION: [Address; 6] = [
    Address {
        template: "{base}/activations",
        methods: &[("GET", Operation::ListActivations), ("POST", Operation::Activate)],
        allow: "GET, HEAD, POST",
    },
    // Must precede the next route, which matches the same path.
    Address { template: "{base}/activations/check", methods: &[("POST", Operation::CheckNamespace)], allow: "POST" },
    Address { template: "{base}/activations/{id}", methods: &[("DELETE", Operation::EndActivation)], allow: "DELETE" },
    Address {
        template: "{base}/activations/{id}/renew",
        methods: &[("POST", Operation::RenewActivation)],
        allow: "POST",
    },
    LIVE,
    READY,
];

/// Routes of the admin listener.
pub(super) static ADMIN: [Address; 3] =
    [LIVE, READY, Address { template: "/metrics", methods: &[("GET", Operation::Metrics)], allow: "GET, HEAD" }];

const LIVE: Address = Address { template: "/livez", methods: &[("GET", Operation::Live)], allow: "GET, HEAD" };
const READY: Address = Address { template: "/readyz", methods: &[("GET", Operation::Ready)], allow: "GET, HEAD" };
