//! From a path and a method to an operation: one table per listener, and nothing is answered that is not in one.
//! Paths are compared as they were sent: nothing is decoded, joined or normalised, so no address has a second
//! spelling.

use crate::settings::BasePath;
use actix_web::http::Method;

/// An operation, as metrics and log name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Operation {
    LogIn,
    LogOut,
    Save,
    List,
    Show,
    Delete,
    ListAccounts,
    Invite,
    ChangeAccount,
    DeleteAccount,
    Enrol,
    ConfirmEnrolment,
    ShowAccount,
    ListSessions,
    EndSession,
    ChangePassword,
    ReplacePasscode,
    ConfirmPasscode,
    ReplaceRecoveryCodes,
    Live,
    Ready,
    Metrics,
    /// A method or an address that leads nowhere.
    None,
}

impl Operation {
    /// How many there are.
    pub(crate) const COUNT: usize = Self::None as usize + 1;

    /// Whether it asks for no token and costs work: what anybody may ask for.
    pub(crate) const fn is_open(self) -> bool {
        matches!(self, Self::LogIn | Self::Enrol | Self::ConfirmEnrolment)
    }

    /// The operation's name.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::LogIn => "log-in",
            Self::LogOut => "log-out",
            Self::Save => "save",
            Self::List => "list",
            Self::Show => "show",
            Self::Delete => "delete",
            Self::ListAccounts => "list-accounts",
            Self::Invite => "invite",
            Self::ChangeAccount => "change-account",
            Self::DeleteAccount => "delete-account",
            Self::Enrol => "enrol",
            Self::ConfirmEnrolment => "confirm-enrolment",
            Self::ShowAccount => "show-account",
            Self::ListSessions => "list-sessions",
            Self::EndSession => "end-session",
            Self::ChangePassword => "change-password",
            Self::ReplacePasscode => "replace-passcode",
            Self::ConfirmPasscode => "confirm-passcode",
            Self::ReplaceRecoveryCodes => "replace-recovery-codes",
            Self::Live => "live",
            Self::Ready => "ready",
            Self::Metrics => "metrics",
            Self::None => "none",
        }
    }
}

/// An address, and what each method does there.
#[derive(Debug)]
struct Address {
    /// The path with names in place of values. An `{id}` can only be its last segment.
    template: &'static str,
    /// The methods but `HEAD`, which is `GET` without the body.
    methods: &'static [(&'static str, Operation)],
    /// All methods, for `Allow`.
    allow: &'static str,
}

/// How the template of an address below the base path begins.
const BASE: &str = "{base}";
const ID: &str = "{id}";

/// The public listener.
static PUBLIC: [Address; 17] = [
    Address { template: "{base}/login", methods: &[("POST", Operation::LogIn)], allow: "POST" },
    Address { template: "{base}/logout", methods: &[("POST", Operation::LogOut)], allow: "POST" },
    Address {
        template: "{base}/organization-vault",
        methods: &[("GET", Operation::List), ("PATCH", Operation::Save)],
        allow: "GET, HEAD, PATCH",
    },
    Address {
        template: "{base}/organization-vault/{id}",
        methods: &[("GET", Operation::Show), ("DELETE", Operation::Delete)],
        allow: "GET, HEAD, DELETE",
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
    Address { template: "{base}/enrol", methods: &[("POST", Operation::Enrol)], allow: "POST" },
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
    LIVE,
    READY,
];

/// The operators' listener.
static ADMIN: [Address; 3] =
    [LIVE, READY, Address { template: "/metrics", methods: &[("GET", Operation::Metrics)], allow: "GET, HEAD" }];

const LIVE: Address = Address { template: "/livez", methods: &[("GET", Operation::Live)], allow: "GET, HEAD" };
const READY: Address = Address { template: "/readyz", methods: &[("GET", Operation::Ready)], allow: "GET, HEAD" };

/// What one method does at one address of the public listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The address with names in place of values: `{base}/organization-vault/{id}`.
    pub template: &'static str,
    /// The method. `HEAD` is not among them: it is `GET` without the body.
    pub method: &'static str,
    /// The operation's name, as metrics and log have it.
    pub operation: &'static str,
    /// Whether it asks for no token and costs work.
    pub is_open: bool,
}

/// Every route of the public listener, taken from the table that requests are answered by. For tests of who may do
/// what: a route that is added shows here.
pub fn routes() -> impl Iterator<Item = Route> {
    PUBLIC.iter().flat_map(|address| {
        address.methods.iter().map(|&(method, operation)| Route {
            template: address.template,
            method,
            operation: operation.as_str(),
            is_open: operation.is_open(),
        })
    })
}

