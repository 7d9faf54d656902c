//! Material that must never leave the vault or enter a receipt (spec 7.5, 7.8, 11.2).

use serde_json::Value;

/// Member names that hold secrets or raw vault material: in lower case, without separators, sorted.
const MEMBER_NAMES: &[&str] = &[
    "accesskey",
    "accesstoken",
    "apikey",
    "apikeys",
    "authorization",
    "authtoken",
    "awssecretaccesskey",
    "bearertoken",
    "clientassertion",
    "clientsecret",
    "connectionstring",
    "consumersecret",
    "cookie",
    "cookies",
    "credential",
    "credentials",
    "csrftoken",
    "databaseurl",
    "directvaultdata",
    "directvaultid",
    "directvaultobject",
    "directvaultref",
    "directvaultwrite",
    "encryptionkey",
    "idtoken",
    "oauthtoken",
    "passphrase",
    "passwd",
    "password",
    "passwordhash",
    "passwords",
    "personalaccesstoken",
    "privatekey",
    "privatekeypem",
    "privatetoken",
    "proxyauthorization",
    "rawpayload",
    "rawsource",
    "rawvault",
    "rawvaultdata",
    "rawvaultid",
    "rawvaultobject",
    "rawvaultref",
    "rawvaultwrite",
    "refreshtoken",
    "secret",
    "secretaccesskey",
    "secretkey",
    "secrets",
    "serviceaccountkey",
    "sessioncookie",
    "sessiontoken",
    "setcookie",
    "signingkey",
    "sshprivatekey",
    "token",
    "tokens",
    "webhooksecret",
    "xapikey",
];

/// The longest of them, with room for separators.
const LONGEST_MEMBER_NAME: usize = 32;

/// Whether a tree holds a `vault://` reference in any string or member name, in any letter case,
/// or a member whose name marks a secret or raw material, at any depth.
///
/// `key_id` and `raw_vault_resolution` are ordinary members. Time is linear in the tree.
pub fn contains_forbidden_material(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => has_vault_reference(text),
        Value::Array(elements) => elements.iter().any(contains_forbidden_material),
        Value::Object(members) => members.iter().any(|(name, value)| {
            is_forbidden_name(name)
                || has_vault_reference(name)
                || contains_forbidden_material(value)
        }),
    }
}

/// Whether text holds a `vault://` reference, in any letter case.
pub fn has_vault_reference(text: &str) -> bool {
    text.match_indices(':').any(|(colon, _)| {
        let (before, after) = (&text.as_bytes()[..colon], &text.as_bytes()[colon..]);
        after.starts_with(b"://")
            && before.len() >= 5
            && before[before.len() - 5..].eq_ignore_ascii_case(b"vault")
    })
}

fn is_forbidden_name(name: &str) -> bool {
    let mut buffer = [0; LONGEST_MEMBER_NAME];
    if name.len() > buffer.len() {
        return false;
    }
    let mut length = 0;
    for byte in name.bytes().filter(|byte| !matches!(byte, b'_' | b'-')) {
        buffer[length] = byte.to_ascii_lowercase();
        length += 1;
    }
    let letters = &buffer[..length];
    MEMBER_NAMES
        .binary_search_by(|known| known.as_bytes().cmp(letters))
        .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn finds_vault_references_anywhere() {
        for value in [
            json!("vault://x"),
            json!({"a": [{"b": "see VAULT://x"}]}),
            json!({"Vault://name": 1}),
            json!("http://a vaUlt://b"),
        ] {
            assert!(contains_forbidden_material(&value), "{value}");
        }
        for value in [
            json!("vault:/x"),
            json!("the vault"),
            json!("fault://x"),
            json!("://"),
        ] {
            assert!(!contains_forbidden_material(&value), "{value}");
        }
    }

    #[test]
    fn finds_secret_members_in_each_spelling() {
        for name in [
            "raw_vault_object",
            "rawVaultWrite",
            "API-Key",
            "accesskey",
            "apikey",
            "apikeys",
            "awssecretaccesskey",
            "Password",
            "id_token",
        ] {
            assert!(
                contains_forbidden_material(&json!([{"x": {name: 1}}])),
                "{name}"
            );
        }
        for name in [
            "key_id",
            "raw_vault_resolution",
            "tokens_used",
            "secretary",
            "payload_included",
        ] {
            assert!(!contains_forbidden_material(&json!({name: 1})), "{name}");
        }
    }

    #[test]
    fn keeps_its_list_in_order() {
        assert!(MEMBER_NAMES.is_sorted());
        assert!(
            MEMBER_NAMES
                .iter()
                .all(|name| name.len() + 4 <= LONGEST_MEMBER_NAME)
        );
    }
}
