//! A request that has found its operation.

use crate::route::{Operation, Place};
use actix_web::HttpRequest;
use actix_web::http::header::HeaderMap;

/// A request, where it goes and what it does there.
pub(crate) struct Call<'a> {
    pub(crate) request: &'a HttpRequest,
    pub(crate) place: Place<'a>,
    pub(crate) operation: Operation,
}

impl Call<'_> {
    /// The request's headers.
    pub(crate) fn headers(&self) -> &HeaderMap {
        self.request.headers()
    }

    /// The request's query, as it was sent.
    pub(crate) fn query(&self) -> Option<&str> {
        self.request.uri().query()
    }
}
