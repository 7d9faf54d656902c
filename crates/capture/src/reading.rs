//! The reading half of a run: messages become items, ahead of the sending by so many bytes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cl_host::clock::Clock;
use cl_model::digest::Digest;
use cl_model::time::UnixTime;
use cl_wire::vault::v1::captured_item::{Content, Payload as ItemPayload};
use cl_wire::vault::v1::{CalendarContent, CapturedItem};
use prost::Message as _;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::calendar;
use crate::event::{self, Origin, Run};
use crate::job::Job;
use crate::mail;
use crate::report::RefusedItem;
use crate::source::{CalendarFile, Found, Step};
use crate::vault::Payload;

/// A larger payload is stored apart.
const MAX_INLINE_BYTES: usize = 1024 * 1024;

/// The largest payload that the vault takes.
const MAX_PAYLOAD_BYTES: u64 = 268_435_456;

/// The code of an item that its reader broke on.
const READER_FAILED: &str = "READER_FAILED";

/// The most items that are read ahead.
const READ_AHEAD: usize = 16;

/// The most bytes of items that are read ahead; a larger item goes alone. Beside these, one message
/// is being read.
pub(crate) const READ_AHEAD_BYTES: u32 = 64 * 1024 * 1024;

/// An item that is ready to be sent, or was refused before.
pub(crate) enum Prepared {
    Item(Box<PreparedItem>),
    Refused(RefusedItem),
}

pub(crate) struct PreparedItem {
    pub(crate) item: CapturedItem,
    pub(crate) marks: Vec<String>,
    /// What is stored before the item is sent: digest, length, and where it is.
    pub(crate) upload: Option<(Digest, u64, Payload)>,
    pub(crate) place: (PathBuf, u64),
    /// How much of its file it is.
    pub(crate) read_bytes: u64,
}

impl Prepared {
    /// How much of it is in memory.
    fn byte_length(&self) -> usize {
        match self {
            Self::Refused(_) => 0,
            Self::Item(prepared) => {
                let upload = match &prepared.upload {
                    Some((_, _, Payload::Memory(bytes))) => bytes.len(),
                    Some((_, _, Payload::File { .. })) | None => 0,
                };
                prepared.item.encoded_len() + upload
            }
        }
    }
}

/// Where the reading thread puts what it has read.
pub(crate) struct Ahead {
    sender: mpsc::Sender<Held>,
    room: Arc<Semaphore>,
    max_bytes: u32,
    runtime: Handle,
}

/// What was read, with the room that it takes until it is let go.
pub(crate) struct Held {
    pub(crate) prepared: Prepared,
    pub(crate) room: OwnedSemaphorePermit,
}

impl Ahead {
    /// Lets `max_bytes` be on their way to the receiver and with it.
    pub(crate) fn new(max_bytes: u32) -> (Self, mpsc::Receiver<Held>) {
        let (sender, receiver) = mpsc::channel(READ_AHEAD);
        let ahead = Self {
            sender,
            room: Arc::new(Semaphore::new(max_bytes as usize)),
            max_bytes,
            runtime: Handle::current(),
        };
        (ahead, receiver)
    }

    /// Waits for room, and hands an item over; false if nobody takes any more.
    pub(crate) fn put(&self, prepared: Prepared) -> bool {
        let bytes = u32::try_from(prepared.byte_length()).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room).acquire_many_owned(bytes.min(self.max_bytes));
        let Ok(room) = self.runtime.block_on(room) else {
            return false;
        };
        let held = Held { prepared, room };
        self.sender.blocking_send(held).is_ok()
    }
}

/// Hands the items of what the source came upon to `put`, which says whether to go on.
pub(crate) fn prepare(
    step: Step,
    job: &Job,
    clock: &dyn Clock,
    put: &mut dyn FnMut(Prepared) -> bool,
) -> bool {
    match step {
        Step::Message(found) => {
            let place = (found.path.clone(), found.raw.start);
            put(guarded(&place.0, place.1, || message(*found, job, clock)))
        }
        Step::Calendar(file) => calendar(&file, job, clock, put),
        Step::CalendarTooLarge(path) => put(refused("CALENDAR_TOO_LARGE", path, 0)),
        Step::Unreadable(path) => put(refused("FILE_UNREADABLE", path, 0)),
    }
}

/// Reads an item; a defect of the reader costs the item, and not the run.
fn guarded(path: &Path, start: u64, read: impl FnOnce() -> Prepared) -> Prepared {
    // What is read is dropped whole with its reader.
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| refused(READER_FAILED, path.to_owned(), start))
}

fn refused(code: &str, path: PathBuf, start: u64) -> Prepared {
    Prepared::Refused(RefusedItem {
        code: code.to_owned(),
        path,
        start,
    })
}

