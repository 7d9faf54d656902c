//! Taking items in (spec 8.1): each is checked, told from what is there, labelled, read for claims,
//! and stored with them; the whole batch is one change with one receipt.

use std::collections::BTreeSet;
use std::sync::Arc;

use cl_model::digest::Digest;
use cl_model::operation::OperationId;
use cl_model::part::Label;
use cl_model::scalar::Name;
use cl_model::time::UnixTime;
use cl_model::vocabulary::{Datatype, Vocabulary};
use serde_json::{Value, json};

use super::Vault;
use crate::core::claim::{Claim, Standing, Support};
use crate::core::content::{
    Candidate, Content, Extracted, Extractor, NOT_EXTRACTED, Source, extract, extract_calendar,
};
use crate::core::event::{ItemRefusal, Payload, ReadEvent};
use crate::core::evidence::{Evidence, Operation};
use crate::core::keys::Keys;
use crate::error::Error;
use crate::store::{
    ClaimKey, Draft, EventContent, OutboxEntry, Store, StoreError, StoredEvent, StoredOperation,
    SubjectName,
};

/// The most ways by which one item may have arrived.
const MAX_WAYS: usize = 256;

/// The mark of an event that a claim does not count among its sources, because it has too many.
const SOURCES_FULL: &str = "sources.full";

/// Items of one subject.
pub(crate) struct Batch {
    pub(crate) name: SubjectName,
    pub(crate) owner_addresses: Vec<String>,
    pub(crate) items: Vec<Result<Item, ItemRefusal>>,
    pub(crate) operation_id: OperationId,
    /// All that the caller sent, to tell a repeat from another batch.
    pub(crate) sent: Vec<u8>,
}

/// One item.
pub(crate) struct Item {
    pub(crate) event: ReadEvent,
    pub(crate) payload: ItemPayload,
    pub(crate) content: Option<Content>,
}

/// The raw payload of an item.
pub(crate) enum ItemPayload {
    Inline(Vec<u8>),
    Stored(Digest),
}

/// What became of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Captured(String, u32),
    Duplicate(String, u32),
    Refused(String),
}

/// What a batch is captured with.
struct Capture {
    batch: Batch,
    content: Digest,
    keys: Arc<Keys>,
    extractor: Arc<dyn Extractor>,
    vocabulary: Arc<Vocabulary>,
    own: String,
    started_at: UnixTime,
}

impl Vault {
    /// Captures a batch; answers with one outcome an item.
    pub(crate) async fn capture(&self, batch: Batch) -> Result<Vec<Outcome>, Error> {
        let content = self.keys.content(&batch.sent);
        let name = batch.name.clone();
        let operation_id = batch.operation_id.clone();
        if let Some(begun) = self.begun(&name.tenant, &operation_id, content).await? {
            return self.recorded_outcomes(&name, operation_id, begun).await;
        }
        self.preflight(&name.tenant, Operation::Capture).await?;
        let capture = Capture {
            batch,
            content,
            keys: Arc::clone(&self.keys),
            extractor: Arc::clone(&self.extractor),
            vocabulary: Arc::clone(&self.vocabulary),
            own: self.own.to_string(),
            started_at: self.now(),
        };
        // The commit point. A crash before it leaves nothing, a crash after it leaves an outbox
        // entry that the outbox settles.
        let captured = self.change(&name, move |store| capture.run(store));
        let outcomes = match captured.await {
            // The same call twice at once, and the other one was faster.
            Err(Error::InProgress) => {
                let begun = self.begun(&name.tenant, &operation_id, content).await?;
                let begun = begun.ok_or(Error::InProgress)?;
                return self.recorded_outcomes(&name, operation_id, begun).await;
            }
            result => result?,
        };
        self.outbox.settle(&name.tenant, &operation_id).await?;
        let count = |is: fn(&Outcome) -> bool| outcomes.iter().filter(|it| is(it)).count();
        self.count_items("captured", count(|it| matches!(it, Outcome::Captured(..))));
        self.count_items(
            "duplicate",
            count(|it| matches!(it, Outcome::Duplicate(..))),
        );
        self.count_items("refused", count(|it| matches!(it, Outcome::Refused(_))));
        Ok(outcomes)
    }

    async fn recorded_outcomes(
        &self,
        name: &SubjectName,
        operation_id: OperationId,
        begun: StoredOperation,
    ) -> Result<Vec<Outcome>, Error> {
        let name = name.clone();
        let recorded = crate::store::blocking(&self.store, move |store| {
            let subject = store.open_subject(&name)?;
            subject.open_result(&operation_id, &begun.result)
        });
        let recorded = recorded.await?;
        read_outcomes(&recorded).ok_or(Error::Store(StoreError::Corrupt))
    }
}

