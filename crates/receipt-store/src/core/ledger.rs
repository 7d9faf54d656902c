//! One group of commands, applied in order on top of what is stored.
//!
//! A ledger reads through to the store and keeps what it writes to itself, so that a later command
//! of the group sees the effects of an earlier one. All of it becomes durable in one batch, or none.

mod erasing;
mod holding;

use std::collections::{BTreeMap, BTreeSet};

use cl_host::ids::Ids;
use cl_model::leaf::{self, SALT_BYTES, Salt};
use cl_model::receipt::consumption;
use cl_model::refusal::Code;
use prost::Message;
use serde_json::Value;

use super::command::{Call, Command, Outcome, Placed, Rules, Written, operation_slot};
use super::finished::{Facets, Finished, supersedes_ref};
use super::intents::{MAX_DEADLINE_MS, State, overdue_receipt};
use super::kept::Kept;
use super::members::Members;
use super::records::{
    self, EntryRecord, HeadRecord, IntentRecord, NumberRecord, OperationKeyRecord, OperationRecord,
    RoutingRecord, TenantRecord,
};
use super::routing::{Routing, Tenant};
use super::trees::Growth;
use crate::error::Error;
use crate::store::{Selector, Slot, Store};

/// How many overdue intents one group takes along.
const MAX_DUE: usize = 64;

/// The store as a group of commands sees and changes it.
pub struct Ledger<'a> {
    base: Base<'a>,
    head: HeadRecord,
    /// Judges deadlines: a jump ahead that is over must not end what begins after it.
    clock_ms: u64,
    /// What is written down: it never runs backwards.
    now_ms: u64,
    changes: BTreeMap<Slot, Option<Vec<u8>>>,
    growth: Growth,
    is_probed: bool,
}

/// What a ledger is decided on.
#[derive(Clone, Copy)]
pub struct Base<'a> {
    /// What is stored.
    pub store: &'a dyn Store,
    /// Trees that were read before.
    pub kept: &'a Kept,
    /// Who may write what.
    pub rules: &'a Rules,
    /// Salts.
    pub ids: &'a dyn Ids,
}

impl<'a> Ledger<'a> {
    /// Starts from a head. Time never runs backwards in a log, whatever the clock does.
    pub fn new(base: Base<'a>, head: HeadRecord, clock_ms: u64) -> Self {
        let now_ms = clock_ms.max(head.latest_ms);
        Self {
            base,
            head: HeadRecord {
                latest_ms: now_ms,
                ..head
            },
            clock_ms,
            now_ms,
            changes: BTreeMap::new(),
            growth: Growth::default(),
            is_probed: false,
        }
    }

    /// Records intents whose deadline has passed as indeterminate, the earliest first.
    ///
    /// One that cannot be recorded does not hold up the others; the last such error comes back.
    pub fn expire_due(&mut self) -> Result<(), Error> {
        let mut result = Ok(());
        let mut failing = BTreeSet::new();
        let (mut after, mut recorded) = (None, 0);
        while recorded < MAX_DUE {
            let due = self
                .base
                .store
                .due(self.clock_ms, after.as_ref(), MAX_DUE)?;
            let is_last = due.len() < MAX_DUE;
            for key in &due {
                // What fails for one of them fails for the others of its log.
                if failing.contains(&key.tenant) {
                    continue;
                }
                match self.expire_indexed(key) {
                    Ok(()) => recorded += 1,
                    Err(error) => {
                        failing.insert(key.tenant.clone());
                        result = Err(error);
                    }
                }
            }
            after = due.into_iter().last();
            if is_last {
                break;
            }
        }
        result
    }

    /// Applies one command. A refusal leaves nothing of it.
    pub fn run(&mut self, command: &Command) -> Result<Outcome, Error> {
        match command {
            Command::Append {
                call,
                receipt,
                by_consumer,
                authorized: _,
            } => self.append(call, receipt, *by_consumer),
            Command::Begin {
                call,
                deadline_ms,
                members,
                authorized: _,
            } => self.begin(call, *deadline_ms, members),
            Command::Complete { call, members } => self.complete(call, members),
            Command::Hold {
                call,
                target,
                reason,
            } => self.hold(call, target, reason),
            Command::Release {
                call,
                hold_id,
                reason,
            } => self.release(call, hold_id, reason),
            Command::EraseSubject(order) => self.erase_subject(order),
            Command::Sweep {
                tenant,
                settled_ms,
                retention,
            } => self.sweep(tenant, *settled_ms, retention),
            Command::Probe(tenant) => {
                self.check_quorum(tenant)?;
                self.is_probed = true;
                Ok(Outcome::Done)
            }
        }
    }

