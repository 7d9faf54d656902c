//! What an adapter preserves of its source, on events and claims alike (spec 7.1, 12).

use crate::digest::Digest;
use crate::json::read::{Nullable, choice, object};
use crate::list::{Dictionary, List, UniqueList};
use crate::part::{Label, Trust};
use crate::scalar::{AnyJson, Name, Namespace, Reference, Text};
use crate::time::Timestamp;

choice! {
    /// What came of checking a native signature.
    pub enum SignatureVerification {
        /// It verifies.
        Verified = "verified",
        /// It does not.
        Failed = "failed",
        /// Nobody checked.
        Unverified = "unverified",
        /// Its scheme is not understood.
        Unsupported = "unsupported",
    }
}

object! {
    /// A signature of the source's own protocol, such as DKIM.
    pub struct NativeSignature {
        /// The scheme.
        scheme: Name,
        /// What came of checking it.
        verification: SignatureVerification,
        /// Who signed.
        signer: Option<Reference>,
        /// The digest of the signature's own bytes.
        value_digest: Option<Digest>,
        /// When it was checked.
        checked_at: Option<Timestamp>,
    }
}

object! {
    /// The source withdrew this item.
    pub struct DeletionMarker {
        /// When, if the source says so.
        deleted_at: Nullable<Timestamp>,
        /// Why or how.
        reason: Name,
    }
}

object! {
    /// Who could see the item at its source, and under which authority it was read.
    pub struct AuthorizationContext {
        /// Its visibility, in the source's terms.
        visibility: Name,
        /// The scopes of the authority, up to 64.
        scopes: UniqueList<Text<1, 240>, 0, 64>,
        /// Who granted it.
        granted_by: Option<Reference>,
    }
}

object! {
    /// The adapter that read the item (spec 12).
    pub struct AdapterInfo {
        /// Its name.
        name: Name,
        /// Its version, 1 to 120 characters.
        version: Text<1, 120>,
        /// The native protocol and its version, 1 to 120 characters.
        protocol: Option<Text<1, 120>>,
        /// What it could not preserve.
        lossy_fields: Option<UniqueList<Name, 0, 64>>,
    }
}

object! {
    /// A time as the source wrote it (spec 6.1).
    pub struct OriginalTime {
        /// The text, 1 to 120 characters.
        text: Text<1, 120>,
        /// The zone, 1 to 64 characters; null if the source does not say.
        zone: Nullable<Text<1, 64>>,
    }
}

object! {
    /// The optional evidence members of events and claims.
    pub struct Evidence {
        /// The source's own signatures, 1 to 16.
        signatures: Option<List<NativeSignature, 1, 16>>,
        /// Present if the source withdrew the item.
        deletion: Option<DeletionMarker>,
        /// Who could see it at the source.
        authorization: Option<AuthorizationContext>,
        /// The adapter that read it.
        adapter: Option<AdapterInfo>,
        /// Its time in the source's own words.
        original_time: Option<OriginalTime>,
        /// How far the source is believed.
        trust: Option<Trust>,
        /// How private it is; absent counts as `restricted`.
        label: Option<Label>,
        /// What adapters add, by namespace.
        adapter_data: Option<Dictionary<Namespace, AdapterObject, 0, 32>>,
    }
}

/// Free members of one adapter.
pub type AdapterObject = Dictionary<String, AnyJson, 0, { usize::MAX }>;
