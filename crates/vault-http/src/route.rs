//! From a path and a method to an operation. Paths are compared as they were sent: nothing is decoded, joined
//! or normalised, so no address has a second spelling.

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
    Live,
    Ready,
    Metrics,
    /// A method or an address that leads nowhere.
    None,
}

impl Operation {
    /// How many there are.
    pub(crate) const COUNT: usize = Self::None as usize + 1;

    /// Whether it needs no token and costs work, so that it is limited per network.
    pub(crate) const fn is_limited(self) -> bool {
        matches!(self, Self::LogIn)
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
            Self::Live => "live",
            Self::Ready => "ready",
            Self::Metrics => "metrics",
            Self::None => "none",
        }
    }
}

/// An address that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place<'a> {
    /// `{base_url}/login`
    LogIn,
    /// `{base_url}/logout`
    LogOut,
    /// `{base_url}/organization-vault`
    Vault,
    /// `{base_url}/organization-vault/<credential_id>`, the id as it was sent.
    Credential(&'a str),
    /// `/livez`
    Live,
    /// `/readyz`
    Ready,
    /// `/metrics`, on the operators' listener
    Metrics,
}

impl<'a> Place<'a> {
    /// The place of `path` on the public listener.
    pub(crate) fn find(base: &BasePath, path: &'a str) -> Option<Self> {
        if let Some(below) = path.strip_prefix(base.as_str())
            && let Some(found) = Self::find_below(below)
        {
            return Some(found);
        }
        match path {
            "/livez" => Some(Self::Live),
            "/readyz" => Some(Self::Ready),
            _ => None,
        }
    }

    fn find_below(path: &'a str) -> Option<Self> {
        match path {
            "/login" => Some(Self::LogIn),
            "/logout" => Some(Self::LogOut),
            "/organization-vault" => Some(Self::Vault),
            _ => match path.strip_prefix("/organization-vault/")? {
                "" => None,
                id if id.contains('/') => None,
                id => Some(Self::Credential(id)),
            },
        }
    }

    /// The place of `path` on the operators' listener.
    pub(crate) fn find_admin(path: &'a str) -> Option<Self> {
        match path {
            "/livez" => Some(Self::Live),
            "/readyz" => Some(Self::Ready),
            "/metrics" => Some(Self::Metrics),
            _ => None,
        }
    }

    /// What `method` does here. `HEAD` is `GET` without the body, which the framework leaves out.
    pub(crate) fn operation(self, method: &Method) -> Option<Operation> {
        let reads = method == Method::GET || method == Method::HEAD;
        match self {
            Self::LogIn if method == Method::POST => Some(Operation::LogIn),
            Self::LogOut if method == Method::POST => Some(Operation::LogOut),
            Self::Vault if method == Method::PATCH => Some(Operation::Save),
            Self::Vault if reads => Some(Operation::List),
            Self::Credential(_) if method == Method::DELETE => Some(Operation::Delete),
            Self::Credential(_) if reads => Some(Operation::Show),
            Self::Live if reads => Some(Operation::Live),
            Self::Ready if reads => Some(Operation::Ready),
            Self::Metrics if reads => Some(Operation::Metrics),
            _ => None,
        }
    }

    /// The methods it has, for `Allow`.
    pub(crate) const fn allow(self) -> &'static str {
        match self {
            Self::LogIn | Self::LogOut => "POST",
            Self::Vault => "GET, HEAD, PATCH",
            Self::Credential(_) => "GET, HEAD, DELETE",
            Self::Live | Self::Ready | Self::Metrics => "GET, HEAD",
        }
    }

    /// The address with names in place of values, for the log.
    pub(crate) const fn template(self) -> &'static str {
        match self {
            Self::LogIn => "{base}/login",
            Self::LogOut => "{base}/logout",
            Self::Vault => "{base}/organization-vault",
            Self::Credential(_) => "{base}/organization-vault/{id}",
            Self::Live => "/livez",
            Self::Ready => "/readyz",
            Self::Metrics => "/metrics",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(path: &str) -> Option<Place<'_>> {
        Place::find(&BasePath::default(), path)
    }

    #[test]
    fn every_address_is_found_in_its_one_spelling() {
        assert_eq!(find("/v1/login"), Some(Place::LogIn));
        assert_eq!(find("/v1/logout"), Some(Place::LogOut));
        assert_eq!(find("/v1/organization-vault"), Some(Place::Vault));
        assert_eq!(find("/v1/organization-vault/x%2e"), Some(Place::Credential("x%2e")));
        assert_eq!(find("/livez"), Some(Place::Live));
        assert_eq!(find("/readyz"), Some(Place::Ready));
        let others = [
            "",
            "*",
            "/",
            "/v1",
            "/v1/",
            "/v1/login/",
            "/v1//login",
            "//v1/login",
            "/V1/login",
            "/v1/Login",
            "/v1/l%6fgin",
            "/v1/organization-vault/",
            "/v1/organization-vault//",
            "/v1/organization-vault/a/b",
            "/v1/./login",
            "/v2/login",
            "/v1login",
            "/login",
            "/v1/livez",
            "/v1/organization-vaults",
            "/v1/login;a",
            "/livez/",
            "/metrics",
        ];
        for path in others {
            assert_eq!(find(path), None, "{path}");
        }
    }

    #[test]
    fn a_method_is_allowed_exactly_if_it_does_something() {
        let places = [
            Place::LogIn,
            Place::LogOut,
            Place::Vault,
            Place::Credential("x"),
            Place::Live,
            Place::Ready,
            Place::Metrics,
        ];
        for place in places {
            for name in
                ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get"]
            {
                let Ok(method) = Method::from_bytes(name.as_bytes()) else { continue };
                let allowed = place.allow().split(", ").any(|allowed| allowed == name);
                assert_eq!(place.operation(&method).is_some(), allowed, "{name} {}", place.template());
            }
        }
    }
}