    /// What must be committed for the answers to hold: the changes, and the grown trees with their
    /// checkpoints.
    pub fn into_written(mut self) -> Result<Written, Error> {
        let trees = self.growth.grow(self.base.kept.key(), &mut self.changes)?;
        Ok(Written {
            is_needed: self.is_probed || !self.changes.is_empty(),
            changes: self.changes,
            head: self.head,
            trees,
        })
    }

    fn append(
        &mut self,
        call: &Call,
        receipt: &Finished,
        by_consumer: bool,
    ) -> Result<Outcome, Error> {
        let slot = call.slot();
        if let Some(operation) = self.operation(&slot)? {
            let is_repeat =
                operation.intent.is_none() && operation.content == call.content.as_bytes();
            if !is_repeat {
                return Err(Error::OperationConflict);
            }
            return self.entry(&call.routing.tenant, operation.sequence);
        }
        let origin = Origin {
            routing: &call.routing,
            writer: call.writer.as_str(),
            by_consumer,
            about_writer: None,
        };
        let sequence = self.add_entry(receipt, &origin)?;
        let operation = OperationRecord {
            routing: Some(RoutingRecord::from(&call.routing)),
            writer: call.writer.as_str().to_owned(),
            content: call.content.as_bytes().to_vec(),
            sequence,
            intent: None,
            is_erased: false,
        };
        self.put(slot, &operation);
        self.entry(&call.routing.tenant, sequence)
    }

    fn begin(&mut self, call: &Call, deadline_ms: u64, members: &[u8]) -> Result<Outcome, Error> {
        let slot = call.slot();
        if let Some(operation) = self.operation(&slot)? {
            let intent = operation.intent.as_ref();
            let intent = intent
                .filter(|_| operation.content == call.content.as_bytes())
                .ok_or(Error::OperationConflict)?;
            return self.intent(call, intent.state(), operation.sequence);
        }
        if deadline_ms <= self.clock_ms {
            return Err(Error::DeadlinePassed);
        }
        if deadline_ms - self.clock_ms > MAX_DEADLINE_MS {
            return Err(Error::field("deadline", "at most 24 hours away"));
        }
        self.check_quorum(&call.routing.tenant)?;
        // Whether the earlier operation had its effect is not known: nothing may build on it.
        if self.unsettled(&call.routing.tenant, members)?.1 > 0 {
            return Err(Error::BundleUnsettled);
        }
        let open = self.count(&Slot::OpenSize(call.writer.as_str().to_owned()))?;
        let operation = OperationRecord {
            routing: Some(RoutingRecord::from(&call.routing)),
            writer: call.writer.as_str().to_owned(),
            content: call.content.as_bytes().to_vec(),
            sequence: 0,
            intent: Some(IntentRecord {
                deadline_ms,
                begun_at_ms: self.now_ms,
                members: members.to_vec(),
                overdue_sequence: 0,
                settled: Vec::new(),
            }),
            is_erased: false,
        };
        let key = call.key(deadline_ms);
        self.put(Slot::Due(key.clone().into()), &key);
        self.put(Slot::Open(key.clone().into()), &key);
        self.put_count(Slot::OpenSize(key.writer), open + 1);
        self.put(slot, &operation);
        self.intent(call, State::Open, 0)
    }

