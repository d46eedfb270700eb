//! E-mail addresses in canonical spelling.

use crate::field::Invalid;
use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};
use serde::{Deserialize, Serialize};
use std::fmt;

/// An address in canonical spelling: ASCII lower case, with the domain as A-labels (RFC 5890).
///
/// Two addresses belong to the same account if and only if their canonical spellings are equal. Addresses without a
/// canonical spelling (quoted local parts, address literals, non-ASCII local parts) are refused, so that two spellings
/// of one mailbox cannot be two accounts.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EmailAddress(String);

const INVALID: Invalid =
    Invalid("not an e-mail address: expected name@domain, at most 254 characters, without quotes, spaces or comments");

impl EmailAddress {
    /// Maximum length of an address, in bytes (RFC 5321 section 4.5.3.1.3, without the angle brackets).
    pub const MAX_LENGTH: usize = 254;
    const MAX_LOCAL: usize = 64;

    /// Returns the canonical spelling of `text`.
    ///
    /// # Errors
    /// The text has no canonical spelling.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        // A U-label can be longer than its A-label. Four times the maximum is sufficient for all, and limits the work.
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

    /// Returns the canonical spelling.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the part before the `@`.
    pub fn local_part(&self) -> &str {
        self.0.rsplit_once('@').map_or("", |(local, _)| local)
    }
}

/// Returns whether the text is a dot-atom (RFC 5322 section 3.2.3), ASCII only.
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
