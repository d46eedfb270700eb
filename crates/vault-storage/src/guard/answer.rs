//! What comes back.

use hyper::{HeaderMap, StatusCode, header};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use vault_core::check::CheckReason;
use zeroize::Zeroizing;

/// An answer, its body read up to a limit. The body may hold secrets: no `Debug`.
pub(crate) struct Answer {
    /// The status.
    pub(crate) status: StatusCode,
    /// The header fields.
    pub(crate) headers: HeaderMap,
    /// The body, or its beginning.
    pub(crate) body: Zeroizing<Vec<u8>>,
    /// Whether the body is all there.
    pub(crate) is_whole: bool,
}

impl Answer {
    /// The body as text, if it is text and all there.
    pub(crate) fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.body).ok().filter(|_| self.is_whole)
    }

    /// The body as JSON, if it is that.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_slice(&self.body).ok().filter(|_| self.is_whole)
    }

    /// The body as XML, if it is that. A `T` that is an enum names the root element; any other `T` takes every root.
    pub(crate) fn xml<T: DeserializeOwned>(&self) -> Option<T> {
        quick_xml::de::from_str(self.text()?).ok()
    }

    /// What the XML document of a refusal says.
    pub(crate) fn stated(&self) -> Stated {
        let ErrorDocument { code, message, error, errors } = self.xml().unwrap_or_default();
        error.or(errors.error).unwrap_or(Stated { code, message })
    }

    /// A header field's value.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// What the status alone says, where no document of the store's says more.
    pub(crate) fn plain_reason(&self) -> CheckReason {
        match self.status.as_u16() {
            300..=399 => CheckReason::Redirected,
            401 | 403 => CheckReason::Denied,
            408 | 429 | 500..=599 => CheckReason::StoreTrouble,
            _ => CheckReason::Unexpected,
        }
    }

    /// How far the store's clock is from `now`, in seconds, as far as it tells.
    pub(crate) fn skew(&self, now: i64) -> Option<u64> {
        let date = self.headers.get(header::DATE)?.to_str().ok()?;
        let date = crate::text::http_date(date)?;
        Some(date.abs_diff(now))
    }
}

/// The code and the message of a refusal; empty where it says none.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(crate) struct Stated {
    pub(crate) code: String,
    pub(crate) message: String,
}

/// An `Error` as S3 and Azure say it, or one within an `ErrorResponse`, as AWS's other services do, some of them within
/// `Errors`. No type holds itself: a document may be as deep as its sender likes.
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
        Answer { status: StatusCode::FORBIDDEN, headers: HeaderMap::new(), body, is_whole: true }
    }

    #[test]
    fn the_code_of_a_refusal_is_found_in_either_document() {
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
            // Another element's code, two documents, and no XML at all.
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
    fn names_are_read_to_the_letter_and_a_root_by_its_name() {
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
