//! `POST {base_url}/login`

use super::Inner;
use crate::body::Incoming;
use crate::call::Call;
use crate::problem_response::ProblemResponse;
use crate::{answer, query, wire};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderValue};
use vault_api::{LoginRequest, LoginResponse, TOKEN_TYPE};
use vault_core::network::Network;
use vault_core::session::client_name;
use vault_core::time::Ttl;
use vault_core::usecase::LogInRequest;

pub(super) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    query::none(call.query())?;
    let accounts = api.parts.accounts.for_request(call.origin);
    let mut request = parse(&body.read().await?, accounts.max_ttl(), call.network)?;
    let client = call.headers().get(header::USER_AGENT).and_then(|value| value.to_str().ok());
    request.client = client.and_then(client_name);

    let logged_in = api.complete(call, async move { accounts.log_in(request).await }).await?;

    let response = LoginResponse {
        access_token: logged_in.token.0.into(),
        token_type: TOKEN_TYPE.to_owned(),
        expires_in: logged_in.expires_in,
        expires_at: answer::time_text(logged_in.expires_at),
    };
    let mut response = answer::object(StatusCode::OK, &response)?;
    response.headers_mut().insert(header::PRAGMA, HeaderValue::from_static("no-cache")); // RFC 6749 section 5.1
    Ok(response)
}

pub(crate) fn parse(body: &[u8], max_ttl: u32, network: Network) -> Result<LogInRequest, ProblemResponse> {
    let (LoginRequest { email, password, passcode, ttl }, mut violations) = wire::read(body)?;
    violations.check("/ttl", || Ttl::parse(ttl, max_ttl));
    let (password, passcode) = (password.into_secret(), passcode.into_secret());
    violations.finish(Some(LogInRequest { email, password, passcode, ttl, network, client: None }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::ExposeSecret as _;
    use vault_api::ProblemCode;

    fn read(body: &str) -> Result<LogInRequest, ProblemResponse> {
        parse(body.as_bytes(), 86_400, Network::V4([192, 0, 2]))
    }

    fn violations(body: &str) -> (Option<ProblemCode>, Vec<(String, &'static str)>) {
        let problem_response = read(body).err();
        let errors = problem_response.iter().flat_map(ProblemResponse::errors);
        let errors = errors.map(|error| (error.pointer.clone(), error.code.as_str())).collect();
        (problem_response.map(|problem_response| problem_response.code()), errors)
    }

    #[test]
    fn values_are_used_unchanged() {
        let body = r#"{"ttl": 60, "passcode": " 1", "password": "pä\u0000ss ", "email": "A@x.io"}"#;
        let Ok(request) = read(body) else { panic!("the form is right") };
        assert_eq!((&*request.email, request.ttl), ("A@x.io", Some(60)));
        assert_eq!(request.password.expose_secret(), "pä\0ss ");
        assert_eq!(request.passcode.expose_secret(), " 1");
        assert!(read(r#"{"email": "", "password": "", "passcode": ""}"#).is_ok());
    }

    #[test]
    fn form_and_lifetime_are_refused_by_name() {
        let malformed = Some(ProblemCode::MalformedRequest);
        for passcode in ["null", "false", "123456", "[]", "{}"] {
            let body = format!(r#"{{"email": "a", "password": "b", "passcode": {passcode}}}"#);
            assert_eq!(violations(&body), (malformed, vec![("/passcode".into(), "wrong-type")]));
        }
        let (code, errors) = violations(r#"{"email": 1, "password": "b", "password": "b", "ttl": 1, "role": "admin"}"#);
        assert_eq!(code, malformed);
        let expected = ["/email", "/passcode", "/password", "/role", "/ttl"];
        let mut pointers: Vec<_> = errors.into_iter().map(|(pointer, _)| pointer).collect();
        pointers.sort();
        assert_eq!(pointers, expected);
        for ttl in ["59", "86401", "0", "-1", "99999999999999999999", "-99999999999999999999", "1e300"] {
            let body = format!(r#"{{"email": "a", "password": "b", "passcode": "c", "ttl": {ttl}}}"#);
            assert_eq!(
                violations(&body),
                (Some(ProblemCode::RefusedValue), vec![("/ttl".into(), "out-of-range")]),
                "{ttl}"
            );
        }
        for ttl in ["3600.0", "3600.5", "\"3600\"", "null", "true"] {
            let body = format!(r#"{{"email": "a", "password": "b", "passcode": "c", "ttl": {ttl}}}"#);
            assert_eq!(violations(&body), (malformed, vec![("/ttl".into(), "wrong-type")]), "{ttl}");
        }
        for body in ["", "[]", "null", "\"x\"", "{", "{} {}", "\u{feff}{}", "{\"email\": \"\\ud800\"}"] {
            assert_eq!(violations(body).0, malformed, "{body}");
        }
    }
}
