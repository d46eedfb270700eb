//! The credential as the HTTP API returns it.

use super::{FormSubject, gather};
use vault_core::credential::SecretText;
use vault_core::json::{ObjectWriter, write_text};
use vault_core::time::Timestamp;

pub(super) fn render(subject: &FormSubject<'_>) -> SecretText {
    let data = subject.vended.to_json();
    // JSON is UTF-8, and the output is for the client that activates.
    let data = std::str::from_utf8(data.expose()).unwrap_or("null");
    gather(|sink| {
        let mut object = ObjectWriter::new(sink);
        write_text(&subject.id.to_string(), object.member("id"));
        write_text(subject.vended.kind().as_str(), object.member("type"));
        object.member("version")(&subject.version.to_string());
        write_text(subject.vended.form().as_str(), object.member("form"));
        object.member("data")(data);
        if let Some(end) = subject.vended.expires_at().and_then(Timestamp::to_rfc3339) {
            write_text(&end, object.member("expires_at"));
        }
        object.end();
        sink("\n");
    })
}
