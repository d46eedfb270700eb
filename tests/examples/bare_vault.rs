//! A minimal service that saves and lists credentials: the lower bound of their processor time. It checks a token and its
//! session, seals with AES-256-GCM, commits the rows of all waiting saves together, and responds.
//!
//! `bare_vault DATABASE`, with the path of a new file or a PostgreSQL URL, prints its address and a token on one line and
//! runs until it is stopped.

use actix_web::http::header;
use actix_web::web::{self, Bytes, Data};
use actix_web::{App, HttpRequest, HttpResponse, HttpResponseBuilder, HttpServer};
use aes_gcm::{AeadInOut as _, Aes256Gcm, KeyInit as _};
use futures_util::future::join_all;
use pasetors::keys::SymmetricKey;
use pasetors::token::{Local, UntrustedToken};
use pasetors::version4::{LocalToken, V4};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::error::Error;
use std::io::Write;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Statement};
use uuid::{Uuid, uuid};

type Failure = Box<dyn Error + Send + Sync>;

const VAULT: &str = "/v1/organization-vault";
const ORGANIZATION: Uuid = uuid!("01939f3c-1111-7cc3-9d1e-6f1b2a3c4d5e");
const SESSION: Uuid = uuid!("5e0d3b72-6c48-4f9a-9e27-1a8b4c6d7f22");
/// Maximum number of rows of a commit, as in the vault: on a file, and on PostgreSQL.
const LARGEST_COMMITS: [usize; 2] = [1_024, 64];
/// Number of PostgreSQL connections for saves, and for lists.
const CONNECTIONS: usize = 10;

const TABLES: &str = "CREATE TABLE sessions (id UUID NOT NULL PRIMARY KEY);
    CREATE TABLE credentials (organization_id UUID NOT NULL, id UUID NOT NULL, namespace TEXT NOT NULL, \
        created_at BIGINT NOT NULL, code BYTEA NOT NULL, information BYTEA NOT NULL, PRIMARY KEY (organization_id, id));
    CREATE TABLE credential_secrets (organization_id UUID NOT NULL, id UUID NOT NULL, data_key BYTEA NOT NULL, \
        data BYTEA NOT NULL, PRIMARY KEY (organization_id, id));
    CREATE TABLE audit (organization_id UUID NOT NULL, id UUID NOT NULL, at BIGINT NOT NULL, subject TEXT NOT NULL, \
        code BYTEA NOT NULL, PRIMARY KEY (organization_id, id));";
const SETTINGS: &str = "PRAGMA busy_timeout = 5000; PRAGMA cipher_log = OFF;
    PRAGMA key = \"x'00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff'\";
    PRAGMA cipher_compatibility = 4; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA secure_delete = ON;
    PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -65536;";

const FIND_SESSION: &str = "SELECT id FROM sessions WHERE id = $1";
const LIST: &str = "SELECT id, namespace, created_at, information FROM credentials WHERE organization_id = $1 \
    ORDER BY id DESC LIMIT 100";
/// Inserts of one row (SQLite).
const ROW: [&str; 3] = [
    "INSERT INTO credentials VALUES (?1, ?2, ?3, ?4, zeroblob(32), ?5)",
    "INSERT INTO credential_secrets VALUES (?1, ?2, ?3, ?4)",
    "INSERT INTO audit VALUES (?1, ?2, ?3, ?4, zeroblob(32))",
];
/// Inserts of the rows of a commit (PostgreSQL).
const ROWS: [&str; 3] = [
    "INSERT INTO credentials SELECT $1, id, namespace, at, decode(repeat('00', 32), 'hex'), information \
        FROM unnest($2::uuid[], $3::text[], $4::bigint[], $5::bytea[]) AS row (id, namespace, at, information)",
    "INSERT INTO credential_secrets SELECT $1, id, data_key, data \
        FROM unnest($2::uuid[], $3::bytea[], $4::bytea[]) AS row (id, data_key, data)",
    "INSERT INTO audit SELECT $1, id, at, subject, decode(repeat('00', 32), 'hex') \
        FROM unnest($2::uuid[], $3::bigint[], $4::text[]) AS row (id, at, subject)",
];

