//! The web console: a page and its files from the folder `console/`, compiled into the program; and the description of the
//! API. The page is a client of the HTTP API like any other. This module does not handle accounts or credentials.

use crate::problem::ProblemResponse;
use crate::public::PublicApi;
use crate::respond::json;
use crate::routes::{Access, Endpoint, route};
use crate::settings::BasePath;
use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use bytes::Bytes;

/// Content security policy: the console may load its own files and connect to its own server. Text cannot become markup
/// or code (Trusted Types), forms cannot be submitted, and other pages cannot frame it.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
);
/// Isolates the console from windows that other sites opened, or that opened it.
const OPENER_POLICY: (HeaderName, HeaderValue) =
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin"));
/// Prevents other sites from loading the console's files.
const RESOURCE_POLICY: (HeaderName, HeaderValue) =
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin"));

const PAGE: &str = include_str!("../../console/index.html");
/// Page with the API description.
const DOCS: &str = include_str!("../../console/docs.html");
/// Placeholder of the base path in the page. Base paths contain no characters that need HTML escaping.
const BASE_PATH: &str = "{{base_path}}";

/// A file of the console.
struct File {
    name: &'static str,
    content: &'static [u8],
    media_type: &'static str,
}

macro_rules! files {
    ($($name:literal: $media_type:expr,)*) => {
        &[$(File { name: $name, content: include_bytes!(concat!("../../console/", $name)), media_type: $media_type }),*]
    };
}

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

static FILES: &[File] = files! {
    "style.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "app.js": SCRIPT,
    "docs.js": SCRIPT,
    "pages/account.js": SCRIPT,
    "pages/accounts.js": SCRIPT,
    "pages/audit.js": SCRIPT,
    "pages/credential-form.js": SCRIPT,
    "pages/credential.js": SCRIPT,
    "pages/credentials.js": SCRIPT,
    "pages/enrol.js": SCRIPT,
    "pages/integration.js": SCRIPT,
    "pages/integrations.js": SCRIPT,
    "pages/leaked.js": SCRIPT,
    "pages/namespaces.js": SCRIPT,
    "pages/overview.js": SCRIPT,
    "pages/provider-trust.js": SCRIPT,
    "pages/receivers.js": SCRIPT,
    "pages/rotation.js": SCRIPT,
    "pages/sign-in.js": SCRIPT,
    "parts/api.js": SCRIPT,
    "parts/blocks.js": SCRIPT,
    "parts/chart.js": SCRIPT,
    "parts/checking.js": SCRIPT,
    "parts/concerns.js": SCRIPT,
    "parts/connect.js": SCRIPT,
    "parts/copy.js": SCRIPT,
    "parts/credential-edit.js": SCRIPT,
    "parts/credential-story.js": SCRIPT,
    "parts/credential-usage.js": SCRIPT,
    "parts/credential.js": SCRIPT,
    "parts/disabling.js": SCRIPT,
    "parts/dom.js": SCRIPT,
    "parts/find.js": SCRIPT,
    "parts/forms.js": SCRIPT,
    "parts/freezing.js": SCRIPT,
    "parts/health.js": SCRIPT,
    "parts/integration-actions.js": SCRIPT,
    "parts/jobs.js": SCRIPT,
    "parts/keys.js": SCRIPT,
    "parts/lean-qr.js": SCRIPT,
    "parts/list.js": SCRIPT,
    "parts/parts.js": SCRIPT,
    "parts/rotation-steps.js": SCRIPT,
    "parts/save-several.js": SCRIPT,
    "parts/session.js": SCRIPT,
    "parts/tabs.js": SCRIPT,
    "parts/theme.js": SCRIPT,
    "parts/trusts.js": SCRIPT,
    "parts/watch.js": SCRIPT,
    "parts/words.js": SCRIPT,
    "rules/changes.js": SCRIPT,
    "rules/concerns.js": SCRIPT,
    "rules/credentials.js": SCRIPT,
    "rules/denied.js": SCRIPT,
    "rules/freezing.js": SCRIPT,
    "rules/health.js": SCRIPT,
    "rules/holders.js": SCRIPT,
    "rules/keys.js": SCRIPT,
    "rules/labels.js": SCRIPT,
    "rules/reasons.js": SCRIPT,
    "rules/remedies.js": SCRIPT,
    "rules/runs.js": SCRIPT,
    "rules/times.js": SCRIPT,
    "rules/usage.js": SCRIPT,
};

pub(crate) fn endpoints() -> Vec<Endpoint> {
    vec![
        route("GET", "/", "console", Access::Public, page).with_query(),
        route("GET", "/console/{id}", "console-file", Access::Public, file).with_query(),
        route("GET", "/console/{folder}/{id}", "console-module", Access::Public, file).with_query(),
        route("GET", "/docs", "docs", Access::Public, docs).with_query(),
        route("GET", "/openapi.json", "openapi", Access::Public, openapi),
    ]
}

/// The page of a listener's console.
pub(crate) struct Console(Bytes);

impl Console {
    /// Creates the page for the HTTP API below `base`.
    pub(crate) fn new(base: &BasePath) -> Self {
        Self(Bytes::from(PAGE.replace(BASE_PATH, base.as_str())))
    }
}

async fn page(api: Data<PublicApi>) -> HttpResponse {
    served(api.console.0.clone(), HTML)
}