impl Capture {
    fn run(&self, store: &Store) -> Result<Vec<Outcome>, Error> {
        let subject = store.open_subject(&self.batch.name)?;
        let mut draft = store.draft(&subject)?;
        let mut outcomes = Vec::with_capacity(self.batch.items.len());
        for item in &self.batch.items {
            outcomes.push(match item {
                Ok(item) => self.take(&mut draft, item)?,
                Err(code) => Outcome::Refused((*code).to_owned()),
            });
        }
        let written = write_outcomes(&outcomes);
        let operation = StoredOperation {
            content: self.content,
            result: subject.seal_result(store, &self.batch.operation_id, &written)?,
        };
        draft.record(&operation, &self.entry(&outcomes, &written)?)?;
        draft.commit()?;
        Ok(outcomes)
    }

    fn take(&self, draft: &mut Draft<'_>, item: &Item) -> Result<Outcome, StoreError> {
        let refused = |code: ItemRefusal| Ok(Outcome::Refused(code.to_owned()));
        let payload = match &item.payload {
            ItemPayload::Inline(bytes) => Some(Payload::of(bytes)),
            ItemPayload::Stored(digest) => draft.stored_payload(*digest)?,
        };
        let Some(payload) = payload else {
            return refused("PAYLOAD_NOT_FOUND");
        };
        if let Err(code) = item.event.check(&self.batch.name.subject, payload) {
            return refused(code);
        }
        let key = item.event.item(payload.digest);
        if let Some(id) = draft.item(key)? {
            let known = draft.event(&id)?.ok_or(StoreError::Corrupt)?;
            return Ok(again(draft, known, &item.event));
        }
        match &item.payload {
            ItemPayload::Inline(bytes) => draft.put_inline(payload, bytes)?,
            ItemPayload::Stored(digest) => draft.name_payload(*digest)?,
        }
        let event = &item.event.event;
        draft.put_item(key, &event.id);
        let extracted = self.extract(item);
        let mut marks: BTreeSet<Name> = extracted.marks.into_iter().collect();
        let thread = match &item.content {
            Some(Content::Mail(mail)) => mail.thread(event),
            Some(Content::Calendar(_)) | None => item.event.item(payload.digest),
        };
        let mut claims: Vec<ClaimKey> = Vec::new();
        let mut words = Vec::new();
        for (candidate, datatype) in extracted.candidates {
            let support = Support {
                event: event.id.clone(),
                confidence: candidate.confidence,
                valid_from: candidate.valid_from,
                valid_until: candidate.valid_until,
                rule: candidate.rule.clone(),
                marks: candidate.marks.clone(),
                thread: candidate
                    .revision
                    .as_ref()
                    .map_or(thread, |revision| revision.series),
                revision: candidate.revision.clone(),
            };
            let (claim, is_counted) = self.claim(draft, &candidate, datatype, support)?;
            if !is_counted {
                marks.extend(Name::new(SOURCES_FULL));
            }
            if !claims.contains(&claim) {
                claims.push(claim);
                words.push(candidate.words);
            }
        }
        let count = u32::try_from(claims.len()).unwrap_or(u32::MAX);
        let place = draft.list_event(&event.id);
        draft.put_event(&StoredEvent {
            id: event.id.clone(),
            content: Some(EventContent {
                document: item.event.bytes.clone(),
                ways: Vec::new(),
                marks: marks.into_iter().collect(),
                claims,
                words,
                payload: payload.digest,
                label: item.event.label(),
                place,
            }),
        });
        Ok(Outcome::Captured(event.id.as_str().to_owned(), count))
    }

    fn extract(&self, item: &Item) -> Extracted {
        let mail = match &item.content {
            Some(Content::Mail(mail)) => mail.as_ref(),
            Some(Content::Calendar(calendar)) => {
                return extract_calendar(calendar, &self.vocabulary);
            }
            None => {
                return Extracted {
                    candidates: Vec::new(),
                    marks: Name::new(NOT_EXTRACTED).into_iter().collect(),
                };
            }
        };
        let source = Source {
            event: &item.event.event,
            mail,
            owner_addresses: &self.batch.owner_addresses,
        };
        extract(&*self.extractor, &self.vocabulary, &source)
    }

