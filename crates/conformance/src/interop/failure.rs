//! Why a check failed.

use super::process::AdapterFault;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Adapter(#[from] AdapterFault),
    #[error("refused with {found}, expected a result")]
    Refused { found: String },
    #[error("returned a result, expected the refusal {expected}")]
    NotRefused { expected: String },
    #[error("refused with {found}, expected {expected}")]
    OtherRefusal { expected: String, found: String },
    #[error("at {place:?}: expected {expected}, found {found}")]
    Differs {
        place: String,
        expected: String,
        found: String,
    },
    #[error("no usable value at {place:?}")]
    Absent { place: String },
    #[error("id or integrity is not that of the record")]
    RecordIntegrity,
    #[error("the signature of the {signed} does not verify")]
    Signature { signed: &'static str },
    #[error("hexadecimal key material cannot be used")]
    KeyMaterial,
    #[error("contains the forbidden text {fragment:?}")]
    ForbiddenFragment { fragment: String },
    #[error("{count} lines where {expected} are expected, each ended by a line feed")]
    LineCount { expected: usize, count: usize },
    #[error("line {line} is not canonical JSON")]
    LineNotCanonical { line: usize },
    #[error("the log path is not absolute")]
    RelativeLogPath,
}
