//! What a person, or another value, is called in one exchange.

use cl_model::canonical;
use cl_model::digest::Digest;
use cl_model::key::{MacKey, Seed};
use cl_model::urn::DecisionId;
use cl_model::vocabulary::Datatype;
use serde_json::{Value, json};

const DOMAIN: &str = "context-layer/exchange-name/v1";

/// The hex digits of a name: two values of one exchange share one by chance once in 10^11 bundles.
const DIGITS: usize = 12;

/// Gives names under the transform key.
#[derive(Debug)]
pub struct Names {
    key: MacKey,
}

impl Names {
    /// The names under a key.
    pub fn new(transform: &Seed) -> Self {
        Self {
            key: MacKey::from_seed(transform),
        }
    }

    /// The name of a value in the exchange of one decision, such as `person-1a2b3c4d5e6f`.
    ///
    /// The same value has the same name within the exchange, whatever the case of its letters and
    /// the space around it, and an unrelated one in every other.
    pub fn of(
        &self,
        tenant: &str,
        decision: &DecisionId,
        datatype: Datatype,
        value: &Value,
    ) -> String {
        let value = match value.as_str() {
            Some(text) => Value::from(text.trim().to_lowercase()),
            None => value.clone(),
        };
        let named = json!({
            "tenant": tenant,
            "decision": decision.as_str(),
            "datatype": datatype.as_str(),
            "value": value,
        });
        let message = [DOMAIN, "\0", &canonical::to_text(&named)].concat();
        let hex = Digest::from(self.key.tag(message.as_bytes())).to_hex();
        let kind = match datatype {
            Datatype::Person => "person",
            Datatype::Text
            | Datatype::Date
            | Datatype::Instant
            | Datatype::Money
            | Datatype::Number
            | Datatype::Boolean => "value",
        };
        format!("{kind}-{}", hex.get(..DIGITS).unwrap_or(&hex))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(byte: u8) -> Names {
        Names::new(&Seed::new(&[byte; 32]).unwrap())
    }

    fn of(key: u8, tenant: &str, decision: &str, value: &str) -> String {
        let decision = DecisionId::parse(&format!("urn:cl:decision:{decision}")).unwrap();
        names(key).of(tenant, &decision, Datatype::Person, &Value::from(value))
    }

    proptest! {
        #[test]
        fn a_name_is_stable_within_one_exchange_and_unlinkable_across(
            value in "[a-zA-Z@. ]{1,40}", other in "[a-z]{1,20}",
        ) {
            let name = of(1, "acme", "d1", &value);
            prop_assert_eq!(&name, &of(1, "acme", "d1", &value));
            prop_assert_eq!(&name, &of(1, "acme", "d1", &format!(" {} ", value.to_lowercase())));
            prop_assert_ne!(&name, &of(1, "acme", "d2", &value));
            prop_assert_ne!(&name, &of(1, "other", "d1", &value));
            prop_assert_ne!(&name, &of(2, "acme", "d1", &value));
            if other != value.trim().to_lowercase() {
                prop_assert_ne!(&name, &of(1, "acme", "d1", &other));
            }
            let digits = name.strip_prefix("person-").unwrap();
            prop_assert_eq!(digits.len(), DIGITS);
            prop_assert!(digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        }
    }
}
