//! A configuration of curl (curl(1), `--config`) that requests a direct link: neither link nor header fields appear in the
//! arguments of a process.

use super::gather;
use vault_core::credential::{DirectLink, SecretText};

/// Every response except success is an error, no message contains the link, and curl does not interpret brackets in it.
const COMMON: &str = "silent\nshow-error\nfail\ngloboff\nlocation\n";

/// Returns the configuration. A redirect from https is followed only to https. With header fields, a redirect is an
/// error, because curl would send them to the new host.
pub(super) fn config(data: &DirectLink) -> SecretText {
    gather(|sink| {
        sink(COMMON);
        let url = data.url.expose(); // The file is for the command.
        let is_tls = url.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"));
        sink(if is_tls { "proto-redir = \"=https\"\n" } else { "proto-redir = \"=http,https\"\n" });
        write_option("url", &[url], sink);
        if let Some(headers) = &data.headers {
            sink("max-redirs = 0\n");
            for header in headers.iter() {
                write_option("header", &[&header.name, ": ", header.value.expose()], sink); // like the link
            }
        }
    })
}

fn write_option(name: &str, value: &[&str], sink: &mut dyn FnMut(&str)) {
    sink(name);
    sink(" = \"");
    for c in value.iter().flat_map(|piece| piece.chars()) {
        match c {
            '\\' => sink("\\\\"),
            '"' => sink("\\\""),
            '\t' => sink("\\t"),
            '\n' => sink("\\n"),
            '\r' => sink("\\r"),
            c => sink(c.encode_utf8(&mut [0; 4])),
        }
    }
    sink("\"\n");
}
