//! Digests of what a receipt must not let anybody guess.

use cl_model::canonical;
use cl_model::digest::Digest;
use serde_json::Value;

use super::keys::Keys;

const DOMAIN: &str = "context-layer/concealed/v1";

/// A keyed digest: whoever knows the value, but not the alias key, cannot tell that it is of that one.
pub fn concealed(keys: &Keys, value: &Value) -> Digest {
    let message = format!("{DOMAIN}\0{}", canonical::to_text(value));
    Digest::from(keys.tenant_alias.tag(message.as_bytes()))
}

#[cfg(test)]
mod tests {
    use cl_model::key::{Seed, SigningKey};
    use cl_model::scalar::KeyId;
    use serde_json::json;

    use super::*;

    fn keys(alias: u8) -> Keys {
        let seed = |byte| Seed::new(&[byte; 32]).unwrap();
        let kid = KeyId::new("urn:cl:key:decision:test").unwrap();
        let decision = SigningKey::from_seed(kid, &seed(1)).unwrap();
        Keys::new(decision, &seed(alias), &seed(3))
    }

    #[test]
    fn depends_on_the_value_and_on_the_key() {
        let value = json!(["policy.set_anomaly", "urn:agent:one"]);
        assert_eq!(concealed(&keys(2), &value), concealed(&keys(2), &value));
        assert_ne!(concealed(&keys(2), &value), concealed(&keys(4), &value));
        assert_ne!(
            concealed(&keys(2), &value),
            concealed(&keys(2), &json!(["policy.set_anomaly", "urn:agent:two"]))
        );
        assert_ne!(concealed(&keys(2), &value), Digest::of_json(&value));
    }
}
