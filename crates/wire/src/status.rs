//! The one form of an error on the wire: a canonical status with `google.rpc` details.
//!
//! Every error carries an `ErrorInfo` whose domain is [`DOMAIN`] and whose reason is a stable
//! code; some carry a `RetryInfo` or a `BadRequest` too. Texts are fixed when the program is
//! built, so that an error never repeats what a caller sent (spec 10.4).

use std::collections::HashMap;
use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use cl_model::document::InvalidBytes;
use cl_model::refusal::{Place, Step};

use crate::field_path::FieldPath;

pub use tonic_types::FieldViolation;

/// The domain of every reason of this system.
pub const DOMAIN: &str = "context-layer";

/// The reason that stands in for one that is not a code, see [`is_reason`].
pub const MALFORMED_REASON: &str = "MALFORMED_REASON";

/// The most violations that one status carries; later ones are left out, so that the details
/// always fit into a response's trailers.
pub const MAX_VIOLATIONS: usize = 16;

const MAX_REASON_LEN: usize = 63;

/// A status with a reason and a fixed text for people.
pub fn status(code: Code, reason: &str, message: &'static str) -> Status {
    StatusBuilder::new(code, reason, message).build()
}

/// A status that tells the caller to come back.
pub fn retryable(code: Code, reason: &str, message: &'static str, delay: Duration) -> Status {
    StatusBuilder::new(code, reason, message)
        .retry_delay(delay)
        .build()
}

/// Refuses a call for one malformed field; `rule` is the code of the violated rule.
pub fn invalid_field(reason: &str, field: impl Into<FieldPath>, rule: &str) -> Status {
    StatusBuilder::new(Code::InvalidArgument, reason, "the call is malformed")
        .violation(field, rule, "the field violates a rule")
        .build()
}

/// Refuses a call for the document in one field, and names the place in it.
pub fn invalid_document(field: &'static str, cause: &InvalidBytes) -> Status {
    match cause {
        InvalidBytes::TooLarge => invalid_field("DOCUMENT_TOO_LARGE", field, "TOO_LARGE"),
        InvalidBytes::NotCanonical => invalid_field("INVALID_FIELD", field, "NOT_CANONICAL"),
        InvalidBytes::Refused(refusal) => {
            let code = refusal.code().as_str();
            let steps = refusal.place().map(Place::steps).unwrap_or_default();
            let start = FieldPath::new(field);
            let path = steps.iter().fold(start, |path, step| match step {
                Step::Member(name) => path.field(name),
                Step::Index(index) => path.index(*index),
            });
            invalid_field(code, path, code)
        }
    }
}

/// The reason that a status gives: `None` if it is not one of ours, or not a code.
///
/// What a peer sent is not trusted: the text is a code by its form, but any code.
pub fn reason(status: &Status) -> Option<String> {
    let info = status.get_details_error_info()?;
    (info.domain == DOMAIN && is_reason(&info.reason)).then_some(info.reason)
}

/// How long a status asks to wait before the call is repeated.
pub fn retry_delay(status: &Status) -> Option<Duration> {
    status.get_details_retry_info()?.retry_delay
}

/// The violated fields that a status names. All text in it is the peer's.
pub fn violations(status: &Status) -> Vec<FieldViolation> {
    status
        .get_details_bad_request()
        .map(|bad_request| bad_request.field_violations)
        .unwrap_or_default()
}

/// Whether the text is a code: upper-case words of letters and digits, joined by `_`, that start
/// with a letter; 2 to 63 characters.
pub fn is_reason(text: &str) -> bool {
    (2..=MAX_REASON_LEN).contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_uppercase())
        && text.split('_').all(|word| {
            let mut bytes = word.bytes();
            !word.is_empty() && bytes.all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
        })
}

/// Builds a status with more details than a reason.
#[derive(Clone, Debug)]
#[must_use]
pub struct StatusBuilder {
    code: Code,
    message: &'static str,
    reason: String,
    retry_delay: Option<Duration>,
    violations: Vec<FieldViolation>,
}

impl StatusBuilder {
    /// A status with a reason and a fixed text for people. A reason that is not a code becomes
    /// [`MALFORMED_REASON`]: it may come from a peer, and free text must not pass.
    pub fn new(code: Code, reason: &str, message: &'static str) -> Self {
        Self {
            code,
            message,
            reason: checked(reason),
            retry_delay: None,
            violations: Vec::new(),
        }
    }

    /// Says that the call may be repeated after this time.
    pub fn retry_delay(mut self, delay: Duration) -> Self {
        self.retry_delay = Some(delay);
        self
    }

    /// Names a field that violates a rule, by a code and a fixed text for people.
    pub fn violation(
        mut self,
        field: impl Into<FieldPath>,
        reason: &str,
        description: &'static str,
    ) -> Self {
        if self.violations.len() < MAX_VIOLATIONS {
            let mut violation = FieldViolation::new(field.into().to_string(), description);
            violation.reason = checked(reason);
            self.violations.push(violation);
        }
        self
    }

    /// The status.
    pub fn build(self) -> Status {
        let mut details = ErrorDetails::with_error_info(self.reason, DOMAIN, HashMap::new());
        if self.retry_delay.is_some() {
            details.set_retry_info(self.retry_delay);
        }
        if !self.violations.is_empty() {
            details.set_bad_request(self.violations);
        }
        Status::with_error_details(self.code, self.message, details)
    }
}