    fn complete(&mut self, call: &Call, members: &Members) -> Result<Outcome, Error> {
        let slot = call.slot();
        let mut operation = self.operation(&slot)?.ok_or(Error::IntentNotFound)?;
        let intent = operation.intent.clone().ok_or(Error::IntentNotFound)?;
        if intent.state() == State::Settled {
            if intent.settled != call.content.as_bytes() {
                return Err(Error::OperationConflict);
            }
            return self.entry(&call.routing.tenant, operation.sequence);
        }
        let begun = records::routing(operation.routing.as_ref())?;
        if begun.subject_tag.is_some() && begun.subject_tag != call.routing.subject_tag {
            return Err(Error::MemberConflict);
        }
        if intent.is_due(self.clock_ms) {
            self.expire(&slot, &mut operation)?;
        }
        let receipt = self.completed(call, &operation, &intent.members, members)?;
        self.base.rules.authorize(&call.writer, &receipt)?;
        let open_slot = Slot::OpenSize(call.writer.as_str().to_owned());
        let open = self.count(&open_slot)?;
        let origin = Origin {
            routing: &call.routing,
            writer: call.writer.as_str(),
            by_consumer: false,
            about_writer: None,
        };
        let sequence = self.add_entry(&receipt, &origin)?;
        let key = call.key(intent.deadline_ms);
        self.changes.insert(Slot::Due(key.clone().into()), None);
        self.changes.insert(Slot::Open(key.into()), None);
        self.put_count(open_slot, open.saturating_sub(1));
        if operation.expect_intent()?.overdue_sequence > 0 {
            let (unsettled, count) = self.unsettled(&call.routing.tenant, &intent.members)?;
            self.put_unsettled(unsettled, count.saturating_sub(1));
        }
        operation.routing = Some(RoutingRecord::from(&call.routing));
        operation.sequence = sequence;
        operation.intent = Some(IntentRecord {
            members: Vec::new(),
            settled: call.content.as_bytes().to_vec(),
            ..operation.expect_intent()?.clone()
        });
        self.put(slot, &operation);
        self.entry(&call.routing.tenant, sequence)
    }

    /// The whole receipt of an intent; past the deadline it supersedes the store's own.
    fn completed(
        &self,
        call: &Call,
        operation: &OperationRecord,
        begun: &[u8],
        members: &Members,
    ) -> Result<Finished, Error> {
        let overdue = match operation.expect_intent()?.overdue_sequence {
            0 => None,
            sequence => {
                let entry = self.entry_record(&call.routing.tenant, sequence)?;
                Some(entry.receipt_ref)
            }
        };
        let begun = Members::parse(begun).map_err(|_| BAD_MEMBERS)?;
        members
            .complete(&begun, overdue.as_deref())?
            .finish(&call.routing.operation_id)
    }

    fn expire_indexed(&mut self, key: &OperationKeyRecord) -> Result<(), Error> {
        let slot = operation_slot(key)?;
        let mut operation = self.operation(&slot)?.ok_or(NO_OPERATION)?;
        self.expire(&slot, &mut operation)
    }

    /// Records an intent that is due as indeterminate; it stays open for its writer.
    fn expire(&mut self, slot: &Slot, operation: &mut OperationRecord) -> Result<(), Error> {
        let intent = operation.expect_intent()?.clone();
        let routing = records::routing(operation.routing.as_ref())?;
        let own_id = self.base.rules.own_id.as_str();
        let writer = operation.writer.clone();
        let members = Members::parse(&intent.members).map_err(|_| BAD_MEMBERS)?;
        let receipt = overdue_receipt(&members, &routing.operation_id, own_id, self.now_ms)
            .map_err(|_| BAD_MEMBERS)?;
        let origin = Origin {
            routing: &routing,
            writer: own_id,
            by_consumer: false,
            about_writer: Some(&writer),
        };
        let (unsettled, count) = self.unsettled(&routing.tenant, &intent.members)?;
        let sequence = self.add_entry(&receipt, &origin)?;
        self.put_unsettled(unsettled, count + 1);
        let key = OperationKeyRecord {
            tenant: routing.tenant.as_str().to_owned(),
            writer: operation.writer.clone(),
            operation_id: routing.operation_id.as_str().to_owned(),
            deadline_ms: intent.deadline_ms,
        };
        self.changes.insert(Slot::Due(key.into()), None);
        operation.sequence = sequence;
        operation.intent = Some(IntentRecord {
            overdue_sequence: sequence,
            ..intent
        });
        self.put(slot.clone(), &operation.clone());
        Ok(())
    }

    /// Refuses what could not be recorded later because no quorum cosigns the tenant's log.
    fn check_quorum(&self, tenant: &Tenant) -> Result<(), Error> {
        self.base.kept.check_quorum(self.base.store, tenant)
    }

