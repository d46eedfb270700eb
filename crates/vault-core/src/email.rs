//! E-mail addresses in one canonical spelling.

use crate::field::Invalid;
use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};
use std::fmt;

/// An address in its canonical spelling: ASCII lower case, the domain as A-labels (RFC 5890).
///
/// Two addresses are the same account exactly if their canonical spellings are equal. Whatever has no
/// canonical spelling (quoted local parts, address literals, non-ASCII local parts) is refused, so that no
/// two spellings of one mailbox can be two accounts.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EmailAddress(String);

const INVALID: Invalid =
    Invalid("not an e-mail address: expected name@domain, at most 254 characters, without quotes, spaces or comments");

impl EmailAddress {
    /// The longest address, in bytes (RFC 5321 section 4.5.3.1.3, without the angle brackets).
    pub const MAX_LENGTH: usize = 254;
    const MAX_LOCAL: usize = 64;

    /// The canonical spelling of `text`.
    ///
    /// # Errors
    /// The text has no canonical spelling.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        // A U-label may be longer than its A-label; four times covers any, and bounds the work.
        if text.len() > 4 * Self::MAX_LENGTH {
            return Err(INVALID);
        }
        let (local, domain) = text.rsplit_once('@').ok_or(INVALID)?;
        if !is_dot_atom(local) || local.len() > Self::MAX_LOCAL {
            return Err(INVALID);
        }
        let domain = Uts46::new()
            .to_ascii(domain.as_bytes(), AsciiDenyList::STD3, Hyphens::CheckFirstLast, DnsLength::Verify)
            .map_err(|_| INVALID)?;
        if domain.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            return Err(INVALID);
        }
        let canonical = format!("{}@{domain}", local.to_ascii_lowercase());
        if canonical.len() > Self::MAX_LENGTH { Err(INVALID) } else { Ok(Self(canonical)) }
    }

    /// The canonical spelling.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part before the `@`.
    pub fn local_part(&self) -> &str {
        self.0.rsplit_once('@').map_or("", |(local, _)| local)
    }
}

/// RFC 5322 section 3.2.3, ASCII only.
fn is_dot_atom(local: &str) -> bool {
    let is_atom = |atom: &str| {
        !atom.is_empty()
            && atom.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&byte))
    };
    local.split('.').all(is_atom)
}

impl fmt::Display for EmailAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for EmailAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EmailAddress({})", self.0)
    }
}
