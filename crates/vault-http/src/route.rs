//! Routing from path and method to an operation, with one table per listener. Paths are compared without decoding or
//! normalization, so that each route has exactly one spelling.

mod operation;
mod table;

pub(crate) use operation::Operation;

use crate::settings::BasePath;
use actix_web::http::Method;
use table::{ACTIVATION, ADMIN, PUBLIC};

/// A path and its methods.
#[derive(Debug)]
struct Address {
    /// Path with placeholders: `{id}`, and `{version}`, `{trust}` or `{delivery}`. Each occurs at most once and is a
    /// whole segment.
    template: &'static str,
    /// Methods except `HEAD`, which is `GET` without the body.
    methods: &'static [(&'static str, Operation)],
    /// All methods, for `Allow`.
    allow: &'static str,
}

/// Prefix of templates below the base path.
const BASE: &str = "{base}";
const ID: &str = "{id}";
const VERSION: &str = "{version}";
const TRUST: &str = "{trust}";
const DELIVERY: &str = "{delivery}";

/// A method at a path of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Path with placeholders: `{base}/organization-vault/{id}`.
    pub template: &'static str,
    /// HTTP method. `HEAD` is not listed separately: it is `GET` without the body.
    pub method: &'static str,
    /// Name of the operation in metrics and log lines.
    pub operation: &'static str,
    /// Set if the operation needs no token but is expensive.
    pub is_open: bool,
}

/// Returns every route of the public listener, from the table that dispatches requests. Authorization tests use it to
/// detect new routes.
pub fn routes() -> impl Iterator<Item = Route> {
    all(&PUBLIC)
}

/// Returns every route of the activation listener.
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

/// A matched route with the values of its placeholders.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestPath<'a> {
    address: &'static Address,
    id: &'a str,
    version: &'a str,
}

impl<'a> RequestPath<'a> {
    /// Returns the route of `path` on the public listener.
    pub(crate) fn find(base: &BasePath, path: &'a str) -> Option<Self> {
        Self::find_in(&PUBLIC, base, path)
    }

    /// Returns the route of `path` on the activation listener.
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

    /// Returns the route of `path` on the admin listener.
    pub(crate) fn find_admin(path: &'a str) -> Option<Self> {
        ADMIN.iter().find_map(|address| address.matching(address.template, path))
    }

    /// Returns the operation of `method`. `HEAD` is `GET`, and the framework omits the body.
    pub(crate) fn operation(self, method: &Method) -> Option<Operation> {
        let method = if method == Method::HEAD { "GET" } else { method.as_str() };
        self.address.methods.iter().find(|(name, _)| *name == method).map(|&(_, operation)| operation)
    }

    /// Returns the methods for `Allow`.
    pub(crate) const fn allow(self) -> &'static str {
        self.address.allow
    }

    /// Returns the path with placeholders, for the log.
    pub(crate) const fn template(self) -> &'static str {
        self.address.template
    }

    /// Returns the undecoded value of `{id}`, or an empty string.
    pub(crate) const fn id(self) -> &'a str {
        self.id
    }

    /// Returns the undecoded value of `{version}`, `{trust}` or `{delivery}`, or an empty string.
    pub(crate) const fn version(self) -> &'a str {
        self.version
    }
}

impl Address {
    /// Matches `path` against `template`.
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

    /// Returns template and ID of a route on the public listener.
    fn find(path: &str) -> Option<(&'static str, &str)> {
        RequestPath::find(&BasePath::default(), path).map(|place| (place.template(), place.id()))
    }

    /// Returns template and ID of a route on the activation listener.
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
    fn other_paths_are_not_found() {
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
    fn method_is_allowed_exactly_if_routed() {
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
    fn operations_are_unique() {
        let mut all = HashSet::new();
        for routes in [routes().collect::<Vec<_>>(), activation_routes().collect()] {
            let names: HashSet<_> = routes.iter().map(|route| route.operation).collect();
            assert_eq!(names.len(), routes.len());
            all.extend(names);
        }
        assert_eq!(all.len(), Operation::COUNT - 2, "all but metrics and none");
    }
}
