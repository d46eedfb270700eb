//! Request bodies: at most 64 KiB, within a deadline, in memory that is overwritten when freed.

use crate::connection::Phase;
use crate::problem_response::ProblemResponse;
use crate::settings::Deadlines;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::Payload;
use actix_web::http::ConnectionType;
use actix_web::http::header::{self, HeaderMap};
use actix_web::{HttpRequest, HttpResponse};
use bytes::Bytes;
use futures_util::StreamExt as _;
use std::ops::Deref;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use tokio::time::timeout;
use vault_api::ProblemCode;
use zeroize::Zeroizing;

/// Maximum size of a body in bytes.
const MAX_BODY: usize = 64 * 1024;

/// A body that was not read completely yet.
pub(crate) struct Incoming {
    payload: Payload,
    announced: Option<u64>,
    left: bool,
    phase: Option<Rc<Phase>>,
}

impl Incoming {
    pub(crate) fn new(request: &HttpRequest, payload: Payload) -> Self {
        let left = !matches!(payload, Payload::None);
        let phase = request.conn_data::<Rc<Phase>>().cloned();
        Self { payload, announced: announced(request.headers()), left, phase }
    }

    /// Reads the whole body.
    pub(crate) async fn read(&mut self) -> Result<Body, ProblemResponse> {
        if self.announced.is_some_and(|length| length > MAX_BODY as u64) {
            return Err(too_large());
        }
        if !self.left {
            return Ok(Body::One(Bytes::new()));
        }
        let deadline = self.phase.as_ref().map_or(Deadlines::default().body, |phase| phase.read_body(self.announced));
        match timeout(deadline, self.collect()).await {
            Ok(body) => body,
            Err(_) => {
                let detail = format!("The body did not arrive within {} seconds.", deadline.as_secs());
                Err(ProblemResponse::new(ProblemCode::RequestTimeout, detail).closing())
            }
        }
    }

    /// Reads and discards the body of an operation without one.
    pub(crate) async fn ignore(&mut self) -> Result<(), ProblemResponse> {
        if self.left { self.read().await.map(|_| ()) } else { Ok(()) }
    }

    async fn collect(&mut self) -> Result<Body, ProblemResponse> {
        let mut body = Body::One(Bytes::new());
        while let Some(piece) = self.payload.next().await {
            let piece = piece.map_err(|_| {
                ProblemResponse::malformed("The body is truncated or is not valid chunked encoding.").closing()
            })?;
            if body.len() + piece.len() > MAX_BODY {
                return Err(too_large());
            }
            body = body.and(piece);
        }
        self.left = false;
        Ok(body)
    }

    /// Closes the connection after `response` if the body was not read. Otherwise, the server would have to read the
    /// rest to find the next request.
    pub(crate) fn conclude(self, mut response: HttpResponse) -> HttpResponse {
        if !self.left {
            return response;
        }
        response.head_mut().set_connection_type(ConnectionType::Close);
        response.map_body(|_, body| BoxBody::new(WithUnread { body, _unread: self.payload }))
    }
}

fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.trim().parse().ok()
}

fn too_large() -> ProblemResponse {
    ProblemResponse::new(ProblemCode::TooLarge, "The body is larger than 64 KiB.").closing()
}

/// A complete body.
pub(crate) enum Body {
    /// In one piece, as received.
    One(Bytes),
    /// Joined from several pieces.
    Joined(Zeroizing<Vec<u8>>),
}

impl Body {
    fn and(self, piece: Bytes) -> Self {
        let joined = match self {
            Self::One(first) if first.is_empty() => return Self::One(piece),
            Self::One(first) => grown(&first, piece.len()),
            Self::Joined(joined) if joined.capacity() - joined.len() >= piece.len() => joined,
            // Copied explicitly, because a growing vector would leave a copy in freed memory.
            Self::Joined(joined) => grown(&joined, piece.len()),
        };
        let mut joined = joined;
        joined.extend_from_slice(&piece);
        Self::Joined(joined)
    }
}

fn grown(content: &[u8], by: usize) -> Zeroizing<Vec<u8>> {
    let capacity = (content.len() + by).next_power_of_two().min(MAX_BODY);
    let mut grown = Zeroizing::new(Vec::with_capacity(capacity));
    grown.extend_from_slice(content);
    grown
}

impl Deref for Body {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::One(bytes) => bytes,
            Self::Joined(bytes) => bytes,
        }
    }
}

/// The body of a response, together with the unread rest of the request. While this exists, the framework does not read
/// the rest to find the next request, but closes the connection.
struct WithUnread {
    body: BoxBody,
    _unread: Payload,
}

impl MessageBody for WithUnread {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.body).poll_next(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pieces_are_joined_in_order(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..20)) {
            let mut body = Body::One(Bytes::new());
            for piece in &pieces {
                body = body.and(Bytes::copy_from_slice(piece));
            }
            prop_assert_eq!(&*body, &*pieces.concat());
        }
    }
}