/// An address that exists, as it was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    address: &'static Address,
    id: &'a str,
}

impl<'a> Place<'a> {
    /// The place of `path` on the public listener.
    pub(crate) fn find(base: &BasePath, path: &'a str) -> Option<Self> {
        let below = path.strip_prefix(base.as_str());
        PUBLIC.iter().find_map(|address| match (address.template.strip_prefix(BASE), below) {
            (Some(template), Some(below)) => address.matching(template, below),
            (Some(_), None) => None,
            (None, _) => address.matching(address.template, path),
        })
    }

    /// The place of `path` on the operators' listener.
    pub(crate) fn find_admin(path: &'a str) -> Option<Self> {
        ADMIN.iter().find_map(|address| address.matching(address.template, path))
    }

    /// What `method` does here. `HEAD` is `GET` without the body, which the framework leaves out.
    pub(crate) fn operation(self, method: &Method) -> Option<Operation> {
        let method = if method == Method::HEAD { "GET" } else { method.as_str() };
        self.address.methods.iter().find(|(name, _)| *name == method).map(|&(_, operation)| operation)
    }

    /// The methods it has, for `Allow`.
    pub(crate) const fn allow(self) -> &'static str {
        self.address.allow
    }

    /// The address with names in place of values, for the log.
    pub(crate) const fn template(self) -> &'static str {
        self.address.template
    }

    /// What stands in the place of `{id}`, as it was sent; empty where the address has none.
    pub(crate) const fn id(self) -> &'a str {
        self.id
    }
}

impl Address {
    /// This address as `path` names it, if `path` has the form of `template`.
    fn matching<'a>(&'static self, template: &str, path: &'a str) -> Option<Place<'a>> {
        let id = match template.strip_suffix(ID) {
            Some(before) => path.strip_prefix(before).filter(|id| !id.is_empty() && !id.contains('/'))?,
            None if path == template => "",
            None => return None,
        };
        Some(Place { address: self, id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Template and id of what is found.
    fn find(path: &str) -> Option<(&'static str, &str)> {
        Place::find(&BasePath::default(), path).map(|place| (place.template(), place.id()))
    }

    #[test]
    fn every_address_is_found_in_its_one_spelling() {
        for address in &PUBLIC {
            let path = address.template.replace(BASE, "/v1").replace(ID, "x%2e");
            let id = if address.template.contains(ID) { "x%2e" } else { "" };
            assert_eq!(find(&path), Some((address.template, id)), "{path}");
            for other in [
                format!("{path}/"),
                format!("/{path}"),
                path.to_uppercase(),
                path.replacen('l', "%6c", 1).replacen('c', "%63", 1).replacen('r', "%72", 1),
                path.replace("/v1/", "/v1//"),
                path.replace("/v1/", "/v1/./"),
                path.replace("/v1/", "/v2/"),
                path.replace("/v1/", "/v1"),
                path.replace("/v1/", "/"),
                format!("{path}/a/b"),
            ] {
                let found = find(&other).map(|(template, _)| template);
                assert!(other == path || found != Some(address.template), "{other}");
            }
        }
        let others = [
            "",
            "*",
            "/",
            "/v1",
            "/v1/",
            "/v1/livez",
            "/v1/organization-vaults",
            "/v1/login;a",
            "/v1/account/",
            "/v1/account/x",
            "/v1/accounts/",
            "/v1/accounts/a/b",
            "/v1/account/sessions/",
            "/v1/enrol/",
            "/livez/",
            "/metrics",
            "{base}/login",
        ];
        for path in others {
            assert_eq!(find(path), None, "{path}");
        }
    }

    #[test]
    fn a_method_is_allowed_exactly_if_it_does_something() {
        for address in PUBLIC.iter().chain(&ADMIN) {
            let place = Place { address, id: "" };
            for name in
                ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get"]
            {
                let Ok(method) = Method::from_bytes(name.as_bytes()) else { continue };
                let allowed = place.allow().split(", ").any(|allowed| allowed == name);
                assert_eq!(place.operation(&method).is_some(), allowed, "{name} {}", place.template());
            }
        }
    }

    #[test]
    fn no_operation_stands_twice() {
        let routes: Vec<_> = routes().collect();
        let names: HashSet<_> = routes.iter().map(|route| route.operation).collect();
        assert_eq!(names.len(), routes.len());
        assert_eq!(routes.len(), Operation::COUNT - 2, "all but metrics and none");
    }
}
