//! A request's body, whole and bounded.

use axum::body::Body;
use bytes::Bytes;
use cl_model::document::MAX_DOCUMENT_BYTES;
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use http_body_util::{BodyExt, LengthLimitError, Limited};

use crate::error::{Binding, Error};

/// Reads a body up to the limit, and no further; one that says it is larger is not read at all.
pub(super) async fn read(headers: &HeaderMap, body: Body) -> Result<Bytes, Error> {
    let announced = headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let max_bytes = u64::try_from(MAX_DOCUMENT_BYTES).unwrap_or(u64::MAX);
    if announced.is_some_and(|length| length > max_bytes) {
        return Err(Error::DocumentTooLarge);
    }
    match Limited::new(body, MAX_DOCUMENT_BYTES).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Error::DocumentTooLarge),
        Err(_) => Err(Binding::BodyIncomplete.into()),
    }
}
