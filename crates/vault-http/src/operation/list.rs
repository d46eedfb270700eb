//! `GET {base_url}/organization-vault`

use super::{Inner, shown};
use crate::body::Incoming;
use crate::call::Call;
use crate::problem_response::ProblemResponse;
use crate::{answer, links, query};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderValue};
use vault_core::role::Action;

pub(super) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.principal(call, Action::List)?;
    let (filter, request) = query::list(call.query())?;
    body.ignore().await?;
    let vault = api.parts.vault.for_request(call.origin);
    let (asked, limit) = (filter.clone(), request.limit);

    let page = api.complete(call, async move { vault.list(&principal, asked, request).await }).await?;

    let mut response = answer::json(StatusCode::OK, shown::credentials(&page.items));
    if let Some(cursor) = page.next {
        let link = links::next_page(api.base.as_str(), &filter, limit, &cursor);
        let link = HeaderValue::try_from(link).map_err(|error| ProblemResponse::internal().caused_by(error))?;
        response.headers_mut().insert(header::LINK, link);
    }
    Ok(response)
}
