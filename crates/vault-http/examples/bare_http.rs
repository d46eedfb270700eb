//! The HTTP framework alone: reads requests and answers like the vault, without doing anything. What bounds the rates
//! of the interface on a machine. Prints its address and serves until it is ended.
//!
//! ```text
//! cargo run --release -p vault-http --example bare_http
//! ```

use actix_web::http::header;
use actix_web::{App, HttpResponse, HttpServer, web};
use bytes::Bytes;
use std::io::Write;

const ID: &str = "01939f3c-7a5e-7cc3-9d1e-6f1b2a3c4d5e";
const VAULT: &str = "/v1/organization-vault";
/// Items of a list.
const ITEMS: usize = 100;

#[actix_web::main]
async fn main() -> std::io::Result<()> {
    let list = Bytes::from(list());
    let server = HttpServer::new(move || {
        let list = list.clone();
        let vault = web::resource(VAULT)
            .route(web::patch().to(save))
            .route(web::get().to(move || std::future::ready(answer(HttpResponse::Ok()).body(list.clone()))));
        let credential = web::resource(format!("{VAULT}/{{id}}")).route(web::delete().to(delete));
        App::new().service(vault).service(credential)
    });
    let server = server.bind(("127.0.0.1", 0))?;
    for address in server.addrs() {
        writeln!(std::io::stdout(), "{address}")?;
    }
    server.run().await
}

async fn save(body: Bytes) -> HttpResponse {
    if body.is_empty() {
        return answer(HttpResponse::BadRequest()).finish();
    }
    let place = (header::LOCATION, format!("{VAULT}/{ID}"));
    answer(HttpResponse::Created()).insert_header(place).body(format!(r#"{{"id":"{ID}"}}"#))
}

async fn delete() -> HttpResponse {
    answer(HttpResponse::NoContent()).finish()
}

/// An answer with the header fields that the vault's answers have.
fn answer(mut answer: actix_web::HttpResponseBuilder) -> actix_web::HttpResponseBuilder {
    answer
        .insert_header((header::CONTENT_TYPE, "application/json"))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((header::REFERRER_POLICY, "no-referrer"))
        .insert_header((header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'; base-uri 'none'"))
        .insert_header(("x-request-id", ID));
    answer
}

/// A list as long as the vault's.
fn list() -> String {
    let item = format!(
        concat!(
            r#"{{"id":"{}","type":"s3","namespace":"imports/nightly-0000BEEF","information":{{"#,
            r#""bucket":"northwind-datalake-prod","region":"eu-central-1","#,
            r#""endpoint":"https://s3.eu-central-1.amazonaws.com","key_prefix":"exports/daily/","#,
            r#""access_key_id":"…BEEF","secrets":["secret_access_key"],"fingerprint":"9f1c2ab04d7e"}},"#,
            r#""version":1,"created_at":"2026-11-20T12:00:00Z","updated_at":"2026-11-20T12:00:00Z"}}"#
        ),
        ID
    );
    format!("[{}]", vec![item; ITEMS].join(","))
}
