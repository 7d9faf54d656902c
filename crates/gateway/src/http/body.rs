//! A request's body, whole and bounded.

use axum::body::Body;
use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use http_body_util::{BodyExt, LengthLimitError, Limited};

use crate::error::{Binding, Error};
use crate::service::{Document, Submittable};

/// Reads the document that is a body.
pub(super) async fn document<T>(headers: &HeaderMap, body: Body) -> Result<Document<T>, Error>
where
    T: Submittable,
{
    let bytes = read(headers, body, T::MAX_BYTES).await?;
    Document::read(&bytes)
}

/// Reads a body up to the limit, and no further; one that says it is larger is not read at all.
async fn read(headers: &HeaderMap, body: Body, max_bytes: usize) -> Result<Bytes, Error> {
    let announced = headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let limit = u64::try_from(max_bytes).unwrap_or(u64::MAX);
    if announced.is_some_and(|length| length > limit) {
        return Err(Error::DocumentTooLarge);
    }
    match Limited::new(body, max_bytes).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Error::DocumentTooLarge),
        Err(_) => Err(Binding::BodyIncomplete.into()),
    }
}
