//! Refusals: a stable machine code, where in the input, and nothing of the input itself.

use std::error::Error;
use std::fmt;

/// Why an input, or a use of an otherwise valid object, was refused.
///
/// The message names a [`Code`] and, where one is known, a place. Neither ever repeats a value or
/// an unknown member name of the input (spec 10.4, 11.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    code: Code,
    place: Option<Place>,
}

impl Refusal {
    /// A refusal that is not about one place in the input.
    pub const fn new(code: Code) -> Self {
        Self { code, place: None }
    }

    /// A refusal of the member or element at `place`.
    pub const fn at(code: Code, place: Place) -> Self {
        Self {
            code,
            place: Some(place),
        }
    }

    /// A refusal of the top-level member `name`.
    pub(crate) fn at_member(code: Code, name: &'static str) -> Self {
        Self::at(code, Place::root().under_member(name))
    }

    /// The stable code.
    pub const fn code(&self) -> Code {
        self.code
    }

    /// The place in the input, if the refusal is about one.
    pub const fn place(&self) -> Option<&Place> {
        self.place.as_ref()
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.code.as_str(), self.code.meaning())?;
        match &self.place {
            Some(place) => write!(formatter, " (at {place})"),
            None => Ok(()),
        }
    }
}

impl Error for Refusal {}

impl From<Code> for Refusal {
    fn from(code: Code) -> Self {
        Self::new(code)
    }
}

/// A place in a JSON document, written as a JSON Pointer (RFC 6901).
///
/// Only member names that the schema itself defines, and array indices, are ever part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place(Vec<Step>);

/// One step of a [`Place`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Into the member with this name.
    Member(&'static str),
    /// Into the array element at this index.
    Index(usize),
}

impl Place {
    /// The whole document.
    pub const fn root() -> Self {
        Self(Vec::new())
    }

    /// Whether this is the top-level member `name`.
    pub fn is_member(&self, name: &str) -> bool {
        matches!(self.0.as_slice(), [Step::Member(member)] if *member == name)
    }

    /// The steps from the root to the place.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// Prepends the member that holds the place so far.
    pub(crate) fn under_member(mut self, name: &'static str) -> Self {
        self.0.insert(0, Step::Member(name));
        self
    }

    /// Prepends the array index that holds the place so far.
    pub(crate) fn under_index(mut self, index: usize) -> Self {
        self.0.insert(0, Step::Index(index));
        self
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return formatter.write_str("the document itself");
        }
        for step in &self.0 {
            match step {
                Step::Member(name) => write!(formatter, "/{name}")?,
                Step::Index(index) => write!(formatter, "/{index}")?,
            }
        }
        Ok(())
    }
}

