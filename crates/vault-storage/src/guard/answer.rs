//! Responses.

use hyper::{HeaderMap, StatusCode, header};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::net::IpAddr;
use vault_core::check::CheckReason;
use zeroize::Zeroizing;

/// A response, with its body up to the size limit. The body may contain secrets, so there is no `Debug`.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    /// Header fields.
    pub(crate) headers: HeaderMap,
    /// Body, possibly truncated.
    pub(crate) body: Zeroizing<Vec<u8>>,
    /// Set if the body is complete.
    pub(crate) is_whole: bool,
    /// Address of the server. `None` if the proxy connected to it.
    pub(crate) peer: Option<IpAddr>,
}

impl Answer {
    /// Returns the body as text, if it is complete and valid.
    pub(crate) fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.body).ok().filter(|_| self.is_whole)
    }

    /// Parses the body as JSON.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_slice(&self.body).ok().filter(|_| self.is_whole)
    }

    /// Parses the body as XML. For an enum `T`, the variant must match the root element. Any other `T` accepts every
    /// root element.
    pub(crate) fn xml<T: DeserializeOwned>(&self) -> Option<T> {
        quick_xml::de::from_str(self.text()?).ok()
    }

    /// Returns code and message of an XML error document.
    pub(crate) fn stated(&self) -> Stated {
        let ErrorDocument { code, message, error, errors } = self.xml().unwrap_or_default();
        error.or(errors.error).unwrap_or(Stated { code, message })
    }

    /// Returns the value of a header field.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns the reason for the status alone, if the body does not contain a more specific one.
    pub(crate) fn plain_reason(&self) -> CheckReason {
        match self.status.as_u16() {
            300..=399 => CheckReason::Redirected,
            401 | 403 => CheckReason::Denied,
            408 | 429 | 500..=599 => CheckReason::StoreError,
            _ => CheckReason::Unexpected,
        }
    }

    /// Returns the difference between the provider's clock and `now` in seconds, if the response contains a date.
    pub(crate) fn skew(&self, now: i64) -> Option<u64> {
        let date = self.headers.get(header::DATE)?.to_str().ok()?;
        let date = crate::text::http_date(date)?;
        Some(date.abs_diff(now))
    }
}

/// Code and message of an error. Empty if it contains none.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(crate) struct Stated {
    pub(crate) code: String,
    pub(crate) message: String,
}

/// An `Error` document of S3 and Azure, or one within `ErrorResponse` or `Errors` of other AWS services. The types are
/// not recursive, because the sender determines the nesting depth.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct ErrorDocument {
    code: String,
    message: String,
    error: Option<Stated>,
    errors: Errors,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Errors {
    error: Option<Stated>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(body: &str) -> Answer {
        let body = Zeroizing::new(body.as_bytes().to_vec());
        Answer { status: StatusCode::FORBIDDEN, headers: HeaderMap::new(), body, is_whole: true, peer: None }
    }

    #[test]
    fn refusal_code_is_read_from_either_document() {
        for (body, code, message) in [
            (
                "<Error><Code>NoSuchKey</Code><Message>a&amp;b</Message><RequestId>1</RequestId></Error>",
                "NoSuchKey",
                "a&b",
            ),
            ("\u{feff}<?xml version=\"1.0\"?>\n<Error><Code>Denied</Code></Error>", "Denied", ""),
            (
                "<ErrorResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><Error><Type>Sender</Type><Code>X</Code></Error></ErrorResponse>",
                "X",
                "",
            ),
            ("<Response><Errors><Error><Code>X</Code></Error></Errors></Response>", "X", ""),
            // The code of another element, two documents, and invalid XML.
            ("<Error><Detail><Code>X</Code></Detail></Error>", "", ""),
            ("<html><body><Code>X</Code><p></body></html>", "", ""),
            ("<Code>X", "", ""),
            ("<Error><Code>&x;</Code></Error>", "", ""),
            ("", "", ""),
        ] {
            let stated = answer(body).stated();
            assert_eq!((&*stated.code, &*stated.message), (code, message), "{body}");
        }
        let deep = ["<Error>", "<Errors>", "<a>"].map(|element| answer(&element.repeat(60_000)).stated().code);
        assert_eq!(deep, [const { String::new() }; 3], "no document is too deep");
        let cut = Answer { is_whole: false, ..answer("<Error><Code>X</Code></Error>") };
        assert_eq!(cut.stated().code, "");
    }

    #[test]
    fn xml_names_and_root_are_matched_exactly() {
        #[derive(Deserialize)]
        enum Listing {
            List { name: Vec<String> },
        }
        let read = |body: &str| answer(body).xml().map(|Listing::List { name }| name);
        let body = "<List><name> a&#x1;&#66;<![CDATA[<c>]]> </name><other/><name/></List>";
        assert_eq!(read(body), Some(vec![" a\u{1}B<c> ".to_owned(), String::new()]));
        for other in [
            "<html><name>a</name></html>",
            "<List><name>a</name>",
            "{}",
            "<!DOCTYPE a [<!ENTITY b \"c\">]><List><name>&b;</name></List>",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
