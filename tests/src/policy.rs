//! The authorization table, which `tests/policy.rs` checks. Every new route needs a row, which the review of the change
//! must cover.

/// The caller of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// No token.
    Anonymous,
    /// A token that this vault never issued.
    Forger,
    /// A token of an admin after logout.
    LoggedOut,
    /// A token of an admin whose account was disabled later.
    Disabled,
    /// A token of an admin whose account was deleted later.
    Deleted,
    /// The enrolment code of an admin's open invitation, used as a token.
    Invited,
    /// A viewer's token.
    Viewer,
    /// An editor's token.
    Editor,
    /// An admin's token.
    Admin,
    /// A token of another organization's admin. Objects that paths refer to by ID belong to the first organization.
    Stranger,
}

impl Caller {
    /// All callers, in the order of the table's columns.
    pub const ALL: [Self; 10] = [
        Self::Anonymous,
        Self::Forger,
        Self::LoggedOut,
        Self::Disabled,
        Self::Deleted,
        Self::Invited,
        Self::Viewer,
        Self::Editor,
        Self::Admin,
        Self::Stranger,
    ];
}

/// The expected responses of one route.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// HTTP method.
    pub method: &'static str,
    /// Path with placeholders.
    pub template: &'static str,
    /// Response to authorized callers: a status of success, or the problem code for the test's request.
    pub granted: &'static str,
    callers: &'static str,
}

impl Rule {
    /// Returns the expected response for `caller`: [`Rule::granted`], or a problem code.
    #[track_caller]
    pub fn expected(&self, caller: Caller) -> &'static str {
        let cells: Vec<&str> = self.callers.split_whitespace().collect();
        assert_eq!(cells.len(), Caller::ALL.len(), "the cells of {} {}", self.method, self.template);
        match cells[Caller::ALL.iter().position(|other| *other == caller).unwrap()] {
            "yes" => self.granted,
            "401" => "invalid-token",
            "403" => "insufficient-role",
            "404" => "not-found",
            other => panic!("{other} in the cells of {} {}", self.method, self.template),
        }
    }
}

const fn rule(method: &'static str, template: &'static str, granted: &'static str, callers: &'static str) -> Rule {
    Rule { method, template, granted, callers }
}