macro_rules! codes {
    ($($(#[$group:meta])* $variant:ident = $text:literal, $meaning:literal;)*) => {
        /// The stable codes of this library. A code never changes its meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[$group])* #[doc = $meaning] $variant,)*
        }

        impl Code {
            /// Every code, in the order of this file.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The code as it goes over the wire: UPPER_SNAKE.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// One fixed sentence for people; it never depends on the input.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }
        }
    };
}

codes! {
    // Strict JSON (RFC 8259, RFC 8785).
    InvalidJson = "INVALID_JSON", "the text is not one JSON value in UTF-8";
    DuplicateMember = "DUPLICATE_MEMBER", "a member name occurs twice in one object";
    LoneSurrogate = "LONE_SURROGATE", "a string escapes half of a surrogate pair";
    JsonTooDeep = "JSON_TOO_DEEP", "containers are nested deeper than the limit";
    JsonTooLarge = "JSON_TOO_LARGE", "the text is longer than the limit";
    NonJsonValue = "NON_JSON_VALUE", "a value is missing or not a finite number";
    IntegerOutOfRange = "INTEGER_OUT_OF_RANGE", "an integer is beyond 2^53-1 in magnitude";

    // Records and their parts.
    InvalidObject = "INVALID_OBJECT", "an object is required here";
    InvalidString = "INVALID_STRING", "a non-empty string is required here";
    InvalidStringList = "INVALID_STRING_LIST", "an array of distinct non-empty strings is required here";
    InvalidPositiveInteger = "INVALID_POSITIVE_INTEGER", "a positive integer within its limit is required here";
    InvalidDateTime = "INVALID_DATE_TIME", "an RFC 3339 date and time is required here";
    InvalidDigest = "INVALID_DIGEST", "a lowercase SHA-256 digest is required here";
    InvalidClock = "INVALID_CLOCK", "the clock did not give an RFC 3339 date and time";
    InvalidIdPrefix = "INVALID_ID_PREFIX", "a non-empty id prefix is required";
    RecordAlreadyFinalized = "RECORD_ALREADY_FINALIZED", "the record already has an id or integrity member";
    InvalidRecordIntegrity = "INVALID_RECORD_INTEGRITY", "the integrity member is missing or not understood";
    RecordIntegrityMismatch = "RECORD_INTEGRITY_MISMATCH", "id or digest do not match the record's contents";

    // Requests and policies.
    InvalidRequest = "INVALID_REQUEST", "the request does not fit its closed schema";
    InvalidSelectors = "INVALID_SELECTORS", "selectors must be an array of at most 64 distinct selectors";
    RequestFromFuture = "REQUEST_FROM_FUTURE", "the request says that it was created later than now";
    RequestTooOld = "REQUEST_TOO_OLD", "the request was created so long ago that an earlier use may be forgotten";
    UnsupportedSelectorField = "UNSUPPORTED_SELECTOR_FIELD", "a selector may only name a predicate";
    InvalidRequestTask = "INVALID_REQUEST_TASK", "the task must have exactly a kind and user_visible";
    InvalidReceiptRequirement = "INVALID_RECEIPT_REQUIREMENT", "receipt level and required flag do not agree";
    InvalidPolicy = "INVALID_POLICY", "the policy document is malformed";
    InvalidPolicyPurposeCode = "INVALID_POLICY_PURPOSE_CODE", "the policy allows an invalid purpose code";
    RecipientKeyUnsupported = "RECIPIENT_KEY_UNSUPPORTED", "bundles cannot be sealed to recipient keys yet, so none may be registered";
    AmbiguousPolicyScope = "AMBIGUOUS_POLICY_SCOPE", "the policy lists scope both as ordinary and as gated";
    UnsupportedTransform = "UNSUPPORTED_TRANSFORM", "a transform is outside the grammar or over the limit of 64";
    InvalidPolicyDecision = "INVALID_POLICY_DECISION", "the decision does not fit its closed schema";
    DecisionRequestMismatch = "DECISION_REQUEST_MISMATCH", "the decision is not bound to this request";
    DecisionPolicyMismatch = "DECISION_POLICY_MISMATCH", "the decision is not bound to this policy";

    // Issuing a bundle.
    InvalidClaims = "INVALID_CLAIMS", "claims must be an array";
    DecisionDoesNotAuthorizeBundle = "DECISION_DOES_NOT_AUTHORIZE_BUNDLE", "the decision does not allow a bundle";
    InvalidDecisionRetention = "INVALID_DECISION_RETENTION", "the decision allows no retention time";
    BundleAuthorizationExpired = "BUNDLE_AUTHORIZATION_EXPIRED", "request or decision have expired";
    ReceiptStoreUnavailable = "RECEIPT_STORE_UNAVAILABLE", "a receipt is required and no store is configured";
    ReceiptPreflightFailed = "RECEIPT_PREFLIGHT_FAILED", "a receipt is required and its store is not available";
    ClaimProvenanceRequired = "CLAIM_PROVENANCE_REQUIRED", "a claim has no provenance";
    TooManyProvenanceHandles = "TOO_MANY_PROVENANCE_HANDLES", "a claim has more than 32 provenance handles";
    InvalidClaimConfidence = "INVALID_CLAIM_CONFIDENCE", "confidence must be a number from 0 to 1";
    InvalidClaimText = "INVALID_CLAIM_TEXT", "claim text must have 1 to 2000 characters after transforms";
    TooManyClaims = "TOO_MANY_CLAIMS", "more than 64 claims would be disclosed";
    NoContextGranted = "NO_CONTEXT_GRANTED", "no granted claim is available";
    BundleReceiptPersistFailed = "BUNDLE_RECEIPT_PERSIST_FAILED", "the issue receipt could not be made durable";

    // Opening a bundle, in the order in which refusals are tried.
    BundleTooLarge = "BUNDLE_TOO_LARGE", "the serialised bundle is over 2097152 bytes";
    InvalidBundleJson = "INVALID_BUNDLE_JSON", "the serialised bundle is not strict JSON";
    InvalidAuthenticatedBundle = "INVALID_AUTHENTICATED_BUNDLE", "the envelope is malformed";
    InvalidBundle = "INVALID_BUNDLE", "the bundle does not fit its closed schema";
    InvalidBundlePurposeCode = "INVALID_BUNDLE_PURPOSE_CODE", "the bundle's purpose code is not registered";
    InvalidBundlePurpose = "INVALID_BUNDLE_PURPOSE", "the bundle's purpose text is malformed";
    InvalidTask = "INVALID_TASK", "the bundle's task is malformed";
    InvalidBundleRestrictions = "INVALID_BUNDLE_RESTRICTIONS", "the bundle's restrictions break the vault boundary";
    BundleContainsForbiddenMaterial = "BUNDLE_CONTAINS_FORBIDDEN_MATERIAL", "the bundle carries raw vault material or a secret";
    InvalidBundleRecipient = "INVALID_BUNDLE_RECIPIENT", "the bundle names no recipient";
    BundleProvenanceInvalid = "BUNDLE_PROVENANCE_INVALID", "a context item has no resolvable provenance handle";
    InvalidBundleAuthentication = "INVALID_BUNDLE_AUTHENTICATION", "the authentication member is malformed";
    UntrustedBundleAuthority = "UNTRUSTED_BUNDLE_AUTHORITY", "the bundle names a key that is not trusted";
    BundleAuthenticationFailed = "BUNDLE_AUTHENTICATION_FAILED", "the bundle's signature does not verify";
    BundleExpired = "BUNDLE_EXPIRED", "the bundle is no longer valid";
    BundleRecipientMismatch = "BUNDLE_RECIPIENT_MISMATCH", "the bundle is addressed to another recipient";
    BundleRevoked = "BUNDLE_REVOKED", "the bundle has been revoked";
    RevocationCheckFailed = "REVOCATION_CHECK_FAILED", "revocation could not be checked";
    BundleReplay = "BUNDLE_REPLAY", "the single-use bundle was already consumed";
    BundleConsumeReceiptFailed = "BUNDLE_CONSUME_RECEIPT_FAILED", "the consume receipt could not be made durable";

    // Using an opened bundle.
    CapabilityNotGranted = "CAPABILITY_NOT_GRANTED", "the bundle does not grant this capability";
    CapabilityReceiptNotAuthorized = "CAPABILITY_RECEIPT_NOT_AUTHORIZED", "the receipt contract does not cover this capability";
    ActionFailed = "ACTION_FAILED", "the action failed; the failure is receipted";
    ActionFailureReceiptPersistFailed = "ACTION_FAILURE_RECEIPT_PERSIST_FAILED", "the action failed and its receipt could not be made durable";
    IndeterminateOutcome = "INDETERMINATE_OUTCOME", "the action may have taken effect but its evidence is incomplete";
    OutcomePending = "OUTCOME_PENDING", "an earlier action of this bundle is not settled yet";

    // Memory proposals.
    InvalidMemoryOperation = "INVALID_MEMORY_OPERATION", "the operation must be add, add_or_contradict or retract";
    ProposedClaimsRequired = "PROPOSED_CLAIMS_REQUIRED", "at least one proposed claim is required";
    UnknownProvenanceHandle = "UNKNOWN_PROVENANCE_HANDLE", "a provenance handle is not part of the bundle";
    InvalidMemoryProposal = "INVALID_MEMORY_PROPOSAL", "the proposal does not fit its closed schema or is not pending";
    MemoryProposalContainsForbiddenMaterial = "MEMORY_PROPOSAL_CONTAINS_FORBIDDEN_MATERIAL", "the proposal carries raw vault material or a secret";
    MemoryProposalApprovalRequired = "MEMORY_PROPOSAL_APPROVAL_REQUIRED", "the proposal must require the user's confirmation";
    MemoryProposalReceiptFailed = "MEMORY_PROPOSAL_RECEIPT_FAILED", "the proposal's receipt could not be made durable";

    // Receipts, the portable log and its anchor.
    InvalidReceipt = "INVALID_RECEIPT", "the receipt does not fit its closed schema";
    InvalidReceiptTimeRange = "INVALID_RECEIPT_TIME_RANGE", "the receipt completes before it starts";
    ReceiptPayloadForbidden = "RECEIPT_PAYLOAD_FORBIDDEN", "a receipt must declare that it holds no payload";
    ReceiptContainsForbiddenMaterial = "RECEIPT_CONTAINS_FORBIDDEN_MATERIAL", "the receipt carries raw vault material or a secret";
    ReceiptReplayConflict = "RECEIPT_REPLAY_CONFLICT", "this actor already consumed this bundle";
    ReceiptLogTruncated = "RECEIPT_LOG_TRUNCATED", "the log does not end at an entry boundary";
    ReceiptLogInvalidJson = "RECEIPT_LOG_INVALID_JSON", "a log line is not strict JSON";
    ReceiptLogInvalidEntry = "RECEIPT_LOG_INVALID_ENTRY", "a log line is not a canonical entry";
    ReceiptLogChainMismatch = "RECEIPT_LOG_CHAIN_MISMATCH", "order or digests of the log do not hold";
    ReceiptLogRollback = "RECEIPT_LOG_ROLLBACK", "the log has fewer entries than its anchor";
    ReceiptLogUnanchoredSuffix = "RECEIPT_LOG_UNANCHORED_SUFFIX", "the log has more entries than its anchor";
    ReceiptLogRewrite = "RECEIPT_LOG_REWRITE", "the log's bytes differ from those anchored";
    ReceiptAnchorRequired = "RECEIPT_ANCHOR_REQUIRED", "a receipt log needs an authenticated anchor";
    ReceiptAnchorMissing = "RECEIPT_ANCHOR_MISSING", "the log's anchor is missing";
    ReceiptAnchorEmpty = "RECEIPT_ANCHOR_EMPTY", "the anchor is empty";
    ReceiptAnchorTruncated = "RECEIPT_ANCHOR_TRUNCATED", "the anchor does not end at a record boundary";
    ReceiptAnchorInvalidJson = "RECEIPT_ANCHOR_INVALID_JSON", "an anchor line is not strict JSON";
    ReceiptAnchorInvalidRecord = "RECEIPT_ANCHOR_INVALID_RECORD", "an anchor line is not a canonical anchor record";
    ReceiptAnchorAuthenticationFailed = "RECEIPT_ANCHOR_AUTHENTICATION_FAILED", "an anchor signature does not verify";
    ReceiptAnchorInvalidGenesis = "RECEIPT_ANCHOR_INVALID_GENESIS", "the first anchor record is not a genesis record";
    ReceiptAnchorChainMismatch = "RECEIPT_ANCHOR_CHAIN_MISMATCH", "order or chain of the anchor do not hold";
    ReceiptAnchorMigrationRequired = "RECEIPT_ANCHOR_MIGRATION_REQUIRED", "the anchor has a retired format version";

    // Keys and signed documents.
    InvalidKeyId = "INVALID_KEY_ID", "a key id has 3 to 255 characters of the allowed set";
    InvalidKeyMaterial = "INVALID_KEY_MATERIAL", "key bytes have the wrong form or length";
    InvalidDocument = "INVALID_DOCUMENT", "the signed document is not canonical or does not fit its schema";
    DocumentSignatureInvalid = "DOCUMENT_SIGNATURE_INVALID", "the document's signature does not verify";
    UntrustedDocumentKey = "UNTRUSTED_DOCUMENT_KEY", "the document names a key that is not trusted";
    GrantNotYetValid = "GRANT_NOT_YET_VALID", "the grant is not valid yet";
    GrantExpired = "GRANT_EXPIRED", "the grant has expired";
    GrantAudienceMismatch = "GRANT_AUDIENCE_MISMATCH", "the grant is not for this service";
    GrantMismatch = "GRANT_MISMATCH", "the grant's documents do not belong together";
    BundleOutsideGrant = "BUNDLE_OUTSIDE_GRANT", "the bundle goes beyond what was granted";
    InvalidDelivery = "INVALID_DELIVERY", "the delivery departs from its form";
    InvalidVocabulary = "INVALID_VOCABULARY", "the list of predicates departs from its form";
    InvalidTrustFile = "INVALID_TRUST_FILE", "the file of trusted keys departs from its form";
    NotesMismatch = "NOTES_MISMATCH", "the disclosure notes belong to another bundle";

    // Other objects.
    InvalidSourceEvent = "INVALID_SOURCE_EVENT", "the source event does not fit its schema";
    InvalidContextClaim = "INVALID_CONTEXT_CLAIM", "the claim does not fit its schema";
    InvalidMinimumRevealResponse = "INVALID_MINIMUM_REVEAL_RESPONSE", "the discovery response does not fit its schema";
    InvalidErrorObject = "INVALID_ERROR_OBJECT", "the error object does not fit its schema";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn codes_are_distinct_upper_snake() {
        let texts: BTreeSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(texts.len(), Code::ALL.len());
        for text in texts {
            let bytes = text.as_bytes();
            assert!(
                bytes[0].is_ascii_uppercase() && !text.contains("__"),
                "{text}"
            );
            assert!(
                bytes.iter().all(|byte| byte.is_ascii_uppercase()
                    || byte.is_ascii_digit()
                    || *byte == b'_'),
                "{text}"
            );
        }
    }

    #[test]
    fn names_the_place_as_a_json_pointer() {
        let place = Place::root()
            .under_member("predicate")
            .under_index(3)
            .under_member("selectors");
        assert_eq!(
            Refusal::at(Code::InvalidRequest, place).to_string(),
            "INVALID_REQUEST: the request does not fit its closed schema (at /selectors/3/predicate)"
        );
    }
}