fn main() -> Result<(), Failure> {
    let database = std::env::args().nth(1).ok_or("usage: bare_vault FILE|URL")?;
    actix_web::rt::System::new().block_on(serve(&database))
}

async fn serve(database: &str) -> Result<(), Failure> {
    let (saves, waiting) = mpsc::unbounded_channel();
    let service = Arc::new(Service { keys: Keys::new()?, rows: AtomicU64::new(0), saves });
    let workers = std::thread::available_parallelism()?.get();
    let mut readers = Vec::new();
    if database.contains("://") {
        write_to_postgres(database, waiting).await?;
        for _ in 0..workers {
            readers.push(Reader::postgres(database, CONNECTIONS.div_ceil(workers)).await?);
        }
    } else {
        write_to_file(database, waiting)?;
        for _ in 0..workers {
            readers.push(Reader::File(RefCell::new(open(database)?)));
        }
    }
    let token = service.keys.token()?;
    let readers = Arc::new(Mutex::new(readers));
    let server = HttpServer::new(move || {
        let reader = readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let vault = web::resource(VAULT).route(web::patch().to(save)).route(web::get().to(list));
        App::new().app_data(Data::from(Arc::clone(&service))).app_data(Data::new(reader)).service(vault)
    });
    let server = server.workers(workers).bind(("127.0.0.1", 0))?;
    for address in server.addrs() {
        writeln!(std::io::stdout(), "{address} {token}")?;
    }
    Ok(server.run().await?)
}

struct Service {
    keys: Keys,
    /// Number of created rows.
    rows: AtomicU64,
    saves: mpsc::UnboundedSender<Save>,
}

/// A row that waits to be committed.
struct Save {
    session: Uuid,
    id: Uuid,
    namespace: String,
    subject: String,
    at: i64,
    sealed: Sealed,
    /// Receives `true` if the session exists and the row is committed.
    done: oneshot::Sender<bool>,
}

async fn save(service: Data<Service>, request: HttpRequest, body: Bytes) -> HttpResponse {
    let Some(session) = service.keys.session(&request) else { return respond(HttpResponse::Unauthorized()).finish() };
    let body = serde_json::from_slice::<Value>(&body).ok();
    let Some((namespace, sealed)) = body.and_then(|mut save| {
        Some((save.get("namespace")?.as_str()?.to_owned(), service.keys.seal_save(save.get_mut("data")?)?))
    }) else {
        return respond(HttpResponse::BadRequest()).finish();
    };
    let at = now();
    // IDs increase with time, as those of the vault.
    let number = service.rows.fetch_add(1, Ordering::Relaxed);
    let id = Uuid::from_u128(u128::from(at.unsigned_abs()) << 80 | 0x7CC3_9D1E << 48 | u128::from(number));
    let (done, waiting) = oneshot::channel();
    let save = Save { session, id, namespace, subject: format!("credential:{id}"), at, sealed, done };
    if service.saves.send(save).is_err() || waiting.await != Ok(true) {
        return respond(HttpResponse::InternalServerError()).finish();
    }
    respond(HttpResponse::Created()).json(json!({"id": id.to_string()}))
}

#[expect(clippy::disallowed_methods, reason = "not the vault: a port of the clock would add to the lower bound")]
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or_default()
}

async fn list(service: Data<Service>, reader: Data<Option<Reader>>, request: HttpRequest) -> HttpResponse {
    let Some(session) = service.keys.session(&request) else { return respond(HttpResponse::Unauthorized()).finish() };
    let page = match reader.as_ref() {
        Some(reader) => reader.page(session).await,
        None => Err("no reader".into()),
    };
    match page.ok().and_then(|page| write(&service.keys, page)) {
        Some(text) => respond(HttpResponse::Ok()).body(text),
        None => respond(HttpResponse::InternalServerError()).finish(),
    }
}

