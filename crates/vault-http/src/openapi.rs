//! `GET /openapi.json`: the API description (OpenAPI 3.1). `cargo xtask openapi` generates it from the wire types and the
//! tables of routes and fields.

use crate::settings::BasePath;
use bytes::Bytes;

/// Description with the default base path.
const DOCUMENT: &str = include_str!("../openapi.json");

/// Returns the description with the base path `base`.
pub(crate) fn document(base: &BasePath) -> Bytes {
    let default = format!("\"{}/", BasePath::default());
    Bytes::from(DOCUMENT.replace(&default, &format!("\"{base}/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_begin_with_the_base_path() -> Result<(), Box<dyn std::error::Error>> {
        let paths = |base: &str| -> Result<Vec<String>, Box<dyn std::error::Error>> {
            let document: serde_json::Value = serde_json::from_slice(&document(&base.parse()?))?;
            Ok(document["paths"].as_object().into_iter().flatten().map(|(path, _)| path.clone()).collect())
        };
        let (default, other) = (paths("/v1")?, paths("/vault/api")?);
        assert!(default.contains(&"/v1/login".to_owned()));
        let moved = default.iter().map(|path| path.replacen("/v1/", "/vault/api/", 1));
        assert!(moved.eq(other));
        Ok(())
    }
}
