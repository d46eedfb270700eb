//! A minimal service that saves and lists. A save checks a token and its session, seals three texts, and commits
//! together with all pending saves. A list is one range read, a hundred unsealed texts, and JSON.

use crate::row::{Common, Listed, Own, Rows};
use crate::seal::Keys;
use crate::{Failure, PAGE, Place, postgres, sqlite};
use actix_web::dev::HttpServiceFactory;
use actix_web::http::header;
use actix_web::web::{self, Bytes, Data};
use actix_web::{App, HttpRequest, HttpResponse, HttpResponseBuilder, HttpServer};
use serde_json::Value;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

const VAULT: &str = "/v1/organization-vault";

/// A row that waits to be committed.
pub(super) struct Save {
    /// The session, which must exist.
    pub(super) session: Uuid,
    pub(super) row: Own,
    /// Receives whether the row was committed.
    pub(super) done: oneshot::Sender<bool>,
}

/// Reads pages for one worker.
pub(super) enum Reader {
    File(sqlite::Reader),
    Postgres(postgres::Readers),
}

struct Service {
    keys: Keys,
    rows: Mutex<Rows>,
    saves: mpsc::UnboundedSender<Save>,
}

/// Serves until the process is stopped.
pub(super) fn run(place: &Place) -> Result<(), Failure> {
    actix_web::rt::System::new().block_on(serve(place))
}

async fn serve(place: &Place) -> Result<(), Failure> {
    let session = Common::new().session;
    let (saves, waiting) = mpsc::unbounded_channel();
    let service = Arc::new(Service { keys: Keys::new()?, rows: Mutex::new(Rows::new()), saves });
    let token = service.keys.token(session)?;
    let workers = std::thread::available_parallelism()?.get();
    let readers = Arc::new(Mutex::new(match place {
        Place::File(path) => {
            sqlite::save_what_waits(path, session, waiting)?;
            let readers = (0..workers).map(|_| Ok(Reader::File(sqlite::Reader::new(path)?)));
            readers.collect::<Result<Vec<_>, Failure>>()?
        }
        Place::Postgres(url) => {
            postgres::save_what_waits(url, session, waiting).await?;
            let mut readers = Vec::new();
            for _ in 0..workers {
                readers.push(Reader::Postgres(postgres::Readers::new(url, workers).await?));
            }
            readers
        }
    }));
    let server = HttpServer::new(move || {
        let reader = readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        App::new().app_data(Data::from(Arc::clone(&service))).app_data(Data::new(reader)).service(vault())
    });
    let server = server.workers(workers).bind(("127.0.0.1", 0))?;
    for address in server.addrs() {
        writeln!(std::io::stdout(), "{address} {token}")?;
    }
    Ok(server.run().await?)
}

fn vault() -> impl HttpServiceFactory {
    web::resource(VAULT).route(web::patch().to(save)).route(web::get().to(list))
}

async fn save(service: Data<Service>, request: HttpRequest, body: Bytes) -> HttpResponse {
    let Some(session) = session(&service, &request) else { return refusal() };
    let Some(sealed) =
        serde_json::from_slice::<Value>(&body).ok().and_then(|mut save| service.keys.seal(save.get_mut("data")?))
    else {
        return answer(HttpResponse::BadRequest()).finish();
    };
    let row = service.rows.lock().unwrap_or_else(PoisonError::into_inner).next_with(sealed);
    let id = row.id;
    let (done, waiting) = oneshot::channel();
    let sent = service.saves.send(Save { session, row, done });
    if sent.is_err() || waiting.await != Ok(true) {
        return answer(HttpResponse::InternalServerError()).finish();
    }
    let place = (header::LOCATION, format!("{VAULT}/{id}"));
    answer(HttpResponse::Created()).insert_header(place).body(format!(r#"{{"id":"{id}"}}"#))
}

async fn list(service: Data<Service>, reader: Data<Option<Reader>>, request: HttpRequest) -> HttpResponse {
    let Some(session) = session(&service, &request) else { return refusal() };
    let page = match reader.as_ref() {
        Some(Reader::File(reader)) => reader.page(session),
        Some(Reader::Postgres(readers)) => readers.page(session).await,
        None => Err("no reader".into()),
    };
    match page.ok().and_then(|page| write(&service.keys, page)) {
        Some(text) => answer(HttpResponse::Ok()).body(text),
        None => answer(HttpResponse::InternalServerError()).finish(),
    }
}

fn session(service: &Service, request: &HttpRequest) -> Option<Uuid> {
    let token = request.headers().get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")?;
    service.keys.session(token)
}

/// A page as JSON.
fn write(keys: &Keys, page: Vec<Listed>) -> Option<Vec<u8>> {
    let mut text = Vec::with_capacity(PAGE * 512);
    text.push(b'[');
    for (id, kind, namespace, version, created, updated, _, mut information) in page {
        if text.len() > 1 {
            text.push(b',');
        }
        write!(text, r#"{{"id":"{id}","type":"{kind}","namespace":"{namespace}","information":"#).ok()?;
        text.extend_from_slice(keys.open(&mut information)?);
        write!(text, r#","version":{version},"created_at":{created},"updated_at":{updated}}}"#).ok()?;
    }
    text.push(b']');
    Some(text)
}

fn refusal() -> HttpResponse {
    answer(HttpResponse::Unauthorized()).finish()
}

/// Returns a response with the header fields of the vault's responses.
fn answer(mut answer: HttpResponseBuilder) -> HttpResponseBuilder {
    answer
        .insert_header((header::CONTENT_TYPE, "application/json"))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((header::REFERRER_POLICY, "no-referrer"))
        .insert_header((header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'; base-uri 'none'"))
        .insert_header(("x-request-id", "01939f3c-7a5e-7cc3-9d1e-6f1b2a3c4d5e"));
    answer
}
