//! The boundaries of requests in a connection's byte stream.
//!
//! The framework reads ahead. It decodes pipelined requests while it responds to the previous one, runs them even after
//! a response that closes the connection, and mixes up their heads: the body of a GET response is omitted if a HEAD
//! request follows. Therefore, it gets the bytes of only one request at a time. It alone interprets them, so an error
//! in this module can delay a request but not change its meaning.

/// The part of a request that the framework may read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum RequestFraming {
    /// Nothing.
    #[default]
    Nothing,
    /// Lines up to an empty line: a head, or the trailers of a chunked body.
    Lines {
        /// Set after a non-empty line. Empty lines before a head do not end it (RFC 9112, section 2.2).
        started: bool,
        /// Set if the current line is empty so far.
        empty: bool,
    },
    /// This many bytes.
    Bytes(u64),
    /// A chunked body, starting at a chunk's size line.
    ChunkSize {
        /// The size so far.
        size: u64,
        /// Set if the next character may belong to the size.
        digits: bool,
    },
    /// This many bytes of a chunk, including its line end.
    Chunk(u64),
}

impl RequestFraming {
    /// A request head.
    pub(crate) const HEAD: Self = Self::Lines { started: false, empty: true };
    /// A chunked body (RFC 9112, section 7.1).
    pub(crate) const CHUNKED: Self = Self::ChunkSize { size: 0, digits: true };

    /// Returns how many leading `bytes` belong to it. Becomes [`RequestFraming::Nothing`] after its last byte.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        while taken < bytes.len() && *self != Self::Nothing {
            taken += self.step(&bytes[taken..]);
        }
        taken
    }

    /// Consumes at least one byte of `bytes`, which must not be empty.
    fn step(&mut self, bytes: &[u8]) -> usize {
        let (first, available) = (bytes[0], bytes.len() as u64);
        match self {
            Self::Nothing => 0,
            Self::Bytes(left) => {
                let taken = available.min(*left);
                *left -= taken;
                if *left == 0 {
                    *self = Self::Nothing;
                }
                taken as usize
            }
            Self::Chunk(left) => {
                let taken = available.min(*left);
                *left -= taken;
                if *left == 0 {
                    *self = Self::CHUNKED;
                }
                taken as usize
            }
            Self::ChunkSize { size, digits } => {
                match char::from(first).to_digit(16).filter(|_| *digits) {
                    Some(digit) => *size = size.saturating_mul(16).saturating_add(digit.into()),
                    None => *digits = false,
                }
                if first == b'\n' {
                    *self = match *size {
                        0 => Self::Lines { started: true, empty: true },
                        size => Self::Chunk(size.saturating_add(2)),
                    };
                }
                1
            }
            Self::Lines { started, empty } => {
                let line = bytes.iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |end| end + 1);
                *empty &= bytes[..line].iter().all(|byte| b"\r\n".contains(byte));
                *started |= !*empty;
                if bytes[line - 1] == b'\n' {
                    let ended = *started && *empty;
                    *empty = true;
                    if ended {
                        *self = Self::Nothing;
                    }
                }
                line
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEADS: [&str; 5] = [
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: v\r\nX: \r\n\r\n",
        "\r\n\r\nGET / HTTP/1.1\r\nHost: v\r\n\r\n",
        "\nGET / HTTP/1.1\nHost: v\n\n",
        "GET / HTTP/1.1\r\nHost: v\n\r\n",
    ];
    const CHUNKED: [&str; 5] = [
        "0\r\n\r\n",
        "1\r\na\r\n0\r\n\r\n",
        "A;name=\"5\"\r\n0\r\n\r\n01234\r\n4 \r\n\r\n\r\n\r\n000\r\n\r\n",
        "3\r\nabc\r\n0\r\nTrailer: 1\r\nOther: 2\r\n\r\n",
        "00a\r\n0123456789\r\n0;x\r\n\r\n",
    ];

    /// Generates a framing and bytes that belong to it completely.
    fn portions() -> impl Strategy<Value = (RequestFraming, Vec<u8>)> {
        prop_oneof![
            prop::sample::select(&HEADS[..]).prop_map(|head| (RequestFraming::HEAD, head.as_bytes().to_vec())),
            prop::sample::select(&CHUNKED[..]).prop_map(|body| (RequestFraming::CHUNKED, body.as_bytes().to_vec())),
            prop::collection::vec(any::<u8>(), 1..40).prop_map(|body| (RequestFraming::Bytes(body.len() as u64), body)),
        ]
    }

    proptest! {
        #[test]
        fn framing_is_independent_of_segmentation(
            (mut request_framing, bytes) in portions(),
            behind in prop::collection::vec(any::<u8>(), 0..20),
            pieces in prop::collection::vec(1..9_usize, 0..60),
        ) {
            let mut taken = 0;
            let all = [&bytes[..], &behind].concat();
            let mut pieces = pieces.into_iter();
            while request_framing != RequestFraming::Nothing {
                let piece = pieces.next().unwrap_or(all.len()).min(all.len() - taken);
                taken += request_framing.take(&all[taken..taken + piece]);
            }
            prop_assert_eq!(taken, bytes.len());
            prop_assert_eq!(request_framing.take(&behind), 0);
        }

        #[test]
        fn arbitrary_bytes_are_framed_or_passed_on(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for mut request_framing in [RequestFraming::HEAD, RequestFraming::CHUNKED, RequestFraming::Bytes(100), RequestFraming::Nothing] {
                let taken = request_framing.take(&bytes);
                prop_assert!(taken == bytes.len() || request_framing == RequestFraming::Nothing);
            }
        }
    }
}
