//! Erasing receipts: a tombstone takes the place of each, and what finds it goes.
//!
//! What stays beside the tombstone says nothing to whoever does not know the receipt: hashes under the
//! store's lookup key of its URN, of its operation and of what it consumed, so that nothing can be
//! done twice.

use cl_model::digest::Digest;
use prost::Message;
use serde_json::Value;

use super::holding::Act;
use super::{Ledger, Origin};
use crate::core::command::{Erased, ErasureOrder, Outcome};
use crate::core::records::{
    self, EntryRecord, NumberRecord, OperationKeyRecord, OperationRecord, SweptRecord,
};
use crate::core::retention::Retention;
use crate::core::routing::{OperationId, Routing, Tenant};
use crate::error::Error;
use crate::store::{Selector, Slot};

/// How many entries one batch looks at.
const MAX_LOOKED_AT: usize = 256;

/// How much older the stored settled time may be than the settled time.
const SETTLED_STEP_MS: u64 = 60 * 60 * 1000;

/// Who erases, and why.
struct Cause<'a> {
    actor: &'a str,
    reason: &'a str,
    summary: &'static str,
}

impl Ledger<'_> {
    /// Erases the next of a subject's receipts.
    pub(super) fn erase_subject(&mut self, order: &ErasureOrder) -> Result<Outcome, Error> {
        self.whole(|ledger| {
            let tenant = &order.tenant;
            let list = Selector::Subject(order.subject_tag.clone());
            let store = ledger.base.store;
            let places = store.places(tenant, &list, order.after, MAX_LOOKED_AT)?;
            let holds = ledger.holds(tenant)?;
            let mut done = Erased {
                next: places
                    .last()
                    .copied()
                    .filter(|_| places.len() == MAX_LOOKED_AT),
                ..Erased::default()
            };
            let mut erased = Vec::new();
            for sequence in places {
                let entry = ledger.entry_record(tenant, sequence)?;
                if entry.tombstone.is_some() {
                    // An earlier command of the group was faster.
                } else if holds.cover(&entry)? {
                    done.held += 1;
                } else {
                    let class = order.retention.class_of(&entry.operation);
                    ledger.erase(tenant, sequence, entry, class)?;
                    erased.push(sequence);
                }
            }
            done.erased = erased.len() as u64;
            let cause = Cause {
                actor: order.operator.as_str(),
                reason: &order.reason,
                summary: "Receipts of a subject were erased.",
            };
            ledger.record_erasure(tenant, &erased, &cause)?;
            Ok(Outcome::Erased(done))
        })
    }

    /// Erases the next receipts of a tenant whose retention has ended.
    pub(super) fn sweep(
        &mut self,
        tenant: &Tenant,
        settled_ms: u64,
        retention: &Retention,
    ) -> Result<Outcome, Error> {
        self.whole(|ledger| {
            if settled_ms >= ledger.count(&Slot::Settled)? + SETTLED_STEP_MS {
                ledger.put_count(Slot::Settled, settled_ms);
            }
            let slot = Slot::Swept(tenant.clone());
            let table = retention.digest().as_bytes().to_vec();
            let stored: Option<SweptRecord> = ledger.read(&slot)?;
            let stored = stored.filter(|swept| swept.table == table);
            let mut swept = stored.unwrap_or(SweptRecord {
                table,
                ..SweptRecord::default()
            });
            let holds = ledger.holds(tenant)?;
            let mut left = MAX_LOOKED_AT;
            let mut erased = Vec::new();
            for class in retention.classes() {
                let cutoff_ms = class.cutoff_ms(settled_ms);
                let next = swept.next.entry(class.name().to_owned()).or_insert(1);
                while left > 0 {
                    let entry: Option<EntryRecord> =
                        ledger.read(&Slot::Entry(tenant.clone(), *next))?;
                    let Some(entry) = entry.filter(|it| it.recorded_at_ms < cutoff_ms) else {
                        break;
                    };
                    left -= 1;
                    let is_of_class = entry.tombstone.is_none()
                        && retention.class_of(&entry.operation) == class.name();
                    if is_of_class && !holds.cover(&entry)? {
                        ledger.erase(tenant, *next, entry, class.name())?;
                        erased.push(*next);
                    }
                    *next += 1;
                }
            }
            let cause = Cause {
                actor: ledger.base.rules.own_id.as_str(),
                reason: "retention.ended",
                summary: "Receipts were erased because their retention has ended.",
            };
            ledger.record_erasure(tenant, &erased, &cause)?;
            if left < MAX_LOOKED_AT {
                ledger.put(slot, &swept);
            }
            Ok(Outcome::Erased(Erased {
                erased: erased.len() as u64,
                held: 0,
                next: (left == 0).then_some(0),
            }))
        })
    }

    /// Runs what changes many records: a refusal leaves nothing of it.
    fn whole(
        &mut self,
        run: impl FnOnce(&mut Self) -> Result<Outcome, Error>,
    ) -> Result<Outcome, Error> {
        let before = self.changes.clone();
        let outcome = run(self);
        if outcome.is_err() {
            self.changes = before;
        }
        outcome
    }

    /// Puts a tombstone in the place of a receipt, and removes it from all lists.
    fn erase(
        &mut self,
        tenant: &Tenant,
        sequence: u64,
        entry: EntryRecord,
        class: &str,
    ) -> Result<(), Error> {
        let routing = records::routing(entry.routing.as_ref())?;
        for list in Selector::of_entry(routing.subject_tag.as_ref(), &entry.facets()) {
            let place = Slot::Place(tenant.clone(), list.clone(), sequence);
            self.changes.insert(place, None);
            let size = Slot::Size(tenant.clone(), list);
            let left = self.count(&size)?.saturating_sub(1);
            let left = (left > 0).then(|| NumberRecord { number: left }.encode_to_vec());
            self.changes.insert(size, left);
        }
        let writer = entry.about_writer.as_ref().unwrap_or(&entry.writer);
        self.forget_operation(&routing, writer, sequence)?;
        let tombstone = entry.erased(class, self.now_ms);
        self.put(Slot::Entry(tenant.clone(), sequence), &tombstone);
        Ok(())
    }

    /// Forgets an operation but for that its id was used, unless it has a newer entry.
    fn forget_operation(
        &mut self,
        routing: &Routing,
        writer: &str,
        sequence: u64,
    ) -> Result<(), Error> {
        let id = routing.operation_id.clone();
        let slot = Slot::Operation(routing.tenant.clone(), writer.to_owned(), id);
        let operation: Option<OperationRecord> = self.read(&slot)?;
        let Some(operation) = operation.filter(|it| it.sequence == sequence) else {
            return Ok(());
        };
        self.settle(&routing.tenant, &routing.operation_id, &operation)?;
        let used = OperationRecord {
            is_erased: true,
            ..OperationRecord::default()
        };
        self.put(slot, &used);
        Ok(())
    }

    /// Nobody is waited for any more if the receipt that says so is gone.
    fn settle(
        &mut self,
        tenant: &Tenant,
        operation_id: &OperationId,
        operation: &OperationRecord,
    ) -> Result<(), Error> {
        let Some(intent) = operation.intent.as_ref().filter(|it| it.settled.is_empty()) else {
            return Ok(());
        };
        let key = OperationKeyRecord {
            tenant: tenant.as_str().to_owned(),
            writer: operation.writer.clone(),
            operation_id: operation_id.as_str().to_owned(),
            deadline_ms: intent.deadline_ms,
        };
        let size = Slot::OpenSize(operation.writer.clone());
        let open = self.count(&size)?.saturating_sub(1);
        self.put_count(size, open);
        self.changes.insert(Slot::Open(key.into()), None);
        if intent.overdue_sequence > 0 {
            let (unsettled, count) = self.unsettled(tenant, &intent.members)?;
            self.put_unsettled(unsettled, count.saturating_sub(1));
        }
        Ok(())
    }

    /// Adds the receipt of an erasure; the last thing that is done, for it cannot be taken back.
    fn record_erasure(
        &mut self,
        tenant: &Tenant,
        erased: &[u64],
        cause: &Cause<'_>,
    ) -> Result<(), Error> {
        let (Some(first), Some(last)) = (erased.first(), erased.last()) else {
            return Ok(());
        };
        let uuid = self.base.ids.uuid();
        let uuid = uuid.map_err(|_| Error::Internal("no random bytes"))?;
        let operation_id = OperationId::parse(&format!("urn:cl:operation:{uuid}"));
        let routing = Routing {
            tenant: tenant.clone(),
            operation_id: operation_id.ok_or(Error::Internal("a UUID is no operation"))?,
            subject_tag: None,
        };
        let sequences: Vec<Value> = erased.iter().map(|it| (*it).into()).collect();
        let receipt = self.act(&Act {
            operation: "receipts.erase",
            actor: cause.actor,
            operation_id: routing.operation_id.as_str(),
            summary: cause.summary,
            input: Digest::of_json(&Value::Null),
            output: Digest::of_json(&sequences.into()),
            facts: &[
                ("reason", cause.reason),
                ("erased", &erased.len().to_string()),
                ("first_entry", &first.to_string()),
                ("last_entry", &last.to_string()),
            ],
        })?;
        let origin = Origin {
            routing: &routing,
            writer: self.base.rules.own_id.as_str(),
            by_consumer: false,
            about_writer: None,
        };
        self.add_entry(&receipt, &origin)?;
        Ok(())
    }
}
