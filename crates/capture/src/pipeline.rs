//! A run: messages are read ahead, and sent in batches, a few batches at a time.

use std::mem;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use cl_host::clock::Clock;
use cl_host::ids::Ids;
use cl_wire::vault::v1::capture_outcome::Result as Outcome;
use cl_wire::vault::v1::{CaptureEventsRequest, CaptureOutcome, CapturedItem, PayloadAnnouncement};
use prost::Message as _;
use tokio::task::JoinSet;
use tonic::Code;

use crate::error::Error;
use crate::job::Job;
use crate::reading::{self, Ahead, Held, Prepared, READ_AHEAD_BYTES};
use crate::report::{RefusedItem, Report};
use crate::source::{self, Seen};
use crate::vault::Vault;

/// The bounds of a batch (the contract's), with room for the request around the items.
const MAX_BATCH_ITEMS: usize = 64;
const MAX_BATCH_BYTES: usize = 3 * 1024 * 1024 - 64 * 1024;

/// Batches that are on their way at the same time.
const MAX_IN_FLIGHT: usize = 4;

/// What a run works with.
#[derive(Debug)]
pub struct Deps {
    /// Where items go.
    pub vault: Vault,
    /// Wall-clock time.
    pub clock: Arc<dyn Clock>,
    /// Operation ids.
    pub ids: Arc<dyn Ids>,
}

/// Captures everything under the job's path that was not `seen` before. `progress` hears of each
/// batch that is done.
///
/// # Errors
///
/// See [`Error`]. What was captured before stays captured.
pub async fn run(
    job: &Job,
    deps: &Deps,
    seen: &Arc<Mutex<Seen>>,
    progress: &mut dyn FnMut(&Report),
) -> Result<Report, Error> {
    let (ahead, mut receiver) = Ahead::new(READ_AHEAD_BYTES);
    let reader = {
        let (job, clock) = (job.clone(), Arc::clone(&deps.clock));
        let seen = Arc::clone(seen);
        tokio::task::spawn_blocking(move || {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            let mut take =
                |step| reading::prepare(step, &job, clock.as_ref(), &mut |it| ahead.put(it));
            let bound = job.max_message_bytes;
            source::walk(&job.path, job.adapter, bound, &mut seen, &mut take)
        })
    };
    let mut sending = Sending {
        job,
        deps,
        report: Report::default(),
        batch: Batch::default(),
        in_flight: JoinSet::new(),
    };
    while let Some(Held { prepared, room }) = receiver.recv().await {
        sending.add(prepared, progress).await?;
        drop(room);
    }
    reader
        .await
        .map_err(|_| Error::Reader)?
        .map_err(Error::Path)?;
    sending.finish(progress).await
}

#[derive(Default)]
struct Batch {
    items: Vec<CapturedItem>,
    places: Vec<(PathBuf, u64)>,
    bytes: usize,
}

type Answered = Result<(Vec<(PathBuf, u64)>, Vec<CaptureOutcome>), Error>;

struct Sending<'a> {
    job: &'a Job,
    deps: &'a Deps,
    report: Report,
    batch: Batch,
    in_flight: JoinSet<Answered>,
}

impl Sending<'_> {
    async fn add(
        &mut self,
        prepared: Prepared,
        progress: &mut dyn FnMut(&Report),
    ) -> Result<(), Error> {
        self.report.found += 1;
        let prepared = match prepared {
            Prepared::Item(prepared) => *prepared,
            Prepared::Refused(item) => {
                self.report.refuse(item);
                return Ok(());
            }
        };
        let length = prepared.item.encoded_len() + 16;
        let is_full = self.batch.items.len() == MAX_BATCH_ITEMS
            || self.batch.bytes + length > MAX_BATCH_BYTES;
        if is_full {
            self.send(progress).await?;
        }
        let is_uploaded = prepared.upload.is_some();
        if let Some((digest, byte_length, payload)) = prepared.upload {
            let announcement = PayloadAnnouncement {
                tenant: self.job.tenant.clone(),
                subject_ref: self.job.subject_ref.clone(),
                digest: digest.to_string(),
                byte_length,
            };
            match self.deps.vault.store(&announcement, &payload).await {
                Ok(()) => {}
                // Its file changed since it was read, or cannot be read again.
                Err(Error::Refused {
                    code: Code::InvalidArgument,
                    reason,
                }) => {
                    let (path, start) = prepared.place;
                    self.report.refuse(RefusedItem {
                        code: reason,
                        path,
                        start,
                    });
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        self.report.mark(&prepared.marks);
        self.report.read_bytes += prepared.read_bytes;
        self.batch.bytes += length;
        self.batch.items.push(prepared.item);
        self.batch.places.push(prepared.place);
        if is_uploaded {
            // The vault does not keep it for long without its event.
            self.send(progress).await?;
        }
        Ok(())
    }

    async fn send(&mut self, progress: &mut dyn FnMut(&Report)) -> Result<(), Error> {
        let batch = mem::take(&mut self.batch);
        if batch.items.is_empty() {
            return Ok(());
        }
        while self.in_flight.len() >= MAX_IN_FLIGHT {
            self.settle_one(progress).await?;
        }
        let request = CaptureEventsRequest {
            tenant: self.job.tenant.clone(),
            subject_ref: self.job.subject_ref.clone(),
            owner_addresses: self.job.owner_addresses.clone(),
            items: batch.items,
            operation_id: format!("urn:cl:operation:{}", self.deps.ids.uuid()?),
        };
        let vault = self.deps.vault.clone();
        self.in_flight.spawn(async move {
            let outcomes = vault.capture(&request).await?;
            Ok((batch.places, outcomes))
        });
        Ok(())
    }

    async fn settle_one(&mut self, progress: &mut dyn FnMut(&Report)) -> Result<(), Error> {
        let Some(joined) = self.in_flight.join_next().await else {
            return Ok(());
        };
        let (places, outcomes) = joined.map_err(|_| Error::Reader)??;
        if places.len() != outcomes.len() {
            return Err(Error::Answer);
        }
        for ((path, start), outcome) in places.into_iter().zip(outcomes) {
            match outcome.result.ok_or(Error::Answer)? {
                Outcome::Captured(event) => {
                    self.report.captured += 1;
                    self.report.claims += u64::from(event.claims);
                }
                Outcome::Duplicate(_) => self.report.duplicates += 1,
                Outcome::RefusedCode(code) => {
                    let is_code = cl_wire::status::is_reason(&code);
                    let code = if is_code { code } else { "UNKNOWN".to_owned() };
                    self.report.refuse(RefusedItem { code, path, start });
                }
            }
        }
        progress(&self.report);
        Ok(())
    }

    async fn finish(mut self, progress: &mut dyn FnMut(&Report)) -> Result<Report, Error> {
        self.send(progress).await?;
        while !self.in_flight.is_empty() {
            self.settle_one(progress).await?;
        }
        // Whatever the source came upon has an outcome, or the run was not complete.
        if self.report.found != self.report.total() {
            return Err(Error::Answer);
        }
        Ok(self.report)
    }
}