/// Formats a page as JSON.
fn write(keys: &Keys, page: Vec<Listed>) -> Option<Vec<u8>> {
    let mut text = vec![b'['];
    for (id, namespace, at, mut information) in page {
        if text.len() > 1 {
            text.push(b',');
        }
        write!(text, r#"{{"id":"{id}","namespace":"{namespace}","created_at":{at},"information":"#).ok()?;
        text.extend_from_slice(keys.open(&mut information)?);
        text.push(b'}');
    }
    text.push(b']');
    Some(text)
}

/// Adds the header fields of the vault's responses.
fn respond(mut response: HttpResponseBuilder) -> HttpResponseBuilder {
    response
        .insert_header((header::CONTENT_TYPE, "application/json"))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((header::REFERRER_POLICY, "no-referrer"))
        .insert_header((header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'; base-uri 'none'"))
        .insert_header(("x-request-id", "01939f3c-7a5e-7cc3-9d1e-6f1b2a3c4d5e"));
    response
}

/// The columns that a list reads: ID, namespace, time, information.
type Listed = (Uuid, String, i64, Vec<u8>);

/// Reads pages for one worker.
enum Reader {
    File(RefCell<Connection>),
    Postgres { connections: Vec<(Client, Statement, Statement)>, next: AtomicUsize },
}

impl Reader {
    async fn postgres(url: &str, count: usize) -> Result<Self, Failure> {
        let mut connections = Vec::new();
        for _ in 0..count {
            let client = connect(url).await?;
            let (session, list) = (client.prepare(FIND_SESSION).await?, client.prepare(LIST).await?);
            connections.push((client, session, list));
        }
        Ok(Self::Postgres { connections, next: AtomicUsize::new(0) })
    }

    /// Returns the newest page if the session exists.
    async fn page(&self, session: Uuid) -> Result<Vec<Listed>, Failure> {
        match self {
            Self::File(connection) => {
                let connection = connection.try_borrow()?;
                connection.prepare_cached(FIND_SESSION)?.query_row([session], |_| Ok(()))?;
                let mut list = connection.prepare_cached(LIST)?;
                let rows = list.query_map([ORGANIZATION], |row| row.try_into())?;
                Ok(rows.collect::<Result<_, _>>()?)
            }
            Self::Postgres { connections, next } => {
                let place = next.fetch_add(1, Ordering::Relaxed) % connections.len();
                let (client, find_session, list) = &connections[place];
                let organization: [&(dyn ToSql + Sync); 1] = [&ORGANIZATION];
                let (found, page) =
                    tokio::join!(biased; is_session(client, find_session, session), client.query(list, &organization));
                if !found {
                    return Err("no session".into());
                }
                let listed = |row: &tokio_postgres::Row| {
                    Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?))
                };
                page?.iter().map(listed).collect()
            }
        }
    }
}

fn open(path: &str) -> Result<Connection, Failure> {
    let connection = Connection::open(path)?;
    connection.execute_batch(SETTINGS)?;
    Ok(connection)
}

/// Creates the tables and commits the pending saves together, on a separate thread.
fn write_to_file(path: &str, mut waiting: mpsc::UnboundedReceiver<Save>) -> Result<(), Failure> {
    let mut connection = open(path)?;
    connection.execute_batch(&TABLES.replace(");\n", ") WITHOUT ROWID;\n"))?;
    connection.execute("INSERT INTO sessions VALUES (?1)", [SESSION])?;
    std::thread::spawn(move || {
        let mut saves = Vec::new();
        while waiting.blocking_recv_many(&mut saves, LARGEST_COMMITS[0]) > 0 {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate);
            let committed = transaction.and_then(|transaction| {
                saves.iter().try_for_each(|save| insert(&transaction, save))?;
                transaction.commit()
            });
            for save in saves.drain(..) {
                // The client may have disconnected.
                let _ = save.done.send(committed.is_ok());
            }
        }
    });
    Ok(())
}

