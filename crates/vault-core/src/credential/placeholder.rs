//! Detection of texts that stand for a value: placeholders that a template or a shell should have replaced, references
//! to another secret store, and ciphertext of another tool.

use super::spec::FieldClass;

/// Returns whether `text` is a value that another tool encrypted.
pub(super) fn is_ciphertext(text: &str) -> bool {
    /// sops and hiera-eyaml, the transit engine of OpenBao and Vault, Ansible, age and PGP.
    const STARTS: [&str; 5] =
        ["ENC[", "vault:v1:", "$ANSIBLE_VAULT;", "-----BEGIN AGE ENCRYPTED", "-----BEGIN PGP MESSAGE"];
    STARTS.iter().any(|start| text.starts_with(start))
}

/// Returns whether `text` names a secret in another store, which the tool of that store replaces.
pub(super) fn is_reference(text: &str) -> bool {
    /// 1Password, Vault and OpenBao (bank-vaults), vals, helm-secrets, and secret stores of clouds.
    const STARTS: [&str; 9] = [
        "op://",
        "vault:",
        "ref+",
        "secret://",
        "secrets://",
        "awssm://",
        "gcpsm://",
        "azkv://",
        "@Microsoft.KeyVault(",
    ];
    let is_arn = |service: &str| text.starts_with("arn:") && text.split(':').nth(2) == Some(service);
    let is_google = text.starts_with("projects/") && text.contains("/secrets/");
    STARTS.iter().any(|start| text.starts_with(start)) || is_arn("secretsmanager") || is_arn("ssm") || is_google
}

/// Returns whether `text` is or contains a placeholder.
pub(super) fn is_placeholder(text: &str, class: FieldClass) -> bool {
    /// Formats that are detected in any position.
    const INSIDE: [(&str, &str); 5] = [("${", "}"), ("{{", "}}"), ("$(", ")"), ("#{", "}"), ("<%", "%>")];
    let inside = |(open, close): &(&str, &str)| match text.split_once(open) {
        Some((_, rest)) => rest.contains(close),
        None => false,
    };
    // Most texts do not contain the first characters of these formats.
    let suspect = text.bytes().any(|byte| matches!(byte, b'$' | b'{' | b'#' | b'<'));
    let unfilled = (suspect && INSIDE.iter().any(inside)) || is_whole(text);
    unfilled || (class != FieldClass::Location && is_worded(text))
}

/// Returns whether the text is one of the example keys in the AWS documentation, which are not valid there.
pub(super) fn is_example_key(text: &str) -> bool {
    const KEYS: [&str; 6] = [
        "AKIAIOSFODNN7EXAMPLE",
        "ASIAIOSFODNN7EXAMPLE",
        "AKIAI44QH8DHBEXAMPLE",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzEXAMPLEKEY",
        "je7MtGbClwBF/2Zp9Utk/h3yCo8nvbEXAMPLEKEY",
    ];
    KEYS.contains(&text)
}

/// Detects formats that are placeholders only as the whole text: within it, `%2F` and `$x` are parts of real values.
fn is_whole(text: &str) -> bool {
    let between = |open, close| text.strip_prefix(open).and_then(|rest: &str| rest.strip_suffix(close));
    between("<", ">").is_some()
        || between("%", "%").is_some_and(is_variable)
        || between("{", "}").is_some_and(is_variable)
        || text.strip_prefix("$env:").is_some_and(is_variable)
        || text.strip_prefix('$').is_some_and(|name| is_variable(name) && name == name.to_ascii_uppercase())
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}

fn is_worded(text: &str) -> bool {
    const WORDS: [&str; 6] = ["changeme", "replaceme", "todo", "tbd", "placeholder", "yoursecret"];
    if text.len() > 64 {
        return false;
    }
    let text = text.to_ascii_lowercase();
    let your = text.strip_prefix("your").is_some_and(|rest| rest.starts_with(['-', '_', ' ']));
    your || WORDS.contains(&text.replace(['-', '_', ' '], "").as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognises_placeholders() {
        for text in [
            "${VAR}",
            "a${VAR}b",
            "{{ x }}",
            "{{}}",
            "$(cat key)",
            "%SECRET%",
            "<your-secret>",
            "$SECRET_KEY",
            "$env:KEY",
            "{secret}",
            "#{key}",
            "YOUR_SECRET_KEY",
            "change-me",
            "TODO",
        ] {
            assert!(is_placeholder(text, FieldClass::Secret), "{text}");
        }
    }

    #[test]
    fn recognises_ciphertext_and_references() {
        for text in
            ["ENC[AES256_GCM,data:eXl5,type:str]", "ENC[PKCS7,MIIB]", "vault:v1:8SDd3WHDOjf7mq69CyCqYjBXAiQQAVZ"]
        {
            assert!(is_ciphertext(text), "{text}");
        }
        for text in [
            "op://night/store/credential",
            "vault:secret/data/store#KEY",
            "ref+awssecrets://night/store",
            "arn:aws:secretsmanager:eu-west-1:444455556666:secret:night/store-Xy12Zz",
            "arn:aws-cn:ssm:cn-north-1:444455556666:parameter/night",
            "projects/night/secrets/store/versions/latest",
        ] {
            assert!(is_reference(text), "{text}");
        }
        for text in
            ["ENCrypted[x]", "vaultkey", "arn:aws:iam::111122223333:role/reader", "op/secret", "projects/secret"]
        {
            assert!(!is_ciphertext(text) && !is_reference(text), "{text}");
        }
    }

    #[test]
    fn leaves_values_alone() {
        for text in [
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYTESTSECRET",
            "%2Fa%2F",
            "a$b",
            "$ecret",
            "{a}b",
            "}}{{",
            "100%",
            "c2VjcmV0Pw==",
            "a<b>c",
        ] {
            assert!(!is_placeholder(text, FieldClass::Secret), "{text}");
        }
        for text in ["$web", "todo", "your-data"] {
            assert!(!is_placeholder(text, FieldClass::Location), "{text}");
        }
    }
}
