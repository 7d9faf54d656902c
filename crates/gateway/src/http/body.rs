//! A request's body, whole and bounded in size and time.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use cl_host::BoxError;
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use tokio::time::Sleep;
use tonic::{Code, Status};

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
        Err(error) => {
            let is_late = Status::from_error(error).code() == Code::DeadlineExceeded;
            Err(if is_late {
                Error::DeadlineExceeded
            } else {
                Binding::BodyIncomplete.into()
            })
        }
    }
}

/// A body that ends with an error if it takes too long: what a call holds meanwhile is others'.
pub(super) struct PromptBody {
    body: Body,
    end: Pin<Box<Sleep>>,
}

impl PromptBody {
    pub(super) fn new(body: Body, max_time: Duration) -> Self {
        Self {
            body,
            end: Box::pin(tokio::time::sleep(max_time)),
        }
    }
}

impl http_body::Body for PromptBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let late = || Some(Err(Error::DeadlineExceeded.to_status(None).into()));
        self.end.as_mut().poll(context).map(|()| late())
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
