//! What a refusal says to a machine.

use tonic::{Code, Status};

/// The code and the reason of a refusal.
pub fn refusal<T>(result: Result<T, Status>) -> (Code, String) {
    let Err(status) = result else {
        panic!("not refused");
    };
    let reason = cl_wire::status::reason(&status).unwrap_or_default();
    (status.code(), reason)
}

/// What [`refusal`] should give.
pub fn refused(code: Code, reason: &str) -> (Code, String) {
    (code, reason.to_owned())
}
