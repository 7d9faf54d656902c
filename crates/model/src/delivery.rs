//! What a recipient receives with a bundle, and the checks that need nothing else (spec 12, 13.2).
//!
//! A delivery is the signed envelope, the scope statement that bounds it, and the disclosure notes
//! on its items. As a file or an HTTP body it is one JSON object whose five members are unpadded
//! base64url; see [`MEDIA_TYPE`].

use data_encoding::BASE64URL_NOPAD;
use serde_json::{Map, Value};

use crate::canonical;
use crate::document::{Signed, TrustedKeys, Verified};
use crate::envelope::{MAX_ENVELOPE_BYTES, TrustedAuthority, VerifiedBundle};
use crate::grant::ScopeStatement;
use crate::json::{self, Limits};
use crate::key::{PublicKey, Signature};
use crate::notes::DisclosureNotes;
use crate::opaque::opaque_debug;
use crate::refusal::{Code, Refusal};
use crate::time::UnixTime;
use crate::trust::{BUNDLE, DECISION, NOTES, TrustFile};

/// The media type of a delivery as JSON.
pub const MEDIA_TYPE: &str = "application/vnd.context-layer.delivery+json";

/// The longest delivery as JSON: three documents of their own limits, in base64url.
pub const MAX_DELIVERY_BYTES: usize = 6 * MAX_ENVELOPE_BYTES;

const ENVELOPE: &str = "envelope";
const SCOPE: [&str; 2] = ["scope_statement", "scope_signature"];
const NOTE: [&str; 2] = ["notes", "notes_signature"];

/// The bytes of one delivery. Nothing in it has been checked.
#[derive(Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The envelope: canonical JSON of bundle and authentication.
    pub envelope: Vec<u8>,
    /// The scope statement.
    pub scope: Signed,
    /// The disclosure notes.
    pub notes: Signed,
}

opaque_debug!(Delivery);

impl Delivery {
    /// Reads the JSON form.
    ///
    /// # Errors
    ///
    /// [`Code::InvalidDelivery`] if it departs from its form; the codes of strict JSON.
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        let value = json::parse(bytes, Limits::network(MAX_DELIVERY_BYTES))?;
        let members = value.as_object().filter(|members| members.len() == 5);
        let members = members.ok_or(Code::InvalidDelivery)?;
        Ok(Self {
            envelope: decode(members, ENVELOPE)?,
            scope: signed(members, SCOPE)?,
            notes: signed(members, NOTE)?,
        })
    }

    /// The canonical JSON form.
    pub fn to_text(&self) -> String {
        let members = [
            (ENVELOPE, BASE64URL_NOPAD.encode(&self.envelope)),
            (SCOPE[0], BASE64URL_NOPAD.encode(&self.scope.document)),
            (SCOPE[1], self.scope.signature.to_base64url()),
            (NOTE[0], BASE64URL_NOPAD.encode(&self.notes.document)),
            (NOTE[1], self.notes.signature.to_base64url()),
        ];
        let members = members.map(|(name, text)| (name.to_owned(), Value::from(text)));
        canonical::to_text(&Value::Object(Map::from_iter(members)))
    }

    /// Verifies the three documents and that they belong together: an issuer that signs more than
    /// was granted is found out here.
    ///
    /// Whether the bundle is current, for whom it is, revoked or consumed, is for
    /// [`crate::session::Opening`].
    ///
    /// # Errors
    ///
    /// Those of [`VerifiedBundle::open`], of [`Verified::open`] for either document,
    /// [`Code::BundleOutsideGrant`], [`Code::NotesMismatch`].
    pub fn verify(&self, trust: &Trust) -> Result<VerifiedDelivery, Refusal> {
        let bundle = trust.open(&self.envelope)?;
        let scope = Verified::<ScopeStatement>::open(&self.scope, &trust.decisions)?;
        scope.check_bundle(&bundle)?;
        let notes = Verified::<DisclosureNotes>::open(&self.notes, &trust.notes)?;
        notes.check_bundle(&bundle)?;
        Ok(VerifiedDelivery {
            delivery: self.clone(),
            bundle,
            scope,
            notes,
        })
    }
}

fn decode(members: &Map<String, Value>, name: &str) -> Result<Vec<u8>, Code> {
    let text = members.get(name).and_then(Value::as_str);
    text.and_then(|text| BASE64URL_NOPAD.decode(text.as_bytes()).ok())
        .ok_or(Code::InvalidDelivery)
}

fn signed(members: &Map<String, Value>, [document, signature]: [&str; 2]) -> Result<Signed, Code> {
    let signature = members.get(signature).and_then(Value::as_str);
    Ok(Signed {
        document: decode(members, document)?,
        signature: signature
            .and_then(Signature::from_base64url)
            .ok_or(Code::InvalidDelivery)?,
    })
}

/// Whose signatures a recipient believes, at one time.
#[derive(Debug)]
pub struct Trust {
    bundles: Vec<TrustedAuthority>,
    decisions: TrustedKeys,
    notes: TrustedKeys,
}

impl Trust {
    /// Believes bundles, scope statements and notes that these keys sign.
    pub fn new(
        bundles: impl IntoIterator<Item = PublicKey>,
        decisions: TrustedKeys,
        notes: TrustedKeys,
    ) -> Self {
        Self {
            bundles: bundles.into_iter().map(TrustedAuthority::new).collect(),
            decisions,
            notes,
        }
    }

    /// The keys of a trust file that count at `time`.
    pub fn of(file: &TrustFile, time: UnixTime) -> Self {
        Self::new(
            file.public_keys(BUNDLE, time),
            file.keys(DECISION, time),
            file.keys(NOTES, time),
        )
    }

    /// Opens an envelope with the key that it names.
    fn open(&self, envelope: &[u8]) -> Result<VerifiedBundle, Refusal> {
        let mut refused = Refusal::from(Code::UntrustedBundleAuthority);
        for authority in &self.bundles {
            match VerifiedBundle::open(envelope, authority) {
                Err(refusal) if refusal.code() == Code::UntrustedBundleAuthority => {
                    refused = refusal;
                }
                opened => return opened,
            }
        }
        Err(refused)
    }
}

/// A delivery whose documents are authentic and belong together. Only [`Delivery::verify`] makes
/// one.
#[derive(Clone, Debug)]
pub struct VerifiedDelivery {
    delivery: Delivery,
    /// The bundle.
    pub bundle: VerifiedBundle,
    /// What bounds it.
    pub scope: Verified<ScopeStatement>,
    /// What is known about its items.
    pub notes: Verified<DisclosureNotes>,
}

impl VerifiedDelivery {
    /// Its bytes.
    pub const fn delivery(&self) -> &Delivery {
        &self.delivery
    }
}
