//! Routing from path and method to a row of a listener's table. Paths are compared without decoding or
//! normalization, so that each route has exactly one spelling.

use crate::settings::BasePath;
use actix_web::http::Method;

/// Prefix of templates below the base path.
const BASE: &str = "{base}";
const ID: &str = "{id}";
const VERSION: &str = "{version}";
const TRUST: &str = "{trust}";
const DELIVERY: &str = "{delivery}";

/// A method at a path of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Path with placeholders: `{base}/organization-vault/{id}`. Besides `{id}` there is at most one of `{version}`,
    /// `{trust}` and `{delivery}`. Each is a whole segment.
    pub template: &'static str,
    /// HTTP method. `HEAD` is not listed separately: it is `GET` without the body.
    pub method: &'static str,
    /// Name of the operation in metrics and log lines.
    pub operation: &'static str,
    /// Set if the operation needs no token but is expensive, so that its rate is limited per network.
    pub is_open: bool,
    /// Set if the operation decrypts credentials, so that its rate is limited per integration.
    pub(crate) decrypts: bool,
    /// Set if the operation is a probe, which may use any host name.
    pub(crate) is_probe: bool,
}

/// The result of a search in a table.
pub(crate) enum Lookup<'a> {
    Found(RequestPath<'a>),
    /// The path exists, but not with this method. `allow` lists the methods for `Allow`.
    OtherMethod {
        template: &'static str,
        allow: String,
    },
    Unknown,
}

impl Lookup<'_> {
    /// Returns the name of the operation, for metrics and log lines.
    pub(crate) const fn operation(&self) -> &'static str {
        match self {
            Self::Found(place) => place.route.operation,
            Self::OtherMethod { .. } | Self::Unknown => "none",
        }
    }

    /// Returns the path with placeholders, or an empty text for an unknown path.
    pub(crate) const fn template(&self) -> &'static str {
        match self {
            Self::Found(place) => place.route.template,
            Self::OtherMethod { template, .. } => template,
            Self::Unknown => "",
        }
    }
}

/// A matched route with the values of its placeholders.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestPath<'a> {
    route: &'static Route,
    row: usize,
    id: &'a str,
    version: &'a str,
}

impl<'a> RequestPath<'a> {
    pub(crate) const fn route(self) -> &'static Route {
        self.route
    }

    /// Returns the index of the row in the table in which the path was found.
    pub(crate) const fn row(self) -> usize {
        self.row
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

/// Returns the route of `method` at `path`. The first row that matches the path decides. `HEAD` is `GET`, and the
/// framework omits the body.
pub(crate) fn find<'a, R: AsRef<Route>>(
    table: &'static [R],
    base: &BasePath,
    path: &'a str,
    method: &Method,
) -> Lookup<'a> {
    let below = path.strip_prefix(base.as_str());
    let first = table.iter().map(R::as_ref).find_map(|route| {
        let values = match (route.template.strip_prefix(BASE), below) {
            (Some(template), Some(below)) => placeholders(template, below),
            (Some(_), None) => None,
            (None, _) => placeholders(route.template, path),
        };
        Some((route.template, values?))
    });
    let Some((template, (id, version))) = first else { return Lookup::Unknown };
    let method = if method == Method::HEAD { "GET" } else { method.as_str() };
    let mut rows = table.iter().map(R::as_ref).enumerate();
    match rows.find(|(_, route)| route.template == template && route.method == method) {
        Some((row, route)) => Lookup::Found(RequestPath { route, row, id, version }),
        None => Lookup::OtherMethod { template, allow: allow(table, template) },
    }
}

/// Returns the methods of a path, for `Allow`.
fn allow<R: AsRef<Route>>(table: &[R], template: &str) -> String {
    let routes = table.iter().map(R::as_ref).filter(|route| route.template == template);
    let methods = routes.map(|route| if route.method == "GET" { "GET, HEAD" } else { route.method });
    methods.collect::<Vec<_>>().join(", ")
}

