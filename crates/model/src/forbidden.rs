//! Material that must never leave the vault or enter a receipt (spec 7.5, 7.8, 11.2).

use serde_json::Value;

/// Member names that hold secrets or raw vault material, lower case and without separators.
const MEMBER_NAMES: &[&str] = &[
    // Raw material and direct vault access.
    "directvaultdata",
    "directvaultid",
    "directvaultobject",
    "directvaultref",
    "directvaultwrite",
    "rawpayload",
    "rawsource",
    "rawvault",
    "rawvaultdata",
    "rawvaultid",
    "rawvaultobject",
    "rawvaultref",
    "rawvaultwrite",
    // Keys.
    "apikey",
    "encryptionkey",
    "privatekey",
    "secretkey",
    "serviceaccountkey",
    "signingkey",
    "sshprivatekey",
    // Passwords and other shared secrets.
    "authorization",
    "clientassertion",
    "clientsecret",
    "connectionstring",
    "consumersecret",
    "cookie",
    "cookies",
    "credential",
    "credentials",
    "databaseurl",
    "passphrase",
    "password",
    "secret",
    "webhooksecret",
    // Tokens.
    "accesstoken",
    "authtoken",
    "bearertoken",
    "csrftoken",
    "idtoken",
    "oauthtoken",
    "personalaccesstoken",
    "privatetoken",
    "refreshtoken",
    "sessiontoken",
    "token",
];

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

fn has_vault_reference(text: &str) -> bool {
    text.match_indices("://").any(|(end, _)| {
        let scheme = &text.as_bytes()[..end];
        scheme.len() >= 5 && scheme[scheme.len() - 5..].eq_ignore_ascii_case(b"vault")
    })
}

fn is_forbidden_name(name: &str) -> bool {
    if name.len() > LONGEST_MEMBER_NAME {
        return false;
    }
    let mut letters = name.to_ascii_lowercase();
    letters.retain(|character| character != '_' && character != '-');
    MEMBER_NAMES.contains(&letters.as_str())
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
            "apikey",
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
    fn knows_the_longest_name() {
        assert!(
            MEMBER_NAMES
                .iter()
                .all(|name| name.len() + 4 <= LONGEST_MEMBER_NAME)
        );
    }
}
