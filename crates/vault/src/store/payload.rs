//! Raw payloads, in sealed pieces.
//!
//! ```text
//! tenant  payload  public(slot) private(digest)          -> where its pieces are, and how many events name it
//! tenant  piece    public(slot) public(upload) number(n) -> a piece
//! ```
//!
//! Pieces lie under a random upload name until the whole is known to have its digest, so that an
//! upload that goes wrong never touches a payload that is there.

use cl_kv::{Changes, Key, Kind, Range};
use cl_model::digest::Digest;
use cl_model::operation::TenantName;
use cl_model::time::UnixTime;
use prost::Message;

use super::address::place_of;
use super::{Draft, Due, Slot, Store, StoreError, Subject, slot_key};
use crate::core::event::Payload;

pub(super) const PAYLOAD: Kind = Kind::new("payload");
pub(super) const PIECE: Kind = Kind::new("piece");

/// How many pieces are deleted at a time; reading one costs its size.
const PAGE: usize = 16;

/// The name of an upload.
const UPLOAD_BYTES: usize = 16;

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(super) struct PayloadRecord {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) upload: Vec<u8>,
    #[prost(uint64, tag = "2")]
    pub(super) byte_length: u64,
    #[prost(uint64, tag = "3")]
    pub(super) events: u64,
    /// Until when it stays without an event that names it.
    #[prost(int64, tag = "4")]
    drop_at_ms: i64,
}

/// An upload that is not finished.
#[derive(Clone)]
pub struct Upload {
    name: [u8; UPLOAD_BYTES],
    pieces: u64,
    drop_at: UnixTime,
}

impl Store {
    /// Begins an upload that is dropped at a time unless it is finished before.
    pub fn begin_upload(
        &self,
        subject: &Subject,
        digest: Digest,
        drop_at: UnixTime,
    ) -> Result<Upload, StoreError> {
        let mut name = [0; UPLOAD_BYTES];
        self.ids.fill(&mut name)?;
        let digest = subject.key.seal(&*self.ids, &name, digest.as_bytes())?;
        self.put_due(&Due::of_upload(subject, name.to_vec(), digest, drop_at))?;
        Ok(Upload {
            name,
            pieces: 0,
            drop_at,
        })
    }

    /// Stores the next piece of an upload. It is durable once the upload is finished.
    pub fn put_piece(
        &self,
        subject: &Subject,
        upload: &mut Upload,
        bytes: &[u8],
    ) -> Result<(), StoreError> {
        let (key, sealed) = self.piece(subject, &upload.name, upload.pieces, bytes)?;
        let piece = Changes::new().put(key, sealed);
        self.data
            .apply(&piece.durability(cl_kv::Durability::Relaxed))?;
        upload.pieces += 1;
        Ok(())
    }

    fn piece(
        &self,
        subject: &Subject,
        upload: &[u8],
        number: u64,
        bytes: &[u8],
    ) -> Result<(Key, Vec<u8>), StoreError> {
        let key = subject.key(PIECE)?.public(upload).number(number);
        let place = place_of(subject, PIECE.as_str(), &[upload], Some(number));
        Ok((key, subject.key.seal(&*self.ids, &place, bytes)?))
    }

    /// Drops the pieces of an upload.
    pub(super) fn drop_pieces(
        &self,
        tenant: &TenantName,
        slot: Slot,
        upload: &[u8],
    ) -> Result<(), StoreError> {
        self.wipe(slot_key(tenant, slot, PIECE)?.public(upload), PAGE)
    }

    /// Deletes everything behind a key.
    pub(super) fn wipe(&self, prefix: Key, page: usize) -> Result<(), StoreError> {
        loop {
            let found = self.data.scan(&Range::of(prefix.clone(), page))?;
            if found.is_empty() {
                return Ok(());
            }
            let deletes = found
                .into_iter()
                .fold(Changes::new(), |changes, entry| changes.delete(entry.key));
            self.data.apply(&deletes)?;
        }
    }
}