/// Returns the values of `{id}` and of the other placeholder if `path` matches `template`.
fn placeholders<'a>(template: &str, path: &'a str) -> Option<(&'a str, &'a str)> {
    let (mut id, mut version) = ("", "");
    let mut segments = path.split('/');
    for expected in template.split('/') {
        match (expected, segments.next()?) {
            (ID | VERSION | TRUST | DELIVERY, "") => return None,
            (ID, found) => id = found,
            (VERSION | TRUST | DELIVERY, found) => version = found,
            (expected, found) if expected == found => {}
            _ => return None,
        }
    }
    segments.next().is_none().then_some((id, version))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::{ACTIVATION, PUBLIC, activation_routes, routes};
    use std::collections::HashSet;

    /// Returns template and ID of a route.
    fn found<'a, R: AsRef<Route>>(table: &'static [R], path: &'a str) -> Option<(&'static str, &'a str)> {
        table.iter().map(|row| row.as_ref().method).find_map(|method| {
            match super::find(table, &BasePath::default(), path, &Method::from_bytes(method.as_bytes()).unwrap()) {
                Lookup::Found(place) => Some((place.route.template, place.id)),
                Lookup::OtherMethod { .. } | Lookup::Unknown => None,
            }
        })
    }

    fn find(path: &str) -> Option<(&'static str, &str)> {
        found(&PUBLIC, path)
    }

    fn find_activation(path: &str) -> Option<(&'static str, &str)> {
        found(&ACTIVATION, path)
    }

    #[test]
    fn every_address_is_found_in_its_one_spelling() {
        each_in_its_one_spelling(routes(), find);
        each_in_its_one_spelling(activation_routes(), find_activation);
    }

    fn each_in_its_one_spelling(table: impl Iterator<Item = Route>, find: fn(&str) -> Option<(&'static str, &str)>) {
        for route in table {
            let path = route
                .template
                .replace(BASE, "/v1")
                .replace(ID, "x%2e")
                .replace(VERSION, "7")
                .replace(TRUST, "7")
                .replace(DELIVERY, "7");
            let id = if route.template.contains(ID) { "x%2e" } else { "" };
            assert_eq!(find(&path), Some((route.template, id)), "{path}");
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
                assert!(other == path || found != Some(route.template), "{other}");
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
        let versions = "/v1/organization-vault/versions/versions/promote";
        match super::find(&PUBLIC, &BasePath::default(), versions, &Method::DELETE) {
            Lookup::Found(place) => assert_eq!((place.id(), place.version()), ("versions", "promote")),
            Lookup::OtherMethod { .. } | Lookup::Unknown => panic!("{versions}"),
        }
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
        for route in routes() {
            let allowed = allow(&PUBLIC, route.template);
            let path = route.template.replace(BASE, "/v1");
            for name in
                ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get"]
            {
                let method = Method::from_bytes(name.as_bytes()).unwrap();
                match super::find(&PUBLIC, &BasePath::default(), &path, &method) {
                    Lookup::Found(place) => {
                        let served = if name == "HEAD" { "GET" } else { name };
                        assert_eq!((place.route.template, place.route.method), (route.template, served));
                        assert!(allowed.split(", ").any(|allowed| allowed == name), "{name} {path}");
                    }
                    Lookup::OtherMethod { template, allow } => {
                        assert_eq!((template, &allow), (route.template, &allowed));
                        assert!(allowed.split(", ").all(|allowed| allowed != name), "{name} {path}");
                    }
                    Lookup::Unknown => panic!("{path}"),
                }
            }
        }
        assert_eq!(allow(&PUBLIC, "{base}/organization-vault/{id}"), "GET, HEAD, PATCH, DELETE");
    }

    #[test]
    fn operations_are_unique() {
        for routes in [routes().collect::<Vec<_>>(), activation_routes().collect()] {
            let names: HashSet<_> = routes.iter().map(|route| route.operation).collect();
            let methods: HashSet<_> = routes.iter().map(|route| (route.template, route.method)).collect();
            assert_eq!((names.len(), methods.len()), (routes.len(), routes.len()));
        }
    }
}