fn insert(transaction: &Transaction<'_>, save: &Save) -> rusqlite::Result<()> {
    let Save { session, id, namespace, subject, at, sealed, .. } = save;
    let [credential, secret, audit] = ROW;
    transaction.prepare_cached(FIND_SESSION)?.query_row([session], |_| Ok(()))?;
    transaction.prepare_cached(credential)?.execute((ORGANIZATION, id, namespace, at, &sealed.information))?;
    transaction.prepare_cached(secret)?.execute((ORGANIZATION, id, &sealed.data_key, &sealed.data))?;
    transaction.prepare_cached(audit)?.execute((ORGANIZATION, id, at, subject))?;
    Ok(())
}

async fn connect(url: &str) -> Result<Client, Failure> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

async fn is_session(client: &Client, statement: &Statement, session: Uuid) -> bool {
    client.query_one(statement, &[&session]).await.is_ok()
}

/// Creates the tables and commits the pending saves on several connections.
async fn write_to_postgres(url: &str, waiting: mpsc::UnboundedReceiver<Save>) -> Result<(), Failure> {
    let client = connect(url).await?;
    client.batch_execute(TABLES).await?;
    client.execute("INSERT INTO sessions VALUES ($1)", &[&SESSION]).await?;
    let waiting = Arc::new(tokio::sync::Mutex::new(waiting));
    for _ in 0..CONNECTIONS {
        let client = connect(url).await?;
        let find_session = client.prepare(FIND_SESSION).await?;
        let [credentials, secrets, audit] = ROWS;
        let inserts =
            [client.prepare(credentials).await?, client.prepare(secrets).await?, client.prepare(audit).await?];
        let waiting = Arc::clone(&waiting);
        tokio::spawn(async move {
            let mut saves = Vec::new();
            while waiting.lock().await.recv_many(&mut saves, LARGEST_COMMITS[1]).await > 0 {
                let sessions = join_all(saves.iter().map(|save| is_session(&client, &find_session, save.session)));
                let (sessions, committed) = tokio::join!(biased; sessions, insert_all(&client, &inserts, &saves));
                for (save, found) in saves.drain(..).zip(sessions) {
                    // The client may have disconnected.
                    let _ = save.done.send(committed.is_ok() && found);
                }
            }
        });
    }
    Ok(())
}

/// Commits rows in one transaction, with all statements sent without waiting.
async fn insert_all(client: &Client, inserts: &[Statement; 3], saves: &[Save]) -> Result<(), tokio_postgres::Error> {
    let ids: Vec<_> = saves.iter().map(|save| save.id).collect();
    let namespaces: Vec<_> = saves.iter().map(|save| save.namespace.as_str()).collect();
    let subjects: Vec<_> = saves.iter().map(|save| save.subject.as_str()).collect();
    let at: Vec<_> = saves.iter().map(|save| save.at).collect();
    let information: Vec<_> = saves.iter().map(|save| save.sealed.information.as_slice()).collect();
    let data_keys: Vec<_> = saves.iter().map(|save| save.sealed.data_key.as_slice()).collect();
    let data: Vec<_> = saves.iter().map(|save| save.sealed.data.as_slice()).collect();
    let credentials: [&(dyn ToSql + Sync); 5] = [&ORGANIZATION, &ids, &namespaces, &at, &information];
    let secrets: [&(dyn ToSql + Sync); 4] = [&ORGANIZATION, &ids, &data_keys, &data];
    let audit: [&(dyn ToSql + Sync); 4] = [&ORGANIZATION, &ids, &at, &subjects];
    tokio::try_join!(
        biased;
        client.batch_execute("BEGIN"),
        client.execute(&inserts[0], &credentials),
        client.execute(&inserts[1], &secrets),
        client.execute(&inserts[2], &audit),
        client.batch_execute("COMMIT"),
    )?;
    Ok(())
}

/// Length of format, version and key ID before a nonce.
const HEADER: usize = 18;
const NONCE: usize = 12;
/// Additional authenticated data. In the vault, it identifies the row.
const ASSOCIATED: &[u8] = &[0x11; 120];

