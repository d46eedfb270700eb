//! Who may do what: the one table that says so, read by `tests/policy.rs`. Whoever adds a route adds its row here, and
//! whoever reviews it reviews the row.

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// Without a token.
    Nobody,
    /// With a token that this vault never issued.
    Forger,
    /// With a token that was good until its logout; of an admin.
    LoggedOut,
    /// With a token from before the account was disabled; of an admin.
    Disabled,
    /// With a token from before the account was deleted; of an admin.
    Deleted,
    /// With the enrolment code of an open invitation for a token; of an admin to be.
    Invited,
    /// With a viewer's token.
    Viewer,
    /// With an editor's token.
    Editor,
    /// With an admin's token.
    Admin,
    /// With the token of another organization's admin. What an address names by its id is not of that organization.
    Stranger,
}

impl Caller {
    /// Every caller, in the order of the table's columns.
    pub const ALL: [Self; 10] = [
        Self::Nobody,
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

/// What one route answers to whom.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The method.
    pub method: &'static str,
    /// The address with names in place of values.
    pub template: &'static str,
    /// What those get who may ask: a status of success, or the code of the problem with what the test sends.
    pub granted: &'static str,
    callers: &'static str,
}

impl Rule {
    /// What `caller` gets: [`Rule::granted`], or the code of the problem.
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

/// The table. The columns are those of [`Caller::ALL`].
#[rustfmt::skip]
pub const POLICY: [Rule; 56] = [
    //                                                                      Nobody  LoggedOut Deleted Viewer  Admin
    //                                                                          Forger  Disabled  Invited Editor  Stranger
    rule("POST",   "{base}/login",                    "invalid-login",     "yes yes yes yes yes yes yes yes yes yes"),
    rule("POST",   "{base}/enrol",                    "invalid-enrolment", "yes yes yes yes yes yes yes yes yes yes"),
    rule("POST",   "{base}/enrol/confirm",            "invalid-enrolment", "yes yes yes yes yes yes yes yes yes yes"),
    rule("GET",    "/livez",                          "200",               "yes yes yes yes yes yes yes yes yes yes"),
    rule("GET",    "/readyz",                         "200",               "yes yes yes yes yes yes yes yes yes yes"),
    rule("GET",    "/docs",                           "200",               "yes yes yes yes yes yes yes yes yes yes"),
    rule("GET",    "/openapi.json",                   "200",               "yes yes yes yes yes yes yes yes yes yes"),
    // The console: a page and its files, the same for everybody. It asks for tokens as any client does.
    rule("GET",    "/",                               "200",               "yes yes yes yes yes yes yes yes yes yes"),
    rule("GET",    "/console/{id}",                   "200",               "yes yes yes yes yes yes yes yes yes yes"),

    rule("POST",   "{base}/logout",                   "204",               "401 401 401 401 401 401 yes yes yes yes"),
    rule("PATCH",  "{base}/organization-vault",       "201",               "401 401 401 401 401 401 403 yes yes yes"),
    rule("GET",    "{base}/organization-vault",       "200",               "401 401 401 401 401 401 yes yes yes yes"),
    rule("GET",    "{base}/organization-vault/{id}",  "200",               "401 401 401 401 401 401 yes yes yes 404"),
    rule("DELETE", "{base}/organization-vault/{id}",  "204",               "401 401 401 401 401 401 403 yes yes 404"),

    rule("POST",   "{base}/organization-vault/{id}/versions", "201",       "401 401 401 401 401 401 403 yes yes 404"),
    rule("GET",    "{base}/organization-vault/{id}/versions", "200",       "401 401 401 401 401 401 yes yes yes 404"),
    rule("POST",   "{base}/organization-vault/{id}/promote", "200",        "401 401 401 401 401 401 403 yes yes 404"),
    rule("PATCH",  "{base}/organization-vault/{id}",  "200",               "401 401 401 401 401 401 403 yes yes 404"),
    rule("POST",   "{base}/organization-vault/{id}/match", "200",          "401 401 401 401 401 401 403 yes yes 404"),
    rule("POST",   "{base}/organization-vault/{id}/check", "202",          "401 401 401 401 401 401 403 yes yes 404"),
    rule("GET",    "{base}/organization-vault/{id}/activations", "200",    "401 401 401 401 401 401 403 yes yes 404"),
    rule("DELETE", "{base}/organization-vault/{id}/versions/{version}", "204", "401 401 401 401 401 401 403 yes yes 404"),

    rule("GET",    "{base}/accounts",                 "200",               "401 401 401 401 401 401 403 403 yes yes"),
    rule("POST",   "{base}/accounts",                 "201",               "401 401 401 401 401 401 403 403 yes yes"),
    rule("PATCH",  "{base}/accounts/{id}",            "200",               "401 401 401 401 401 401 403 403 yes 404"),
    rule("DELETE", "{base}/accounts/{id}",            "204",               "401 401 401 401 401 401 403 403 yes 404"),
    rule("POST",   "{base}/accounts/{id}/unlock",     "204",               "401 401 401 401 401 401 403 403 yes 404"),
    rule("POST",   "{base}/accounts/{id}/re-enrol",   "201",               "401 401 401 401 401 401 403 403 yes 404"),

    rule("GET",    "{base}/integrations",             "200",               "401 401 401 401 401 401 403 403 yes yes"),
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

    rule("GET",    "{base}/namespaces",               "200",               "401 401 401 401 401 401 403 403 yes yes"),
    rule("POST",   "{base}/namespaces/freeze",        "200",               "401 401 401 401 401 401 403 403 yes yes"),
    rule("POST",   "{base}/namespaces/thaw",          "204",               "401 401 401 401 401 401 403 403 yes yes"),

    rule("GET",    "{base}/audit",                    "200",               "401 401 401 401 401 401 403 403 yes yes"),

    // One's own account. An id is of a session of the one who asks; a stranger's is of somebody else's.
    rule("GET",    "{base}/account",                  "200",               "401 401 401 401 401 401 yes yes yes yes"),
    rule("GET",    "{base}/account/sessions",         "200",               "401 401 401 401 401 401 yes yes yes yes"),
    rule("DELETE", "{base}/account/sessions/{id}",    "204",               "401 401 401 401 401 401 yes yes yes 404"),
    rule("POST",   "{base}/account/password",         "invalid-login",     "401 401 401 401 401 401 yes yes yes yes"),
    rule("POST",   "{base}/account/passcode",         "invalid-login",     "401 401 401 401 401 401 yes yes yes yes"),
    rule("POST",   "{base}/account/passcode/confirm", "conflict",          "401 401 401 401 401 401 yes yes yes yes"),
    rule("POST",   "{base}/account/recovery-codes",   "invalid-login",     "401 401 401 401 401 401 yes yes yes yes"),
];
