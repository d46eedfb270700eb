//! The mail server: the value of `--smtp-url`.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use url::{Host, Url};

/// A mail submission server (RFC 5321).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmtpUrl {
    /// Set for implicit TLS (RFC 8314). Otherwise STARTTLS (RFC 3207).
    pub is_implicit: bool,
    /// Name or address.
    pub host: String,
    /// TCP port: by default 465 for implicit TLS and 587 otherwise.
    pub port: u16,
    /// User name for authentication, if the server requires it.
    pub user: Option<String>,
}

impl SmtpUrl {
    /// Returns whether the server is this host, where TLS is optional.
    pub fn is_local(&self) -> bool {
        self.host == "localhost" || self.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

impl FromStr for SmtpUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            "must be smtps://HOST[:PORT] (TLS) or smtp://HOST[:PORT] (STARTTLS, optional on loopback), with USER@ before the host if the server \
             wants a login"
                .to_owned()
        };
        let url = Url::parse(text).map_err(|_| wrong())?;
        if url.password().is_some() {
            return Err(
                "must not contain the password: set smtp-password, or name a file in ORGVAULT_SMTP_PASSWORD_FILE"
                    .to_owned(),
            );
        }
        let is_implicit = match url.scheme() {
            "smtps" => true,
            "smtp" => false,
            _ => return Err(wrong()),
        };
        if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
            return Err(wrong());
        }
        // The URL parser reads IP addresses as names if it does not know the scheme.
        let host = url.host_str().and_then(|host| Host::parse(host).ok()).ok_or_else(wrong)?;
        let host = match host {
            Host::Domain(name) => name,
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(address) => address.to_string(),
        };
        let user = percent_encoding::percent_decode_str(url.username()).decode_utf8().map_err(|_| wrong())?;
        let user = Some(user.into_owned()).filter(|user| !user.is_empty());
        let port = url.port().unwrap_or(if is_implicit { 465 } else { 587 });
        Ok(Self { is_implicit, host, port, user })
    }
}

impl fmt::Display for SmtpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_implicit { "smtps" } else { "smtp" };
        write!(f, "{scheme}://{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smtp_server_is_parsed_from_url() {
        let read = |text: &str| text.parse::<SmtpUrl>().map(|url| (url.to_string(), url.user, url.is_implicit)).ok();
        for (text, shown, user, is_implicit) in [
            ("smtps://mail.example", "smtps://mail.example:465", None, true),
            ("smtp://mail.example/", "smtp://mail.example:587", None, false),
            ("smtp://127.0.0.1:2525", "smtp://127.0.0.1:2525", None, false),
            ("smtps://a%40b.example@mail.example:25", "smtps://mail.example:25", Some("a@b.example"), true),
        ] {
            assert_eq!(read(text), Some((shown.to_owned(), user.map(str::to_owned), is_implicit)), "{text}");
        }
        for text in
            ["mail.example", "https://mail.example", "smtp://", "smtp://mail.example/x", "smtp://u:p@mail.example"]
        {
            assert_eq!(read(text), None, "{text}");
        }
        assert!("smtp://[::1]:25".parse::<SmtpUrl>().is_ok_and(|url| url.is_local()));
        assert!("smtp://mail.example".parse::<SmtpUrl>().is_ok_and(|url| !url.is_local()));
    }
}
