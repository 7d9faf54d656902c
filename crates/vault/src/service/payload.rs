//! Payloads that are too large for a batch, piece by piece.

use std::sync::Arc;

use cl_model::digest::Digest;
use cl_model::time::UnixTime;
use ring::digest::{Context, SHA256};

use super::Vault;
use crate::core::event::Payload;
use crate::error::Error;
use crate::store::{SubjectName, Upload, blocking};

/// The largest payload.
pub(crate) const MAX_PAYLOAD_BYTES: u64 = 256 * 1024 * 1024;

/// The largest piece, as it is sent and as it is stored.
pub(crate) const MAX_PIECE_BYTES: usize = 1024 * 1024;

/// How long an upload may take, and how long its payload then waits for an event that names it.
const UNNAMED_SECONDS: u64 = 60 * 60;

/// A payload that is coming in.
pub(crate) struct Incoming {
    name: SubjectName,
    announced: Payload,
    upload: Upload,
    hash: Context,
    byte_length: u64,
    buffer: Vec<u8>,
}

impl Vault {
    /// Begins an upload of an announced payload.
    pub(crate) async fn begin_payload(
        &self,
        name: SubjectName,
        announced: Payload,
    ) -> Result<Incoming, Error> {
        let drop_at = self.now().plus_seconds(UNNAMED_SECONDS);
        let (of, digest) = (name.clone(), announced.digest);
        let upload = self.change(&name, move |store| {
            let subject = store.open_subject(&of)?;
            // Refuses a subject that is closed.
            store.draft(&subject)?;
            Ok(store.begin_upload(&subject, digest, drop_at)?)
        });
        Ok(Incoming {
            upload: upload.await?,
            name,
            announced,
            hash: Context::new(&SHA256),
            byte_length: 0,
            buffer: Vec::new(),
        })
    }

    /// Takes the next bytes.
    pub(crate) async fn take_piece(
        &self,
        incoming: &mut Incoming,
        bytes: &[u8],
    ) -> Result<(), Error> {
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        incoming.byte_length = incoming.byte_length.saturating_add(length);
        if incoming.byte_length > incoming.announced.byte_length {
            return Err(Error::PayloadDigestMismatch);
        }
        incoming.hash.update(bytes);
        incoming.buffer.extend_from_slice(bytes);
        if incoming.buffer.len() >= MAX_PIECE_BYTES {
            self.store_piece(incoming).await?;
        }
        Ok(())
    }

    /// Ends an upload: it counts only if it is what was announced.
    pub(crate) async fn end_payload(&self, mut incoming: Incoming) -> Result<Digest, Error> {
        if !incoming.buffer.is_empty() {
            self.store_piece(&mut incoming).await?;
        }
        let mut digest = [0; 32];
        digest.copy_from_slice(incoming.hash.clone().finish().as_ref());
        let found = Payload {
            digest: Digest::from(digest),
            byte_length: incoming.byte_length,
        };
        if found != incoming.announced {
            return Err(Error::PayloadDigestMismatch);
        }
        let (name, upload) = (incoming.name.clone(), incoming.upload);
        let clock = Arc::clone(&self.clock);
        let finished = self.change(&incoming.name, move |store| {
            let subject = store.open_subject(&name)?;
            let mut draft = store.draft(&subject)?;
            // Read behind the draft: a sweep that came before it had this time, or an earlier one.
            let now = UnixTime::from_milliseconds(clock.now_unix_ms());
            let drop_at = now.plus_seconds(UNNAMED_SECONDS);
            if !draft.finish_upload(&upload, found, drop_at, now)? {
                return Err(Error::InProgress);
            }
            Ok(draft.commit()?)
        });
        finished.await?;
        Ok(found.digest)
    }

    async fn store_piece(&self, incoming: &mut Incoming) -> Result<(), Error> {
        let name = incoming.name.clone();
        let bytes = std::mem::take(&mut incoming.buffer);
        let mut upload = incoming.upload.clone();
        let stored = blocking(&self.store, move |store| {
            let subject = store.open_subject(&name)?;
            store.put_piece(&subject, &mut upload, &bytes)?;
            Ok(upload)
        });
        incoming.upload = stored.await?;
        Ok(())
    }
}