fn run<'a>(job: &'a Job, clock: &dyn Clock) -> Run<'a> {
    Run {
        subject_ref: &job.subject_ref,
        captured_at: UnixTime::from_milliseconds(clock.now_unix_ms()),
    }
}

fn calendar(
    file: &CalendarFile,
    job: &Job,
    clock: &dyn Clock,
    put: &mut dyn FnMut(Prepared) -> bool,
) -> bool {
    let cuts = match catch_unwind(|| calendar::objects(&file.bytes)) {
        Ok(Ok(cuts)) => cuts,
        Ok(Err(refusal)) => return put(refused(refusal.code(), file.path.clone(), 0)),
        Err(_) => return put(refused(READER_FAILED, file.path.clone(), 0)),
    };
    cuts.into_iter().all(|cut| {
        let start = cut.start as u64;
        let read = || calendar_object(cut, file, job, clock);
        put(guarded(&file.path, start, read))
    })
}

fn calendar_object(
    cut: calendar::Cut,
    file: &CalendarFile,
    job: &Job,
    clock: &dyn Clock,
) -> Prepared {
    let place = (file.path.clone(), cut.start as u64);
    let reading = calendar::read(&cut.bytes, &[]);
    let digest = Digest::of_bytes(&cut.bytes);
    let origin = Origin {
        digest,
        byte_length: cut.bytes.len() as u64,
        path_digest: file.path_digest,
        deleted_as: None,
        flags: Vec::new(),
    };
    let document =
        event::calendar_document(&reading.facts, &reading.marks, &origin, run(job, clock));
    let event = match document {
        Ok(event) => event,
        Err(refusal) => return refused(refusal.code().as_str(), place.0, place.1),
    };
    let length = cut.bytes.len();
    let (payload, upload) = if length <= MAX_INLINE_BYTES {
        (ItemPayload::Inline(cut.bytes), None)
    } else {
        let upload = (digest, length as u64, Payload::Memory(Arc::new(cut.bytes)));
        (ItemPayload::StoredDigest(digest.to_string()), Some(upload))
    };
    Prepared::Item(Box::new(PreparedItem {
        item: CapturedItem {
            event,
            payload: Some(payload),
            content: Some(Content::Calendar(CalendarContent {
                meetings: reading.meetings,
                marks: reading.marks.clone(),
            })),
        },
        marks: reading.marks,
        upload,
        place,
        read_bytes: length as u64,
    }))
}

fn message(found: Found, job: &Job, clock: &dyn Clock) -> Prepared {
    let refused = |code: &str| refused(code, found.path.clone(), found.raw.start);
    if found.raw.length > MAX_PAYLOAD_BYTES {
        return refused("PAYLOAD_TOO_LARGE");
    }
    let mut extra_marks = found.marks.clone();
    if found.raw.cut.is_some() {
        extra_marks.push("message.too_large");
    }
    let Ok(mut reading) = mail::read(&found.raw.bytes, &extra_marks) else {
        return refused("NOT_A_MESSAGE");
    };
    if found.raw.cut.is_some() {
        // What follows the cut is not known, and what the cut goes through would be described wrongly.
        reading.facts.attachments.clear();
        reading.facts.attributions.clear();
        reading.facts.calendars.clear();
    }
    let digest = found
        .raw
        .cut
        .unwrap_or_else(|| Digest::of_bytes(&found.raw.bytes));
    let origin = Origin {
        digest,
        byte_length: found.raw.length,
        path_digest: found.path_digest,
        deleted_as: found.deleted_as,
        flags: found.flags.clone(),
    };
    let marks = reading.content.marks.clone();
    let event = match event::document(&reading.facts, &marks, &origin, run(job, clock)) {
        Ok(event) => event,
        Err(refusal) => return refused(refusal.code().as_str()),
    };
    let content = found
        .raw
        .cut
        .is_none()
        .then_some(Content::Mail(reading.content));
    let place = (found.path.clone(), found.raw.start);
    let read_bytes = found.raw.length;
    let (payload, upload) = payload(found, digest);
    Prepared::Item(Box::new(PreparedItem {
        item: CapturedItem {
            event,
            payload: Some(payload),
            content,
        },
        marks,
        upload,
        place,
        read_bytes,
    }))
}

