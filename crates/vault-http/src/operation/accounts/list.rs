//! `GET {base_url}/accounts`

use super::item;
use crate::body::Incoming;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::Inner;
use crate::{answer, links, query};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderValue};
use vault_api::AccountItem;
use vault_core::principal::{Principal, Scope};
use vault_core::role::Action;
use vault_core::usecase::AccountsRequest;

pub(in crate::operation) async fn run(
    api: &Inner,
    call: &Call<'_>,
    body: &mut Incoming,
) -> Result<HttpResponse, Fault> {
    let principal = api.session_for(call, Action::ManageAccounts)?;
    let (limit, cursor) = query::page(call.query())?;
    body.ignore().await?;
    let accounts = api.parts.accounts.clone();
    let scope = Scope::One(principal.organization);
    let principal = Principal::from(principal);
    let request = AccountsRequest { limit, cursor };

    let page = api.complete(async move { accounts.list(&principal, scope, request).await }).await?;

    let items: Vec<AccountItem> = page.accounts.iter().map(item).collect();
    let mut response = answer::object(StatusCode::OK, &items)?;
    if let Some(cursor) = page.next {
        let link = links::next_page_of(api.base.as_str(), "accounts", limit, &cursor);
        let link = HeaderValue::try_from(link).map_err(|error| Fault::internal().caused_by(error))?;
        response.headers_mut().insert(header::LINK, link);
    }
    Ok(response)
}