/// The authorization table. The columns are in the order of [`Caller::ALL`].
#[rustfmt::skip]
pub const POLICY: [Rule; 68] = [
    //                                                                      Anon.   LoggedOut Deleted Viewer  Admin
    //                                                                          Forger  Disabled  Invited Editor  Stranger
    rule("POST",   "{base}/login",                    "invalid-login",     "yes yes yes yes yes yes yes yes yes yes"),
    rule("POST",   "{base}/enrol",                    "invalid-enrolment", "yes yes yes yes yes yes yes yes yes yes"),
    rule("POST",   "{base}/enrol/invitation",         "invalid-enrolment", "yes yes yes yes yes yes yes yes yes yes"),
    rule("POST",   "{base}/enrol/confirm",            "invalid-enrolment", "yes yes yes yes yes yes yes yes yes yes"),
    rule("GET",    "/livez",                          "200",               "yes yes yes yes yes yes yes yes yes yes"),
    rule("GET",    "/readyz",                         "200",               "yes yes yes yes yes yes yes yes yes yes"),
    rule("GET",    "/docs",                           "200",               "yes yes yes yes yes yes yes yes yes yes"),
    rule("GET",    "/openapi.json",                   "200",               "yes yes yes yes yes yes yes yes yes yes"),
    // The public keys of the federation issuer, identical for all callers. This server has none.
    rule("GET",    "/.well-known/openid-configuration", "not-found",       "yes yes yes yes yes yes yes yes yes yes"),
    rule("GET",    "/federation/jwks.json",           "not-found",         "yes yes yes yes yes yes yes yes yes yes"),
    // The console: a page and its files, identical for all callers. It requests tokens like any client.
    rule("GET",    "/",                               "200",               "yes yes yes yes yes yes yes yes yes yes"),
    rule("GET",    "/console/{id}",                   "200",               "yes yes yes yes yes yes yes yes yes yes"),
    rule("GET",    "/console/{folder}/{id}",          "200",               "yes yes yes yes yes yes yes yes yes yes"),

    rule("POST",   "{base}/logout",                   "204",               "401 401 401 401 401 401 yes yes yes yes"),
    rule("PATCH",  "{base}/organization-vault",       "201",               "401 401 401 401 401 401 403 yes yes yes"),
    rule("GET",    "{base}/organization-vault",       "200",               "401 401 401 401 401 401 yes yes yes yes"),
    rule("POST",   "{base}/organization-vault/read",  "200",               "401 401 401 401 401 401 403 yes yes yes"),
    rule("POST",   "{base}/organization-vault/find",  "200",               "401 401 401 401 401 401 403 yes yes yes"),
    rule("GET",    "{base}/organization-vault/{id}",  "200",               "401 401 401 401 401 401 yes yes yes 404"),
    rule("DELETE", "{base}/organization-vault/{id}",  "204",               "401 401 401 401 401 401 403 yes yes 404"),

    rule("POST",   "{base}/organization-vault/{id}/versions", "201",       "401 401 401 401 401 401 403 yes yes 404"),
    rule("GET",    "{base}/organization-vault/{id}/versions", "200",       "401 401 401 401 401 401 yes yes yes 404"),
    rule("POST",   "{base}/organization-vault/{id}/promote", "200",        "401 401 401 401 401 401 403 yes yes 404"),
    rule("PATCH",  "{base}/organization-vault/{id}",  "200",               "401 401 401 401 401 401 403 yes yes 404"),
    rule("POST",   "{base}/organization-vault/{id}/match", "200",          "401 401 401 401 401 401 403 yes yes 404"),
    rule("POST",   "{base}/organization-vault/{id}/check", "202",          "401 401 401 401 401 401 403 yes yes 404"),
    rule("GET",    "{base}/organization-vault/{id}/activations", "200",    "401 401 401 401 401 401 403 yes yes 404"),
    rule("GET",    "{base}/organization-vault/{id}/holders", "200",        "401 401 401 401 401 401 403 yes yes 404"),
    rule("GET",    "{base}/organization-vault/{id}/trust", "conflict",     "401 401 401 401 401 401 yes yes yes 404"),
    rule("DELETE", "{base}/organization-vault/{id}/versions/{version}", "204", "401 401 401 401 401 401 403 yes yes 404"),

    rule("GET",    "{base}/accounts",                 "200",               "401 401 401 401 401 401 403 403 yes yes"),
    rule("POST",   "{base}/accounts",                 "201",               "401 401 401 401 401 401 403 403 yes yes"),
    rule("PATCH",  "{base}/accounts/{id}",            "200",               "401 401 401 401 401 401 403 403 yes 404"),
    rule("DELETE", "{base}/accounts/{id}",            "204",               "401 401 401 401 401 401 403 403 yes 404"),
    rule("POST",   "{base}/accounts/{id}/unlock",     "204",               "401 401 401 401 401 401 403 403 yes 404"),
    rule("POST",   "{base}/accounts/{id}/re-enrol",   "201",               "401 401 401 401 401 401 403 403 yes 404"),

    rule("GET",    "{base}/integrations",             "200",               "401 401 401 401 401 401 403 403 yes yes"),
    rule("GET",    "{base}/integrations/usage",       "200",               "401 401 401 401 401 401 403 403 yes yes"),
    rule("POST",   "{base}/integrations",             "201",               "401 401 401 401 401 401 403 403 yes yes"),
    rule("POST",   "{base}/integrations/{id}/rotate", "200",               "401 401 401 401 401 401 403 403 yes 404"),
    rule("PATCH",  "{base}/integrations/{id}",        "200",               "401 401 401 401 401 401 403 403 yes 404"),
    rule("GET",    "{base}/integrations/{id}/trusts", "200",               "401 401 401 401 401 401 403 403 yes 404"),
    rule("POST",   "{base}/integrations/{id}/trusts", "refused-value",     "401 401 401 401 401 401 403 403 yes 404"),
    rule("DELETE", "{base}/integrations/{id}/trusts/{trust}", "not-found", "401 401 401 401 401 401 403 403 yes yes"),
    rule("GET",    "{base}/issuers",                  "200",               "401 401 401 401 401 401 403 403 yes yes"),
    rule("DELETE", "{base}/integrations/{id}",        "204",               "401 401 401 401 401 401 403 403 yes 404"),

    rule("GET",    "{base}/receivers",                "200",               "401 401 401 401 401 401 403 403 yes yes"),
    rule("POST",   "{base}/receivers",                "201",               "401 401 401 401 401 401 403 403 yes yes"),
    rule("PATCH",  "{base}/receivers/{id}",           "200",               "401 401 401 401 401 401 403 403 yes 404"),
    rule("POST",   "{base}/receivers/{id}/rotate-secret", "200",           "401 401 401 401 401 401 403 403 yes 404"),
    rule("POST",   "{base}/receivers/{id}/test",      "202",               "401 401 401 401 401 401 403 403 yes 404"),
    rule("GET",    "{base}/receivers/{id}/deliveries", "200",              "401 401 401 401 401 401 403 403 yes 404"),
    rule("POST",   "{base}/receivers/{id}/deliveries/{delivery}/resend", "not-found", "401 401 401 401 401 401 403 403 yes yes"),
    rule("DELETE", "{base}/receivers/{id}",           "204",               "401 401 401 401 401 401 403 403 yes 404"),

    rule("GET",    "{base}/namespaces",               "200",               "401 401 401 401 401 401 yes yes yes yes"),
    rule("GET",    "{base}/namespaces/usage",         "200",               "401 401 401 401 401 401 403 403 yes yes"),
    rule("POST",   "{base}/namespaces/freeze",        "200",               "401 401 401 401 401 401 403 403 yes yes"),
    rule("POST",   "{base}/namespaces/thaw",          "200",               "401 401 401 401 401 401 403 403 yes yes"),

    rule("GET",    "{base}/audit",                    "200",               "401 401 401 401 401 401 403 403 yes yes"),

    // The caller's own account. Session IDs are those of the caller, except for the stranger, who uses another
    // account's.
    rule("GET",    "{base}/account",                  "200",               "401 401 401 401 401 401 yes yes yes yes"),
    rule("GET",    "{base}/account/sessions",         "200",               "401 401 401 401 401 401 yes yes yes yes"),
    rule("DELETE", "{base}/account/sessions/{id}",    "204",               "401 401 401 401 401 401 yes yes yes 404"),
    rule("GET",    "{base}/account/set-aside",        "200",               "401 401 401 401 401 401 yes yes yes yes"),
    rule("PUT",    "{base}/account/set-aside",        "204",               "401 401 401 401 401 401 yes yes yes yes"),
    rule("POST",   "{base}/account/password",         "invalid-login",     "401 401 401 401 401 401 yes yes yes yes"),
    rule("POST",   "{base}/account/passcode",         "invalid-login",     "401 401 401 401 401 401 yes yes yes yes"),
    rule("POST",   "{base}/account/passcode/confirm", "conflict",          "401 401 401 401 401 401 yes yes yes yes"),
    rule("POST",   "{base}/account/recovery-codes",   "invalid-login",     "401 401 401 401 401 401 yes yes yes yes"),
];