async fn docs() -> HttpResponse {
    served(Bytes::from_static(DOCS.as_bytes()), HTML)
}

async fn openapi(api: Data<PublicApi>) -> HttpResponse {
    json(api.openapi.clone())
}

async fn file(request: HttpRequest) -> Result<HttpResponse, ProblemResponse> {
    let named = request.path().strip_prefix("/console/");
    let file = FILES.iter().find(|file| Some(file.name) == named).ok_or_else(ProblemResponse::not_found)?;
    Ok(served(Bytes::from_static(file.content), file.media_type))
}

fn served(content: Bytes, media_type: &'static str) -> HttpResponse {
    HttpResponse::Ok()
        .content_type(media_type)
        .insert_header((header::CONTENT_SECURITY_POLICY, POLICY))
        .insert_header(OPENER_POLICY)
        .insert_header(RESOURCE_POLICY)
        .body(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use vault_core::audit::AuditAction;
    use vault_core::check::CheckReason;
    use vault_core::receiver::{DeliveryFailure, EventKinds};

    #[test]
    fn every_file_of_the_folder_is_served() -> std::io::Result<()> {
        let mut found = BTreeSet::new();
        for folder in ["", "pages/", "parts/", "rules/"] {
            for entry in std::fs::read_dir(format!("{}/console/{folder}", env!("CARGO_MANIFEST_DIR")))? {
                let entry = entry?;
                if entry.file_type()?.is_file() {
                    found.insert(format!("{folder}{}", entry.file_name().to_string_lossy()));
                }
            }
        }
        let served: BTreeSet<_> = FILES.iter().map(|file| file.name.to_owned()).collect();
        assert!(found.remove("index.html") && found.remove("docs.html"));
        assert_eq!(found, served);
        Ok(())
    }

    #[test]
    fn console_shows_remedies_of_server() {
        let said = file("rules/remedies.js");
        for reason in CheckReason::ALL {
            let (name, remedy) = (reason.as_str(), reason.remedy());
            let quote = if remedy.contains('\'') { '"' } else { '\'' };
            let line = format!("'{name}': {quote}{remedy}{quote},");
            assert!(said.contains(&line), "{line}");
        }
        assert_eq!(said.matches("': ").count(), CheckReason::ALL.len());
    }

    /// A file without its line breaks.
    fn file(name: &str) -> String {
        let file = FILES.iter().find(|file| file.name == name);
        let text = file.map(|file| String::from_utf8_lossy(file.content)).unwrap_or_default();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// The console has a label for every action, event and delivery failure.
    #[test]
    fn every_message_code_has_a_text() {
        let (words, receivers) = (file("parts/words.js"), file("pages/receivers.js"));
        for action in AuditAction::ALL {
            assert!(words.contains(&format!("'{}': ", action.as_str())), "{}", action.as_str());
        }
        for kind in EventKinds::all(true).iter() {
            assert!(receivers.contains(&format!("['{kind}', '")), "{kind}");
        }
        for failure in DeliveryFailure::ALL {
            let name = failure.as_str();
            assert!(receivers.contains(&format!("'{name}': '")) || receivers.contains(&format!("{name}: '")), "{name}");
        }
    }

    /// The page of audit actions lists all of them with the console's labels. `ORGVAULT_UPDATE=1` regenerates it.
    #[test]
    fn actions_of_the_audit_are_documented() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operate/actions.md");
        let words = file("parts/words.js");
        let row = |action: &AuditAction| {
            let (_, rest) = words.split_once(&format!("'{}': ", action.as_str())).expect("words");
            let said = rest[1..].split(&rest[..1]).next().unwrap_or_default();
            format!("| `{}` | {} |\n", action.as_str(), said.replace('%', "…"))
        };
        let expected: String = AuditAction::ALL.iter().map(row).collect();
        let rest = vault_testkit::page::assert_table(&path, "| Action | The actor |\n|---|---|\n", &expected);
        assert_eq!(rest, "");
    }

    #[test]
    fn page_names_the_base_path_once() {
        assert_eq!(PAGE.matches(BASE_PATH).count(), 1);
    }

    #[test]
    fn console_never_renders_markup_or_leaves_origin() {
        for file in FILES.iter().filter(|file| file.media_type == SCRIPT) {
            let text = String::from_utf8_lossy(file.content);
            let forbidden = [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "new Function",
                "indexedDB",
                "document.cookie",
                "importScripts",
            ];
            for word in forbidden {
                assert!(!text.contains(word), "{word} in {}", file.name);
            }
            // The browser stores only the session, per tab, and the theme. Only the session is sent to other tabs.
            for (word, only) in [
                ("sessionStorage", "parts/session.js"),
                ("localStorage", "parts/theme.js"),
                ("postMessage", "parts/session.js"),
            ] {
                assert!(file.name == only || !text.contains(word), "{word} in {}", file.name);
            }
        }
        for text in FILES.iter().map(|file| String::from_utf8_lossy(file.content)).chain([PAGE.into(), DOCS.into()]) {
            let mut urls = text.match_indices("://").map(|(at, _)| &text[..at]);
            assert!(urls.all(|before| !before.ends_with("src=\"https") && !before.ends_with("url(https")), "{text}");
        }
    }
}