/// Small payloads go with the item, others apart, from memory or once more from their file.
fn payload(mut found: Found, digest: Digest) -> (ItemPayload, Option<(Digest, u64, Payload)>) {
    let length = found.raw.length;
    if found.raw.cut.is_none() && found.raw.bytes.len() <= MAX_INLINE_BYTES {
        return (ItemPayload::Inline(found.raw.bytes), None);
    }
    let from = if found.raw.cut.is_some() && !found.is_restored {
        Payload::File {
            path: found.path,
            start: found.raw.start,
            length,
        }
    } else {
        found.raw.bytes.shrink_to_fit();
        Payload::Memory(Arc::new(found.raw.bytes))
    };
    (
        ItemPayload::StoredDigest(digest.to_string()),
        Some((digest, length, from)),
    )
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read};
    use std::path::Path;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use cl_host::clock::ManualClock;

    use super::*;
    use crate::source;

    const MESSAGES: usize = 40;
    const MESSAGE_BYTES: usize = 700_000;
    const MAX_BYTES: usize = 4 * MESSAGE_BYTES;

    /// An mbox that is made as it is read, and counts what was read of it.
    struct Counted {
        message: Vec<u8>,
        read: Arc<AtomicUsize>,
    }

    impl Read for Counted {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let at = self.read.load(Ordering::SeqCst);
            let left = MESSAGES * self.message.len() - at;
            let from = &self.message[at % self.message.len()..];
            let length = from.len().min(buffer.len()).min(left);
            buffer[..length].copy_from_slice(&from[..length]);
            self.read.fetch_add(length, Ordering::SeqCst);
            Ok(length)
        }
    }

    #[test]
    fn a_reader_that_breaks_costs_its_item_and_not_the_run() {
        let read = guarded(Path::new("a.eml"), 7, || panic!("a private word"));
        let Prepared::Refused(refused) = read else {
            panic!("read");
        };
        assert_eq!(refused.code, READER_FAILED);
        assert_eq!(
            (refused.path.as_path(), refused.start),
            (Path::new("a.eml"), 7)
        );
    }

    fn job() -> Job {
        Job {
            path: PathBuf::from("all.mbox"),
            adapter: source::Adapter::Mail,
            tenant: "acme".to_owned(),
            subject_ref: "vault://subjects/primary".to_owned(),
            owner_addresses: Vec::new(),
            max_message_bytes: 1 << 20,
        }
    }

    #[tokio::test]
    async fn no_more_is_held_than_there_is_room_for() {
        let mut message = b"From - Thu Oct 29 08:02:11 2026\nFrom: a@b.example\n\n".to_vec();
        message.resize(MESSAGE_BYTES - 2, b'x');
        message.extend_from_slice(b"\n\n");
        let read = Arc::new(AtomicUsize::new(0));
        let stream = Counted {
            message,
            read: Arc::clone(&read),
        };
        let (ahead, mut receiver) = Ahead::new(u32::try_from(MAX_BYTES).unwrap());
        let reader = tokio::task::spawn_blocking(move || {
            let (job, clock) = (job(), ManualClock::new(0));
            let mut take = |step| prepare(step, &job, &clock, &mut |it| ahead.put(it));
            source::mbox(
                BufReader::new(stream),
                Path::new("all.mbox"),
                job.max_message_bytes,
                &mut take,
            )
        });
        for taken in 0..MESSAGES {
            // The reader goes as far as it may.
            let reachable = (taken * MESSAGE_BYTES + MAX_BYTES).min(MESSAGES * MESSAGE_BYTES);
            while read.load(Ordering::SeqCst) < reachable {
                thread::yield_now();
            }
            (0..100).for_each(|_| thread::yield_now());
            let held = read.load(Ordering::SeqCst) - taken * MESSAGE_BYTES;
            // One message is being read, and the next one is begun to find its end.
            assert!(held <= MAX_BYTES + 2 * MESSAGE_BYTES, "{held} bytes");
            let held = receiver.recv().await.unwrap();
            assert!(matches!(held.prepared, Prepared::Item(_)));
        }
        assert!(receiver.recv().await.is_none() && reader.await.unwrap());
    }

    #[tokio::test]
    async fn an_item_beyond_the_room_goes_alone_and_a_reader_that_waits_for_it_is_let_go() {
        let (ahead, mut receiver) = Ahead::new(100);
        let reader = tokio::task::spawn_blocking(move || {
            let item = || {
                let text = format!("From: a@b.example\n\n{}", "x".repeat(1000));
                let found = Found {
                    raw: crate::mbox::RawMessage {
                        length: text.len() as u64,
                        bytes: text.into_bytes(),
                        start: 0,
                        cut: None,
                    },
                    path: PathBuf::from("a.eml"),
                    path_digest: Digest::ZERO,
                    marks: Vec::new(),
                    deleted_as: None,
                    flags: Vec::new(),
                    is_restored: false,
                };
                Step::Message(Box::new(found))
            };
            let put = |_| {
                prepare(item(), &job(), &ManualClock::new(0), &mut |it| {
                    ahead.put(it)
                })
            };
            (0..3).map(put).collect::<Vec<_>>()
        });
        let first = receiver.recv().await.unwrap();
        assert!(receiver.try_recv().is_err(), "there is room for one");
        drop(first);
        drop(receiver.recv().await.unwrap());
        drop(receiver);
        assert!(reader.await.unwrap().starts_with(&[true, true]));
    }
}
