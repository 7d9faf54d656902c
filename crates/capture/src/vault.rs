//! The vault, as capture calls it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cl_host::client::{PeerChannel, Retry, RetryBudget};
use cl_host::ids::Ids;
use cl_wire::vault::v1::capture_service_client::CaptureServiceClient;
use cl_wire::vault::v1::store_payload_request::Piece;
use cl_wire::vault::v1::{
    CaptureEventsRequest, CaptureOutcome, PayloadAnnouncement, StorePayloadRequest,
};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Request;

use crate::error::Error;

/// The most bytes of one piece of a payload (the contract's bound).
const MAX_PIECE_BYTES: usize = 1024 * 1024;

/// Time for one attempt.
const ATTEMPT_LIMIT: Duration = Duration::from_secs(60);

/// Time for a large payload.
const UPLOAD_LIMIT: Duration = Duration::from_secs(600);

/// How a call is repeated; the vault knows a repeat by its operation id.
const RETRY: Retry = Retry {
    max_attempts: 12,
    first_pause: Duration::from_millis(100),
    max_pause: Duration::from_secs(5),
};

/// Where the bytes of a large payload are.
#[derive(Clone, Debug)]
pub enum Payload {
    /// In memory.
    Memory(Arc<Vec<u8>>),
    /// In a file, from an offset.
    File {
        /// The file.
        path: PathBuf,
        /// Where it begins.
        start: u64,
        /// Its length.
        length: u64,
    },
}

/// Calls the vault's capture service.
#[derive(Clone, Debug)]
pub struct Vault {
    client: CaptureServiceClient<PeerChannel>,
    ids: Arc<dyn Ids>,
    budget: Arc<RetryBudget>,
    patience: Duration,
}

impl Vault {
    /// Calls over `channel`; a vault that is away longer than `patience` ends the run.
    pub fn new(channel: PeerChannel, ids: Arc<dyn Ids>, patience: Duration) -> Self {
        Self {
            client: CaptureServiceClient::new(channel),
            ids,
            budget: Arc::new(RetryBudget::new(200)),
            patience,
        }
    }

    /// Captures a batch. Repeats it under the same operation id while the vault is away.
    ///
    /// # Errors
    ///
    /// [`Error::VaultAway`], [`Error::Refused`].
    pub async fn capture(
        &self,
        request: &CaptureEventsRequest,
    ) -> Result<Vec<CaptureOutcome>, Error> {
        let deadline = Instant::now() + self.patience;
        let answer = RETRY.run(deadline, &self.budget, self.ids.as_ref(), |left| {
            let mut attempt = Request::new(request.clone());
            attempt.set_timeout(left.min(ATTEMPT_LIMIT));
            let mut client = self.client.clone();
            async move { client.capture_events(attempt).await }
        });
        Ok(answer.await?.into_inner().outcomes)
    }

    /// Stores a payload that is too large for a batch.
    ///
    /// # Errors
    ///
    /// [`Error::VaultAway`], [`Error::Refused`].
    pub async fn store(
        &self,
        announcement: &PayloadAnnouncement,
        payload: &Payload,
    ) -> Result<(), Error> {
        let deadline = Instant::now() + self.patience.max(UPLOAD_LIMIT);
        let stored = RETRY.run(deadline, &self.budget, self.ids.as_ref(), |left| {
            let mut attempt = Request::new(pieces(announcement.clone(), payload.clone()));
            attempt.set_timeout(left);
            let mut client = self.client.clone();
            async move { client.store_payload(attempt).await }
        });
        let stored = stored.await?.into_inner();
        if stored.digest == announcement.digest {
            Ok(())
        } else {
            Err(Error::Answer)
        }
    }
}

/// Announcement and pieces, read as they are sent.
fn pieces(
    announcement: PayloadAnnouncement,
    payload: Payload,
) -> ReceiverStream<StorePayloadRequest> {
    let (sender, receiver) = mpsc::channel(2);
    tokio::task::spawn_blocking(move || {
        let mut send = |piece| {
            sender
                .blocking_send(StorePayloadRequest { piece: Some(piece) })
                .is_ok()
        };
        if !send(Piece::Announcement(announcement)) {
            return;
        }
        // A payload that cannot be read again ends the stream early: the vault then refuses it.
        let _ended = match payload {
            Payload::Memory(bytes) => send_pieces(bytes.as_slice(), &mut send),
            Payload::File {
                path,
                start,
                length,
            } => send_file(&path, start, length, &mut send),
        };
    });
    ReceiverStream::new(receiver)
}

fn send_file(
    path: &std::path::Path,
    start: u64,
    length: u64,
    send: &mut dyn FnMut(Piece) -> bool,
) -> io::Result<()> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(start))?;
    send_pieces(file.take(length), send)
}

fn send_pieces(mut reader: impl Read, send: &mut dyn FnMut(Piece) -> bool) -> io::Result<()> {
    loop {
        let mut data = Vec::new();
        reader
            .by_ref()
            .take(MAX_PIECE_BYTES as u64)
            .read_to_end(&mut data)?;
        if data.is_empty() || !send(Piece::Data(data)) {
            return Ok(());
        }
    }
}