impl Draft<'_> {
    /// Ends an upload whose pieces have the digest: the payload is dropped at `drop_at` unless an
    /// event names it. If it was there already, it stays as long, and what was uploaded is dropped
    /// in its time. False if that time has come: pieces may be gone.
    pub fn finish_upload(
        &mut self,
        upload: &Upload,
        payload: Payload,
        drop_at: UnixTime,
        now: UnixTime,
    ) -> Result<bool, StoreError> {
        if upload.drop_at <= now {
            return Ok(false);
        }
        let mut record = self
            .payload(payload.digest)?
            .unwrap_or_else(|| PayloadRecord {
                upload: upload.name.to_vec(),
                byte_length: payload.byte_length,
                events: 0,
                drop_at_ms: 0,
            });
        if record.events == 0 {
            record.drop_at_ms = drop_at.milliseconds();
            self.put_payload(payload.digest, &record);
            self.put_due_upload(record.upload, payload.digest, drop_at)?;
        }
        Ok(true)
    }

    fn put_due_upload(
        &mut self,
        upload: Vec<u8>,
        digest: Digest,
        at: UnixTime,
    ) -> Result<(), StoreError> {
        let sealed = self.seal(&upload, digest.as_bytes())?;
        let due = Due::of_upload(self.subject(), upload, sealed, at);
        self.change(|changes| due.add_to(changes))
    }

    /// A payload that is there.
    pub fn stored_payload(&mut self, digest: Digest) -> Result<Option<Payload>, StoreError> {
        let record = self.payload(digest)?;
        Ok(record.map(|record| Payload {
            digest,
            byte_length: record.byte_length,
        }))
    }

    /// Lets one more event name a payload that is there.
    pub fn name_payload(&mut self, digest: Digest) -> Result<(), StoreError> {
        let mut record = self.payload(digest)?.ok_or(StoreError::Corrupt)?;
        record.events += 1;
        self.put_payload(digest, &record);
        Ok(())
    }

    /// Stores and names a payload of one piece.
    pub fn put_inline(&mut self, payload: Payload, bytes: &[u8]) -> Result<(), StoreError> {
        if self.payload(payload.digest)?.is_some() {
            return self.name_payload(payload.digest);
        }
        let mut upload = [0; UPLOAD_BYTES];
        self.store().ids.fill(&mut upload)?;
        let (key, sealed) = self.store().piece(self.subject(), &upload, 0, bytes)?;
        self.change(|changes| Ok(changes.put(key, sealed)))?;
        let record = PayloadRecord {
            upload: upload.to_vec(),
            byte_length: payload.byte_length,
            events: 1,
            drop_at_ms: 0,
        };
        self.put_payload(payload.digest, &record);
        Ok(())
    }

    /// Takes one event's name off a payload. Without any, it is gone with the change, and its
    /// pieces are dropped by the sweep that becomes due.
    pub fn unname_payload(&mut self, digest: Digest, now: UnixTime) -> Result<(), StoreError> {
        let Some(mut record) = self.payload(digest)? else {
            return Err(StoreError::Corrupt);
        };
        record.events = record.events.saturating_sub(1);
        if record.events > 0 {
            self.put_payload(digest, &record);
            return Ok(());
        }
        self.put_due_upload(record.upload, digest, now)?;
        self.delete_payload(digest);
        Ok(())
    }

    /// Drops what is due of an upload, unless an event names its payload or it is due later.
    pub(super) fn sweep_upload(
        &mut self,
        upload: &[u8],
        sealed: &[u8],
        due_at: UnixTime,
    ) -> Result<bool, StoreError> {
        let digest = self.subject().key.open(upload, sealed)?;
        let digest: [u8; 32] = digest
            .as_slice()
            .try_into()
            .map_err(|_| StoreError::Corrupt)?;
        let digest = Digest::from(digest);
        match self.payload(digest)? {
            Some(record) if record.upload == upload => {
                let is_dropped = record.events == 0 && record.drop_at_ms <= due_at.milliseconds();
                if is_dropped {
                    self.delete_payload(digest);
                }
                Ok(is_dropped)
            }
            Some(_) | None => Ok(true),
        }
    }
}
