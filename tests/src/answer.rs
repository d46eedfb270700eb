//! Responses of the HTTP API, and checks of their common properties.

use serde_json::Value;
use vault_api::ProblemCode;

/// Content security policy of the API's responses.
const API_POLICY: &str = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'";
/// Content security policy of the console.
const CONSOLE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

/// A complete response.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// Header fields in order, with lower-case names.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
}

impl Answer {
    /// Returns the value of the header field `name`, which must not be repeated.
    #[track_caller]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(field, _)| field == name).map(|(_, value)| value.as_str());
        let value = values.next();
        assert_eq!(values.next(), None, "{name} stands twice");
        value
    }

    /// Returns the body as text.
    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("bodies are UTF-8")
    }

    /// Parses the body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Asserts the status code.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        self
    }

    /// Asserts that the response is a problem with this code.
    #[track_caller]
    pub fn problem(self, code: &str) -> Self {
        let known = ProblemCode::parse(code).expect("a documented code");
        assert_eq!((self.json()["code"].as_str(), self.status), (Some(code), known.status()), "{}", self.text());
        self
    }

    /// Asserts that the response refuses exactly these fields. Status 400 is about form, and 422 about values.
    #[track_caller]
    pub fn refuses(self, status: u16, pointers: &[&str]) -> Self {
        let answer = self.problem(if status == 400 { "malformed-request" } else { "refused-value" });
        assert_eq!(answer.status, status, "{}", answer.text());
        let fields = answer.refused_fields();
        assert_eq!(fields.iter().map(|(pointer, _)| &**pointer).collect::<Vec<_>>(), pointers, "{}", answer.text());
        answer
    }

    /// Asserts that the response has no body.
    #[track_caller]
    pub fn empty(self, status: u16) {
        let answer = self.expect(status);
        assert_eq!((answer.body.len(), answer.header("content-type")), (0, None));
    }

    /// Returns pointers and codes of the invalid fields, sorted.
    #[track_caller]
    pub fn refused_fields(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().expect("a string").to_owned();
        let errors = self.json()["errors"].as_array().cloned().unwrap_or_default();
        let mut fields: Vec<_> = errors.iter().map(|error| (text(&error["pointer"]), text(&error["code"]))).collect();
        fields.sort();
        fields
    }

    /// Returns everything that must be identical for indistinguishable rejections: all except request ID and date.
    pub fn indistinct(&self) -> (u16, Vec<(String, String)>, String) {
        let id = self.header("x-request-id").unwrap_or_default().to_owned();
        let mut headers = self.headers.clone();
        headers.retain(|(name, _)| name != "x-request-id" && name != "date");
        headers.sort(); // their order is irrelevant
        (self.status, headers, self.text().replace(&id, "<request id>"))
    }

    /// Checks the properties of all responses (docs/API.md). Called for every response that did not come from the
    /// framework alone.
    #[track_caller]
    pub fn check_common(&self) {
        let media_type = self.header("content-type").unwrap_or_default();
        let console = ["text/html", "text/javascript", "text/css", "image/svg+xml"];
        let console = console.iter().any(|kind| media_type.starts_with(kind));
        let fixed = [
            ("cache-control", "no-store"),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("content-security-policy", if console { CONSOLE_POLICY } else { API_POLICY }),
        ];
        for (name, value) in fixed {
            assert_eq!(self.header(name), Some(value), "{name} of {self:?}");
        }
        let id = self.header("x-request-id").unwrap_or_default();
        assert_eq!(uuid::Uuid::parse_str(id).map(|id| id.to_string()).as_deref(), Ok(id), "{self:?}");
        for absent in
            ["server", "x-powered-by", "access-control-allow-origin", "set-cookie", "access-control-allow-credentials"]
        {
            assert_eq!(self.header(absent), None, "{absent}");
        }
        if self.status >= 400 && !self.body.is_empty() {
            self.check_problem();
        }
        let seconds = self.header("retry-after").map(|seconds| seconds.parse::<u32>().expect("seconds"));
        assert_eq!(seconds.is_some(), matches!(self.status, 429 | 503), "{self:?}");
    }

    #[track_caller]
    fn check_problem(&self) {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let problem = self.json();
        let code = problem["code"].as_str().unwrap_or_default();
        let known = ProblemCode::parse(code).unwrap_or_else(|| panic!("{code:?} is not a documented code"));
        assert_eq!(problem["status"], self.status);
        assert_eq!(known.status(), self.status);
        assert_eq!(problem["type"], format!("urn:orgvault:problem:{code}"));
        assert!(problem["title"].as_str().is_some_and(|text| !text.is_empty()), "{problem}");
        assert!(problem["detail"].as_str().is_some_and(|text| !text.is_empty()), "{problem}");
        assert_eq!(problem["request_id"].as_str(), self.header("x-request-id"));
        let challenges = matches!(self.status, 401 | 403) && !matches!(code, "frozen" | "cross-site");
        let challenge = self.header("www-authenticate");
        assert_eq!(challenge.is_some(), challenges, "{self:?}");
        assert!(challenge.is_none_or(|text| text == "Bearer" || text.starts_with("Bearer error=")), "{self:?}");
        let members = ["checks", "code", "detail", "errors", "request_id", "status", "title", "type"];
        assert!(problem.as_object().unwrap().keys().all(|name| members.contains(&name.as_str())), "{problem}");
    }
}
