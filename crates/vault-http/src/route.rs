//! From a path and a method to an operation: one table per listener, and nothing is answered that is not in one.
//! Paths are compared as they were sent: nothing is decoded, joined or normalised, so no address has a second
//! spelling.

mod operation;
mod table;

pub(crate) use operation::Operation;

use crate::settings::BasePath;
use actix_web::http::Method;
use table::{ACTIVATION, ADMIN, PUBLIC};

/// An address, and what each method does there.
#[derive(Debug)]
struct Address {
    /// The path with names in place of values: `{id}`, and `{version}`, `{trust}` or `{delivery}`, each at most once and a whole segment.
    template: &'static str,
    /// The methods but `HEAD`, which is `GET` without the body.
    methods: &'static [(&'static str, Operation)],
    /// All methods, for `Allow`.
    allow: &'static str,
}

/// How the template of an address below the base path begins.
const BASE: &str = "{base}";
const ID: &str = "{id}";
const VERSION: &str = "{version}";
const TRUST: &str = "{trust}";
const DELIVERY: &str = "{delivery}";

/// What one method does at one address of a listener.
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
    all(&PUBLIC)
}

/// The same of the activation listener.
pub fn activation_routes() -> impl Iterator<Item = Route> {
    all(&ACTIVATION)
}

fn all(table: &'static [Address]) -> impl Iterator<Item = Route> {
    table.iter().flat_map(|address| {
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
pub(crate) struct RequestPath<'a> {
    address: &'static Address,
    id: &'a str,
    version: &'a str,
}

impl<'a> RequestPath<'a> {
    /// The place of `path` on the public listener.
    pub(crate) fn find(base: &BasePath, path: &'a str) -> Option<Self> {
        Self::find_in(&PUBLIC, base, path)
    }

    /// The place of `path` on the activation listener.
    pub(crate) fn find_activation(base: &BasePath, path: &'a str) -> Option<Self> {
        Self::find_in(&ACTIVATION, base, path)
    }

    fn find_in(table: &'static [Address], base: &BasePath, path: &'a str) -> Option<Self> {
        let below = path.strip_prefix(base.as_str());
        table.iter().find_map(|address| match (address.template.strip_prefix(BASE), below) {
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

    /// The same of `{version}`, `{trust}` or `{delivery}`.
    pub(crate) const fn version(self) -> &'a str {
        self.version
    }
}

impl Address {
    /// This address as `path` names it, if `path` has the form of `template`.
    fn matching<'a>(&'static self, template: &str, path: &'a str) -> Option<RequestPath<'a>> {
        let mut place = RequestPath { address: self, id: "", version: "" };
        let mut segments = path.split('/');
        for expected in template.split('/') {
            match (expected, segments.next()?) {
                (ID | VERSION | TRUST | DELIVERY, "") => return None,
                (ID, id) => place.id = id,
                (VERSION | TRUST | DELIVERY, version) => place.version = version,
                (expected, found) if expected == found => {}
                _ => return None,
            }
        }
        segments.next().is_none().then_some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Template and id of what is found on the public listener.
    fn find(path: &str) -> Option<(&'static str, &str)> {
        RequestPath::find(&BasePath::default(), path).map(|place| (place.template(), place.id()))
    }

    /// The same on the activation listener.
    fn find_activation(path: &str) -> Option<(&'static str, &str)> {
        RequestPath::find_activation(&BasePath::default(), path).map(|place| (place.template(), place.id()))
    }

    #[test]
    fn every_address_is_found_in_its_one_spelling() {
        each_in_its_one_spelling(&PUBLIC, find);
        each_in_its_one_spelling(&ACTIVATION, find_activation);
    }

    fn each_in_its_one_spelling(table: &'static [Address], find: fn(&str) -> Option<(&'static str, &str)>) {
        for address in table {
            let path = address
                .template
                .replace(BASE, "/v1")
                .replace(ID, "x%2e")
                .replace(VERSION, "7")
                .replace(TRUST, "7")
                .replace(DELIVERY, "7");
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
    }

    #[test]
    fn nothing_else_is_found() {
        let others = [
            "",
            "*",
            "//",
            "/console",
            "/console/",
            "/console/a/b",
            "/v1",
            "/v1/",
            "/v1/livez",
            "/v1/organization-vaults",
            "/v1/login;a",
            "/v1/organization-vault/",
            "/v1/organization-vault//versions",
            "/v1/organization-vault/a/versions/",
            "/v1/organization-vault/a/versions/1/",
            "/v1/organization-vault/a/versions//1",
            "/v1/organization-vault/a/versions/1/2",
            "/v1/organization-vault/a/b/versions",
            "/v1/organization-vault/a/promote/1",
            "/v1/organization-vault/a/promoted",
            "/v1/account/",
            "/v1/account/x",
            "/v1/accounts/",
            "/v1/accounts/a/b",
            "/v1/account/sessions/",
            "/v1/enrol/",
            "/v1/integrations/",
            "/v1/integrations//rotate",
            "/v1/integrations/rotate/",
            "/v1/integrations/a/rotat",
            "/v1/integrations/a/b/rotate",
            "/v1/integrations/a/rotate/rotate",
            "/v1/integrations/arotate/",
            "/v1/activations",
            "/v1/activations/check",
            "/livez/",
            "/metrics",
            "{base}/login",
        ];
        for path in others {
            assert_eq!(find(path), None, "{path}");
        }
        let versions = RequestPath::find(&BasePath::default(), "/v1/organization-vault/versions/versions/promote");
        assert_eq!(versions.map(|place| (place.id(), place.version())), Some(("versions", "promote")));
        assert_eq!(find("/v1/integrations/rotate"), Some(("{base}/integrations/{id}", "rotate")));
        assert_eq!(find_activation("/v1/activations/check").map(|(_, id)| id), Some(""), "no id");
        for path in
            ["/v1/activations/", "/v1/activations/a/b", "/v1/activations/check/", "/v1/integrations", "/metrics"]
        {
            assert_eq!(find_activation(path), None, "{path}");
        }
        for route in routes().filter(|route| !matches!(route.operation, "live" | "ready")) {
            let path = route
                .template
                .replace(BASE, "/v1")
                .replace(ID, "x")
                .replace(VERSION, "7")
                .replace(TRUST, "7")
                .replace(DELIVERY, "7");
            assert_eq!(find_activation(&path), None, "the activation listener has nothing of the public one: {path}");
        }
    }

    #[test]
    fn a_method_is_allowed_exactly_if_it_does_something() {
        for address in PUBLIC.iter().chain(&ACTIVATION).chain(&ADMIN) {
            let place = RequestPath { address, id: "", version: "" };
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
        let mut all = HashSet::new();
        for routes in [routes().collect::<Vec<_>>(), activation_routes().collect()] {
            let names: HashSet<_> = routes.iter().map(|route| route.operation).collect();
            assert_eq!(names.len(), routes.len());
            all.extend(names);
        }
        assert_eq!(all.len(), Operation::COUNT - 2, "all but metrics and none");
    }
}
