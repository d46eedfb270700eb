//! Requests as prepared bytes.

use std::io::Write;
use std::net::SocketAddr;

const VAULT: &str = "/v1/organization-vault";
/// A pattern that matches the namespaces of all saves.
pub(crate) const NAMESPACES: &str = "imports/*";

/// The data of a credential.
const DATA: &str = concat!(
    r#""data":{"access_key_id":"AKIAV7Q2MXTE########","#,
    r#""secret_access_key":"q9LmZ4tXv+R7dK2s/Bn8wYpJ5hGc1EfU########","bucket":"northwind-datalake-prod","#,
    r#""region":"eu-central-1","endpoint":"https://s3.eu-central-1.amazonaws.com","key_prefix":"exports/daily/"}"#
);

/// Returns a request with a path and an optional token and body.
fn request(address: SocketAddr, line: &str, token: Option<&str>, body: Option<&str>) -> Vec<u8> {
    let mut text = format!("{line} HTTP/1.1\r\nHost: {address}\r\n");
    if let Some(token) = token {
        text += &format!("Authorization: Bearer {token}\r\n");
    }
    if let Some(body) = body {
        text += &format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    }
    text += "\r\n";
    text += body.unwrap_or_default();
    text.into_bytes()
}

/// Returns a request without token or body.
pub(crate) fn get(address: SocketAddr, path: &str) -> Vec<u8> {
    request(address, &format!("GET {path}"), None, None)
}

/// Returns a login request.
pub(crate) fn login(address: SocketAddr, body: &str) -> Vec<u8> {
    request(address, "POST /v1/login", None, Some(body))
}

/// Returns a request for the newest 100 credentials.
pub(crate) fn list(address: SocketAddr, token: &str) -> Vec<u8> {
    list_at(address, token, &format!("{VAULT}?limit=100"))
}

/// Returns a request for a list at the link of an earlier response.
pub(crate) fn list_at(address: SocketAddr, token: &str, target: &str) -> Vec<u8> {
    request(address, &format!("GET {target}"), Some(token), None)
}

/// Returns a request that creates a receiver.
pub(crate) fn add_receiver(address: SocketAddr, token: &str, body: &str) -> Vec<u8> {
    request(address, "POST /v1/receivers", Some(token), Some(body))
}

/// A request in which some bytes change each time.
pub(crate) struct Template {
    bytes: Vec<u8>,
    /// Positions of the changing bytes. All runs have the same length.
    places: Vec<usize>,
    length: usize,
}

impl Template {
    /// Creates a template from `bytes`, in which each run of `length` characters `#` changes.
    fn new(bytes: Vec<u8>, length: usize) -> Self {
        let run = vec![b'#'; length];
        let places = bytes.windows(length).enumerate().filter(|(_, window)| *window == run).map(|(place, _)| place);
        Self { places: places.collect(), bytes, length }
    }

    /// Creates saves of an object store's credential, as a nightly import would use it.
    pub(crate) fn save(address: SocketAddr, token: &str) -> Self {
        let body = format!(r#"{{"type":"s3","namespace":"imports/nightly-########",{DATA}}}"#);
        Self::new(request(address, &format!("PATCH {VAULT}"), Some(token), Some(&body)), 8)
    }

    /// Creates saves with labels, all in one namespace.
    pub(crate) fn save_labelled(address: SocketAddr, token: &str, labels: &str) -> Self {
        let body = format!(r#"{{"type":"s3","namespace":"labelled","labels":{labels},{DATA}}}"#);
        Self::new(request(address, &format!("PATCH {VAULT}"), Some(token), Some(&body)), 8)
    }

    /// Creates saves with the same idempotency key. All except the first are rejected because their data differs.
    pub(crate) fn save_under_one_key(address: SocketAddr, token: &str) -> Self {
        let mut bytes = Self::save(address, token).bytes;
        let end_of_line = bytes.windows(2).position(|two| two == b"\r\n").unwrap_or_default();
        bytes.splice(end_of_line..end_of_line, *b"\r\nIdempotency-Key: the-same");
        Self::new(bytes, 8)
    }

    /// Creates replacements of data.
    pub(crate) fn replace(address: SocketAddr, token: &str) -> Self {
        let line = format!("POST {VAULT}/{}/versions", "#".repeat(36));
        let body = format!("{{{}}}", DATA.replace('#', "0"));
        Self::new(request(address, &line, Some(token), Some(&body)), 36)
    }

    /// Creates deletes.
    pub(crate) fn delete(address: SocketAddr, token: &str) -> Self {
        let line = format!("DELETE {VAULT}/{}", "#".repeat(36));
        Self::new(request(address, &line, Some(token), None), 36)
    }

    /// Creates activations of the namespace of a save.
    pub(crate) fn activate(address: SocketAddr, token: &str) -> Self {
        let body = r#"{"namespace":"imports/nightly-########"}"#;
        Self::new(request(address, "POST /v1/activations", Some(token), Some(body)), 8)
    }

    /// Creates requests that end an activation.
    pub(crate) fn end_activation(address: SocketAddr, token: &str) -> Self {
        let line = format!("DELETE /v1/activations/{}", "#".repeat(36));
        Self::new(request(address, &line, Some(token), None), 36)
    }

    /// Writes the request with `text` in the changing positions.
    pub(crate) fn write(&self, text: &[u8], request: &mut Vec<u8>) {
        request.extend_from_slice(&self.bytes);
        for place in &self.places {
            request[*place..place + self.length].copy_from_slice(&text[..self.length]);
        }
    }

    /// Writes the request with `number` in the changing positions, in upper-case hexadecimal.
    pub(crate) fn write_number(&self, number: u32, request: &mut Vec<u8>) {
        let mut text = [0; 8];
        // The number has at most eight digits.
        let _ = write!(&mut text[..], "{number:08X}");
        self.write(&text, request);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn saves_under_one_key_name_it_and_still_change() {
        let template = Template::save_under_one_key(SocketAddr::from((Ipv4Addr::LOCALHOST, 80)), "token");
        let mut request = Vec::new();
        template.write_number(0xBEEF, &mut request);
        let request = String::from_utf8(request).unwrap();
        assert!(request.starts_with("PATCH /v1/organization-vault HTTP/1.1\r\nIdempotency-Key: the-same\r\nHost: "));
        assert_eq!(request.matches("0000BEEF").count(), 3);
    }

    #[test]
    fn template_is_filled_at_all_positions() {
        let template = Template::save(SocketAddr::from((Ipv4Addr::LOCALHOST, 80)), "token");
        let mut request = Vec::new();
        template.write_number(0xBEEF, &mut request);
        let request = String::from_utf8(request).unwrap();
        assert_eq!(request.matches("0000BEEF").count(), 3);
        assert!(!request.contains('#'));
        let (_, body) = request.split_once("\r\n\r\n").unwrap();
        assert!((280..350).contains(&body.len()), "{}", body.len());
        assert!(request.contains(&format!("Content-Length: {}\r\n", body.len())));
    }
}