    /// The bundle that an intent's members name, and how many operations about it are indeterminate.
    fn unsettled(&self, tenant: &Tenant, members: &[u8]) -> Result<(Option<Slot>, u64), Error> {
        let members = Members::parse(members).map_err(|_| BAD_MEMBERS)?;
        let bundle = members.value("bundle_ref").and_then(Value::as_str);
        let Some(bundle) = bundle else {
            return Ok((None, 0));
        };
        let slot = Slot::Unsettled(tenant.clone(), bundle.to_owned());
        let count = self.count(&slot)?;
        Ok((Some(slot), count))
    }

    fn put_unsettled(&mut self, slot: Option<Slot>, count: u64) {
        match slot {
            Some(slot) if count == 0 => {
                self.changes.insert(slot, None);
            }
            Some(slot) => self.put_count(slot, count),
            None => {}
        }
    }

    /// Adds an entry with all that finds it again. Everything is read before anything is changed.
    fn add_entry(&mut self, receipt: &Finished, origin: &Origin<'_>) -> Result<u64, Error> {
        let tenant = &origin.routing.tenant;
        let consumed = consumption(receipt.receipt())
            .map(|(actor, bundle)| Slot::Consumed(tenant.clone(), actor, bundle));
        if let Some(slot) = &consumed
            && self.read::<NumberRecord>(slot)?.is_some()
        {
            return Err(Error::ReplayConflict);
        }
        self.check_superseded(receipt, origin)?;
        let facets = Facets::of(receipt.receipt());
        let lists = Selector::of_entry(origin.routing.subject_tag.as_ref(), &facets)
            .into_iter()
            .map(|selector| {
                let size = self.count(&Slot::Size(tenant.clone(), selector.clone()))?;
                Ok((selector, size))
            })
            .collect::<Result<Vec<_>, Error>>()?;
        let reference = receipt.receipt().id.as_str().to_owned();
        let by_reference = Slot::Receipt(tenant.clone(), reference);
        let is_first = self.read::<NumberRecord>(&by_reference)?.is_none();
        let salt = self.salt()?;
        let Base { store, kept, .. } = self.base;
        let size = self.growth.size(kept, store, tenant)?;

        let sequence = size + 1;
        let leaf = leaf::entry(&salt, receipt.text());
        self.growth.push(tenant, leaf);
        let entry = EntryRecord {
            leaf: leaf.to_vec(),
            salt: salt.as_bytes().to_vec(),
            recorded_at_ms: self.now_ms,
            ..origin.entry(receipt, facets)
        };
        self.put(Slot::Entry(tenant.clone(), sequence), &entry);
        if size == 0 {
            let record = TenantRecord {
                tenant: tenant.as_str().to_owned(),
            };
            self.put(Slot::Tenant(tenant.clone()), &record);
        }
        for slot in consumed.into_iter().chain(is_first.then_some(by_reference)) {
            self.put_count(slot, sequence);
        }
        for (selector, size) in lists {
            let place = Slot::Place(tenant.clone(), selector.clone(), sequence);
            self.put_count(place, sequence);
            self.put_count(Slot::Size(tenant.clone(), selector), size + 1);
        }
        self.head.entries += 1;
        Ok(sequence)
    }

    /// A receipt supersedes one that is in the log, and that is its writer's to correct: one of its
    /// own, or the store's about an operation of its own. A consumer corrects itself only.
    fn check_superseded(&self, receipt: &Finished, origin: &Origin<'_>) -> Result<(), Error> {
        let Some(reference) = supersedes_ref(receipt.receipt()) else {
            return Ok(());
        };
        let tenant = &origin.routing.tenant;
        let found = self.read::<NumberRecord>(&Slot::Receipt(tenant.clone(), reference))?;
        let found = found.map(|found| self.entry_record(tenant, found.number));
        let is_own = found.transpose()?.is_some_and(|entry| {
            let is_writers = match &entry.about_writer {
                None => entry.writer == origin.writer,
                Some(about) => about == origin.writer && is_of_operation(&entry, origin.routing),
            };
            let is_actors = || entry.actor() == Some(receipt.receipt().actor.as_str().to_owned());
            is_writers
                && entry.by_consumer == origin.by_consumer
                && (!origin.by_consumer || is_actors())
        });
        if is_own {
            return Ok(());
        }
        Err(Error::Receipt {
            code: Code::InvalidReceipt.as_str(),
            meaning: "it supersedes no receipt that is there and its writer's",
            member: Some("supersedes_ref"),
        })
    }