    /// Adds a source to a claim, which may be new. The label comes before anything finds it.
    fn claim(
        &self,
        draft: &mut Draft<'_>,
        candidate: &Candidate,
        datatype: Datatype,
        support: Support,
    ) -> Result<(ClaimKey, bool), StoreError> {
        let key = draft.claim_key(&candidate.predicate, &candidate.value);
        let added =
            draft.change_claim(&key, |claim| claim.add(&candidate.value, support.clone()))?;
        if let Some(is_counted) = added {
            return Ok((key, is_counted));
        }
        let published = self.vocabulary.find(&candidate.predicate);
        let claim = Claim {
            id: key.id.clone(),
            predicate: candidate.predicate.clone(),
            datatype,
            label: published.map_or(Label::Restricted, |published| published.label),
            derived_at: self.started_at,
            place: draft.list_claim(&key),
            standing: Standing::Held {
                value: candidate.value.clone(),
                supports: vec![support],
            },
        };
        draft.add_claim(key.clone(), claim);
        Ok((key, true))
    }

    fn entry(&self, outcomes: &[Outcome], written: &[u8]) -> Result<OutboxEntry, Error> {
        let SubjectName { tenant, subject } = &self.batch.name;
        let operation_id = &self.batch.operation_id;
        let count = |is: fn(&Outcome) -> bool| {
            let number = outcomes.iter().filter(|outcome| is(outcome)).count();
            number.to_string()
        };
        let evidence = Evidence {
            operation: Operation::Capture,
            operation_id,
            own: &self.own,
            subject: &self.keys.alias(tenant, subject, operation_id, &self.own),
            about: None,
            policy: None,
            input: self.content,
            output: self.keys.content(written),
            facts: vec![
                ("captured", count(|it| matches!(it, Outcome::Captured(..)))),
                (
                    "duplicates",
                    count(|it| matches!(it, Outcome::Duplicate(..))),
                ),
                ("refused", count(|it| matches!(it, Outcome::Refused(_)))),
            ],
            started_at: self.started_at,
            now: self.started_at,
        };
        Ok(OutboxEntry {
            tenant: tenant.clone(),
            operation_id: operation_id.clone(),
            subject_tag: Some(self.keys.tag(tenant, subject)),
            members: evidence.members().map_err(|_| Error::Internal)?,
        })
    }
}

/// An item that is there already: the ways by which it came now are added to those before.
fn again(draft: &mut Draft<'_>, known: StoredEvent, event: &ReadEvent) -> Outcome {
    let Some(mut content) = known.content else {
        return Outcome::Refused("EVENT_ERASED".to_owned());
    };
    let stated = ReadEvent::parse(content.document.clone());
    let mut there: BTreeSet<Vec<u8>> = stated
        .map(|event| event.ways().collect())
        .unwrap_or_default();
    there.extend(content.ways.iter().cloned());
    let new: Vec<_> = event.ways().filter(|way| !there.contains(way)).collect();
    if content.ways.len() + new.len() > MAX_WAYS {
        return Outcome::Refused("TOO_MANY_PROVENANCE_PATHS".to_owned());
    }
    let count = u32::try_from(content.claims.len()).unwrap_or(u32::MAX);
    let id = known.id.as_str().to_owned();
    if !new.is_empty() {
        content.ways.extend(new);
        draft.put_event(&StoredEvent {
            id: known.id,
            content: Some(content),
        });
    }
    Outcome::Duplicate(id, count)
}

fn write_outcomes(outcomes: &[Outcome]) -> Vec<u8> {
    let written: Vec<Value> = outcomes
        .iter()
        .map(|outcome| match outcome {
            Outcome::Captured(event, claims) => json!(["captured", event, claims]),
            Outcome::Duplicate(event, claims) => json!(["duplicate", event, claims]),
            Outcome::Refused(code) => json!(["refused", code, 0]),
        })
        .collect();
    Value::from(written).to_string().into_bytes()
}

fn read_outcomes(written: &[u8]) -> Option<Vec<Outcome>> {
    let written: Vec<(String, String, u32)> = serde_json::from_slice(written).ok()?;
    let read = written.into_iter().map(|(kind, text, claims)| {
        Some(match kind.as_str() {
            "captured" => Outcome::Captured(text, claims),
            "duplicate" => Outcome::Duplicate(text, claims),
            "refused" => Outcome::Refused(text),
            _ => return None,
        })
    });
    read.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_read_back() {
        let outcomes = vec![
            Outcome::Captured("urn:cl:event:a".to_owned(), 2),
            Outcome::Duplicate("urn:cl:event:b".to_owned(), 0),
            Outcome::Refused("INVALID_SOURCE_EVENT".to_owned()),
        ];
        assert_eq!(read_outcomes(&write_outcomes(&outcomes)), Some(outcomes));
        assert_eq!(read_outcomes(b"[[\"lost\",\"\",0]]"), None);
    }
}