struct Keys {
    information: Aes256Gcm,
    data_keys: Aes256Gcm,
    tokens: SymmetricKey<V4>,
}

/// The sealed values of a row.
struct Sealed {
    information: Vec<u8>,
    data_key: Vec<u8>,
    data: Vec<u8>,
}

impl Keys {
    fn new() -> Result<Self, Failure> {
        Ok(Self {
            information: Aes256Gcm::new(&[1; 32].into()),
            data_keys: Aes256Gcm::new(&[2; 32].into()),
            tokens: SymmetricKey::from(&[3; 32]).map_err(|_| "no key")?,
        })
    }

    fn token(&self) -> Result<String, Failure> {
        let claims = json!({
            "iss": "orgvault", "aud": "a1b2c3d4-5d7a-4f3e-8a52-2f9d1c7e4b60", "jti": SESSION.to_string(),
            "sub": "2c9e7a44-91d3-4a0b-b1c5-7e3f8d2a6c11", "org": ORGANIZATION.to_string(), "role": "editor",
            "iat": "2026-11-23T00:00:00Z", "exp": "2026-11-24T00:00:00Z",
        });
        Ok(LocalToken::encrypt(&self.tokens, claims.to_string().as_bytes(), None, None).map_err(|_| "no token")?)
    }

    /// Returns the session of the request's token.
    fn session(&self, request: &HttpRequest) -> Option<Uuid> {
        let token = request.headers().get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")?;
        let untrusted = UntrustedToken::<Local, V4>::try_from(token).ok()?;
        let opened = LocalToken::decrypt(&self.tokens, &untrusted, None, None).ok()?;
        let claims: Value = serde_json::from_str(opened.payload()).ok()?;
        claims.get("jti")?.as_str()?.parse().ok()
    }

    /// Seals the data of a save: the part that a list shows, the data, and the key of the data.
    #[expect(clippy::disallowed_methods, reason = "not the vault: a port of randomness would add to the lower bound")]
    fn seal_save(&self, data: &mut Value) -> Option<Sealed> {
        let mut random = [0; 32 + 3 * NONCE];
        getrandom::fill(&mut random).ok()?;
        let (key, nonces) = random.split_at(32);
        let [first, second, third] = [0, 1, 2].map(|place| &nonces[place * NONCE..(place + 1) * NONCE]);
        let sealed_data = seal(&Aes256Gcm::new(key.try_into().ok()?), first, &serde_json::to_vec(data).ok()?, 256)?;
        data.as_object_mut()?.remove("secret_access_key")?;
        Some(Sealed {
            information: seal(&self.information, second, &serde_json::to_vec(data).ok()?, 256)?,
            data_key: seal(&self.data_keys, third, key, 1)?,
            data: sealed_data,
        })
    }

    /// Unseals information as JSON text.
    fn open<'a>(&self, sealed: &'a mut [u8]) -> Option<&'a [u8]> {
        let (head, text) = sealed.split_at_mut_checked(HEADER + NONCE)?;
        let (text, tag) = text.split_at_mut_checked(text.len().checked_sub(16)?)?;
        let (nonce, tag): (&[u8], &[u8]) = (head.get(HEADER..)?, tag);
        let (nonce, tag) = (nonce.try_into().ok()?, tag.try_into().ok()?);
        self.information.decrypt_inout_detached(nonce, ASSOCIATED, (&mut *text).into(), tag).ok()?;
        Some(text.trim_ascii_end())
    }
}

/// Seals `text`, padded to a multiple of `step`.
fn seal(cipher: &Aes256Gcm, nonce: &[u8], text: &[u8], step: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; HEADER];
    bytes.extend_from_slice(nonce);
    bytes.extend_from_slice(text);
    bytes.resize(HEADER + NONCE + text.len().next_multiple_of(step), b' ');
    let text = &mut bytes[HEADER + NONCE..];
    let tag = cipher.encrypt_inout_detached(nonce.try_into().ok()?, ASSOCIATED, text.into()).ok()?;
    bytes.extend_from_slice(&tag);
    Some(bytes)
}