    fn salt(&self) -> Result<Salt, Error> {
        let mut salt = [0; SALT_BYTES];
        self.base
            .ids
            .fill(&mut salt)
            .map_err(|_| Error::Internal("no random bytes"))?;
        Ok(Salt::new(salt))
    }

    fn intent(&self, call: &Call, state: State, sequence: u64) -> Result<Outcome, Error> {
        let placed = match sequence {
            0 => None,
            sequence => Some(self.placed(&call.routing.tenant, sequence)?),
        };
        Ok(Outcome::Intent(state, placed))
    }

    fn entry(&self, tenant: &Tenant, sequence: u64) -> Result<Outcome, Error> {
        Ok(Outcome::Entry(self.placed(tenant, sequence)?))
    }

    fn placed(&self, tenant: &Tenant, sequence: u64) -> Result<Placed, Error> {
        Ok(Placed {
            tenant: tenant.clone(),
            sequence,
            entry: Box::new(self.entry_record(tenant, sequence)?),
        })
    }

    fn entry_record(&self, tenant: &Tenant, sequence: u64) -> Result<EntryRecord, Error> {
        self.read(&Slot::Entry(tenant.clone(), sequence))?
            .ok_or(Error::Corrupt("an entry is missing"))
    }

    fn operation(&self, slot: &Slot) -> Result<Option<OperationRecord>, Error> {
        let operation: Option<OperationRecord> = self.read(slot)?;
        if operation.as_ref().is_some_and(|it| it.is_erased) {
            return Err(Error::ReceiptErased);
        }
        Ok(operation)
    }

    fn count(&self, slot: &Slot) -> Result<u64, Error> {
        Ok(self.read::<NumberRecord>(slot)?.map_or(0, |it| it.number))
    }

    fn read<R: Message + Default>(&self, slot: &Slot) -> Result<Option<R>, Error> {
        match self.changes.get(slot) {
            Some(changed) => changed.as_deref().map(records::decode).transpose(),
            None => {
                let stored = self.base.store.get(slot)?;
                stored.map(|bytes| records::decode(&bytes)).transpose()
            }
        }
    }

    fn put(&mut self, slot: Slot, record: &impl Message) {
        self.changes.insert(slot, Some(record.encode_to_vec()));
    }

    fn put_count(&mut self, slot: Slot, number: u64) {
        self.put(slot, &NumberRecord { number });
    }
}

const NO_OPERATION: Error = Error::Corrupt("an indexed operation is missing");
const BAD_MEMBERS: Error = Error::Corrupt("an intent's members do not make a receipt");

/// Where an entry comes from.
struct Origin<'a> {
    routing: &'a Routing,
    writer: &'a str,
    by_consumer: bool,
    /// Whose operation the store's own receipt is about.
    about_writer: Option<&'a str>,
}

/// Whether the entry is about this very operation.
fn is_of_operation(entry: &EntryRecord, routing: &Routing) -> bool {
    let of = entry.routing.as_ref();
    of.is_some_and(|of| of.operation_id == routing.operation_id.as_str())
}

impl Origin<'_> {
    /// The entry of a receipt, without its leaf and time.
    fn entry(&self, receipt: &Finished, facets: Facets) -> EntryRecord {
        EntryRecord {
            receipt: receipt.text().to_owned(),
            receipt_ref: receipt.receipt().id.as_str().to_owned(),
            supersedes_ref: supersedes_ref(receipt.receipt()),
            routing: Some(RoutingRecord::from(self.routing)),
            writer: self.writer.to_owned(),
            by_consumer: self.by_consumer,
            about_writer: self.about_writer.map(str::to_owned),
            operation: facets.operation,
            outcome: facets.outcome,
            bundle_ref: facets.bundle_ref,
            decision_ref: facets.decision_ref,
            ..EntryRecord::default()
        }
    }
}