impl From<StatusBuilder> for Status {
    fn from(builder: StatusBuilder) -> Self {
        builder.build()
    }
}

fn checked(reason: &str) -> String {
    let reason = if is_reason(reason) {
        reason
    } else {
        MALFORMED_REASON
    };
    reason.to_owned()
}

#[cfg(test)]
mod tests {
    use tonic::codegen::http::HeaderMap;

    use super::*;

    /// Through the trailers of an answer, as a caller gets it.
    fn sent(status: &Status) -> Status {
        let mut trailers = HeaderMap::new();
        status.add_header(&mut trailers).unwrap();
        Status::from_header_map(&trailers).unwrap()
    }

    fn foreign(details: ErrorDetails) -> Status {
        sent(&Status::with_error_details(
            Code::Aborted,
            "foreign",
            details,
        ))
    }

    #[test]
    fn reason_survives_the_wire() {
        let received = sent(&status(
            Code::NotFound,
            "REQUEST_NOT_FOUND",
            "no such request",
        ));

        assert_eq!(received.code(), Code::NotFound);
        assert_eq!(received.message(), "no such request");
        assert_eq!(reason(&received).as_deref(), Some("REQUEST_NOT_FOUND"));
        assert_eq!(retry_delay(&received), None);
        assert!(violations(&received).is_empty());
    }

    #[test]
    fn all_details_survive_the_wire() {
        let selector = FieldPath::new("selectors").index(3).field("predicate");
        let built =
            StatusBuilder::new(Code::InvalidArgument, "INVALID_FIELD", "a field is invalid")
                .retry_delay(Duration::from_millis(1500))
                .violation("tenant", "TOO_LONG", "longer than 63 characters")
                .violation(selector, "NOT_A_NAME", "not a name")
                .build();
        let received = sent(&built);

        assert_eq!(received.code(), Code::InvalidArgument);
        assert_eq!(reason(&received).as_deref(), Some("INVALID_FIELD"));
        assert_eq!(retry_delay(&received), Some(Duration::from_millis(1500)));
        let read: Vec<_> = violations(&received)
            .into_iter()
            .map(|violation| (violation.field, violation.reason, violation.description))
            .collect();
        let expected = [
            ("tenant", "TOO_LONG", "longer than 63 characters"),
            ("selectors[3].predicate", "NOT_A_NAME", "not a name"),
        ];
        let expected = expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned()));
        assert_eq!(read, expected);
    }

    #[test]
    fn domain_is_written_for_foreign_readers() {
        let received = sent(&status(Code::Internal, "INTERNAL", "internal error"));
        let info = received.get_details_error_info().unwrap();
        assert_eq!(info.domain, "context-layer");
        assert!(info.metadata.is_empty());
    }

    #[test]
    fn free_text_as_a_reason_is_not_echoed() {
        let input = "vault://subjects/alice";
        let received = sent(
            &StatusBuilder::new(Code::InvalidArgument, input, "a field is invalid")
                .violation("tenant", input, "invalid")
                .build(),
        );

        assert_eq!(reason(&received).as_deref(), Some(MALFORMED_REASON));
        assert_eq!(violations(&received)[0].reason, MALFORMED_REASON);
        let bytes = received.details();
        assert!(!bytes.windows(5).any(|window| window == b"alice"));
        assert!(!format!("{received:?}").contains("alice"));
    }

    #[test]
    fn violations_are_bounded() {
        let mut builder = StatusBuilder::new(Code::InvalidArgument, "INVALID_FIELD", "invalid");
        for index in 0..1000 {
            let path = FieldPath::new("selectors").index(index);
            builder = builder.violation(path, "NOT_A_NAME", "not a name");
        }
        let received = sent(&builder.build());

        assert_eq!(violations(&received).len(), MAX_VIOLATIONS);
        assert!(received.details().len() < 4096);
    }

    #[test]
    fn status_without_details_has_no_reason() {
        assert_eq!(
            reason(&Status::unavailable("RECEIPT_STORE_UNAVAILABLE")),
            None
        );
    }

    #[test]
    fn reason_of_another_domain_is_not_ours() {
        let details = ErrorDetails::with_error_info("RATE_LIMITED", "example.com", HashMap::new());
        assert_eq!(reason(&foreign(details)), None);
    }

    #[test]
    fn reason_that_is_no_code_is_not_read() {
        let details = ErrorDetails::with_error_info("<b>hello</b>", DOMAIN, HashMap::new());
        assert_eq!(reason(&foreign(details)), None);
    }

    #[test]
    fn broken_details_have_no_reason() {
        let broken = Status::with_details(Code::Internal, "broken", vec![0xff; 7].into());
        let received = sent(&broken);
        assert_eq!(reason(&received), None);
        assert_eq!(retry_delay(&received), None);
        assert!(violations(&received).is_empty());
    }

    #[test]
    fn codes_are_told_from_text() {
        let longest = "A".repeat(63);
        for code in ["OK", "INVALID_RECEIPT", "X5T_256", &longest] {
            assert!(is_reason(code), "{code}");
        }
        let too_long = "A".repeat(64);
        for text in [
            "", "A", "_A", "A_", "A__B", "1A", "Aa", "A-B", "A B", "A\n", "\u{c4}A", &too_long,
        ] {
            assert!(!is_reason(text), "{text:?}");
        }
    }
}
