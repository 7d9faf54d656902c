//! What subjects and sources are called outside the vault (spec 5, 7.5, 11.3).

use data_encoding::BASE64URL_NOPAD;
use serde_json::{Value, json};

use crate::canonical;
use crate::digest::Digest;
use crate::key::MacKey;
use crate::scalar::Handle;
use crate::urn::{Alias, ProvenanceRef, RequestId};

const ALIAS_DOMAIN: &str = "context-layer/subject-alias/v1";
const HANDLE_DOMAIN: &str = "context-layer/provenance-handle/v1";
const TENANT_DOMAIN: &str = "context-layer/tenant-alias/v1";
const TAG_DOMAIN: &str = "context-layer/subject-tag/v1";

/// How aliases and handles are derived.
#[derive(Debug)]
pub enum AliasScheme {
    /// The local profile's formulas: plain digests that anybody can recompute from a guess. For
    /// byte compatibility only.
    Parity,
    /// Keyed, and different for every request: nothing can be guessed or linked without the key.
    Keyed(MacKey),
    /// The names that policy engine and vault gave under their own keys: the subject has this
    /// alias, and sources come as the handles of [`AliasScheme::Keyed`].
    Minted(Alias),
}

impl AliasScheme {
    /// The subject's alias in one exchange with one recipient.
    pub fn subject_alias(&self, subject_ref: &str, request: &RequestId, recipient: &str) -> Alias {
        let named = json!({
            "subject_ref": subject_ref,
            "request_ref": request.as_str(),
            "recipient": recipient,
        });
        match self {
            Self::Parity => Alias::from_digest(Digest::of_json(&named)),
            Self::Keyed(key) => Alias::from_digest(derive(key, ALIAS_DOMAIN, &named)),
            Self::Minted(alias) => alias.clone(),
        }
    }

    /// The handle and opaque reference of one source in one exchange; `None` if the names are
    /// minted and `source` is none of them.
    pub fn provenance(&self, source: &str, request: &RequestId) -> Option<Provenance> {
        let digest = match self {
            Self::Parity => {
                let source = canonical::to_text(&Value::from(source));
                Digest::of_bytes(format!(r#"{{"source":{source}}}"#).as_bytes())
            }
            Self::Keyed(key) => {
                let named = json!({"source": source, "request_ref": request.as_str()});
                derive(key, HANDLE_DOMAIN, &named)
            }
            Self::Minted(_) => Handle::parse_digest(source)?,
        };
        Some(Provenance { digest })
    }
}

/// What a tenant is called in receipts of operations that have no subject.
pub fn tenant_alias(key: &MacKey, tenant: &str) -> Alias {
    Alias::from_digest(derive(key, TENANT_DOMAIN, &json!({"tenant": tenant})))
}

/// The stable tag under which the receipts of one subject are found: 43 characters of unpadded
/// base64url. Policy engine and vault share its key.
pub fn subject_tag(key: &MacKey, tenant: &str, subject_ref: &str) -> String {
    let value = json!({"tenant": tenant, "subject_ref": subject_ref});
    BASE64URL_NOPAD.encode(derive(key, TAG_DOMAIN, &value).as_bytes())
}

fn derive(key: &MacKey, domain: &str, value: &Value) -> Digest {
    let message = format!("{domain}\0{}", canonical::to_text(value));
    Digest::from(key.tag(message.as_bytes()))
}

/// One source as a bundle names it: a handle for its items, a reference for the vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Provenance {
    digest: Digest,
}

impl Provenance {
    /// The handle that context items use.
    pub fn handle(&self) -> Handle {
        Handle::from_digest(self.digest)
    }

    /// The reference that only the vault can resolve.
    pub fn reference(&self) -> ProvenanceRef {
        ProvenanceRef::from_digest(self.digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Seed;

    fn request(tail: &str) -> RequestId {
        RequestId::parse(&format!("urn:cl:request:{tail}")).expect("an id")
    }

    fn keyed(byte: u8) -> AliasScheme {
        let seed = Seed::new(&[byte; 32]).expect("32 bytes");
        AliasScheme::Keyed(MacKey::from_seed(&seed))
    }

    #[test]
    fn parity_follows_the_profile() {
        let source = "vault://synthetic-test-only/events/approved";
        let provenance = AliasScheme::Parity.provenance(source, &request("a"));
        let provenance = provenance.expect("a source");
        let hex = "df41a694762c9e3d87007c05de3ab515fa4681e91b9f765c5b90aae5fa2496c0";
        assert_eq!(provenance.handle().as_str(), format!("prov_{hex}"));
        assert_eq!(
            provenance.reference().as_str(),
            format!("urn:cl:provenance:{hex}")
        );
    }

    #[test]
    fn keyed_names_cannot_be_recomputed_or_linked() {
        let (one, other) = (keyed(1), keyed(2));
        let alias = |scheme: &AliasScheme, tail| scheme.subject_alias("s:1", &request(tail), "r:1");
        assert_eq!(alias(&one, "a"), alias(&one, "a"));
        assert_ne!(alias(&one, "a"), alias(&one, "b"));
        assert_ne!(alias(&one, "a"), alias(&other, "a"));
        assert_ne!(alias(&one, "a"), alias(&AliasScheme::Parity, "a"));
        let handle = |scheme: &AliasScheme, tail| {
            let provenance = scheme.provenance("e:1", &request(tail));
            provenance.expect("a source").handle()
        };
        assert_ne!(handle(&one, "a"), handle(&one, "b"));
        assert_ne!(handle(&one, "a"), handle(&AliasScheme::Parity, "a"));
    }

    #[test]
    fn minted_names_pass_unchanged_and_others_are_refused() {
        let keyed = keyed(1);
        let alias = keyed.subject_alias("s:1", &request("a"), "r:1");
        let source = keyed.provenance("e:1", &request("a")).expect("a source");
        let minted = AliasScheme::Minted(alias.clone());
        assert_eq!(minted.subject_alias("s:1", &request("a"), "r:1"), alias);
        let handle = source.handle();
        let again = minted.provenance(handle.as_str(), &request("b"));
        assert_eq!(again, Some(source));
        for other in ["", "e:1", "prov_", "prov_00", source.reference().as_str()] {
            assert_eq!(minted.provenance(other, &request("a")), None, "{other}");
        }
        let upper = handle.as_str().to_uppercase();
        assert_eq!(minted.provenance(&upper, &request("a")), None);
    }

    #[test]
    fn subject_tags_are_stable_within_a_tenant_and_differ_across() {
        let key = |byte| MacKey::from_seed(&Seed::new(&[byte; 32]).expect("32 bytes"));
        let tag = subject_tag(&key(1), "a", "s:1");
        assert_eq!(tag.len(), 43);
        assert_eq!(tag, subject_tag(&key(1), "a", "s:1"));
        assert_ne!(tag, subject_tag(&key(1), "b", "s:1"));
        assert_ne!(tag, subject_tag(&key(1), "a", "s:2"));
        assert_ne!(tag, subject_tag(&key(2), "a", "s:1"));
        assert_ne!(tenant_alias(&key(1), "a"), tenant_alias(&key(1), "b"));
    }
}
