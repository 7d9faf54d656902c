//! What writers ask of the log, who may ask it, and what comes of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use cl_host::identity::SpiffeId;
use cl_model::digest::Digest;

use super::finished::Finished;
use super::holds::HoldTarget;
use super::intents::State;
use super::members::Members;
use super::records::{EntryRecord, HeadRecord, OperationKeyRecord};
use super::retention::Retention;
use super::routing::{OperationId, Routing, SubjectTag, Tenant};
use super::trees::Tree;
use super::writers::{Authorized, Writers};
use crate::error::Error;
use crate::store::Slot;

/// Whose store this is, and who may write to it.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The store's own SPIFFE id, the actor of its own receipts.
    pub own_id: SpiffeId,
    /// Who may write what.
    pub writers: Writers,
}

impl Rules {
    /// Whether `writer` may write this receipt as its own. Nobody speaks for the store.
    pub fn authorize(&self, writer: &SpiffeId, receipt: &Finished) -> Result<Authorized, Error> {
        let (actor, operation) = (&receipt.receipt().actor, &receipt.receipt().operation);
        if actor.as_str() == self.own_id.as_str() {
            return Err(Error::OperationNotAllowed);
        }
        self.writers
            .authorize(writer, actor.as_str(), operation.as_str())
            .ok_or(Error::OperationNotAllowed)
    }
}

/// A writer's call: who calls, about what, and the digest of all that it carried.
#[derive(Clone)]
pub struct Call {
    /// The authenticated writer.
    pub writer: SpiffeId,
    /// Where the receipt belongs.
    pub routing: Routing,
    /// Tells a repeat from a conflict.
    pub content: Digest,
}

/// What the committer is asked to do.
#[derive(Clone)]
pub enum Command {
    /// Record a whole receipt.
    Append {
        /// Who and what about.
        call: Call,
        /// The receipt.
        receipt: Box<Finished>,
        /// Whether a consumer attests it.
        by_consumer: bool,
        /// Why it may be written.
        authorized: Authorized,
    },
    /// Record an intent.
    Begin {
        /// Who and what about.
        call: Call,
        /// When it is over.
        deadline_ms: u64,
        /// The canonical members, checked.
        members: Vec<u8>,
        /// Why it may be written.
        authorized: Authorized,
    },
    /// Record the receipt of an intent.
    Complete {
        /// Who and what about.
        call: Call,
        /// The members that the intent left open.
        members: Members,
    },
    /// Keep receipts until it is said otherwise.
    Hold {
        /// Who and what about.
        call: Call,
        /// Which receipts.
        target: HoldTarget,
        /// Why.
        reason: String,
    },
    /// End a hold.
    Release {
        /// Who and what about.
        call: Call,
        /// Which hold.
        hold_id: String,
        /// Why.
        reason: String,
    },
    /// Erase some of a subject's receipts.
    EraseSubject(ErasureOrder),
    /// Erase some of the receipts whose retention has ended.
    Sweep {
        /// Whose receipts.
        tenant: Tenant,
        /// The time that counts.
        settled_ms: u64,
        /// How long receipts are kept.
        retention: Arc<Retention>,
    },
    /// Write something, to see whether writing works.
    Probe(Tenant),
}

/// An operator's order to erase a subject's receipts.
#[derive(Clone)]
pub struct ErasureOrder {
    /// The authenticated operator.
    pub operator: SpiffeId,
    /// Whose receipts.
    pub tenant: Tenant,
    /// Of which subject.
    pub subject_tag: SubjectTag,
    /// Why.
    pub reason: String,
    /// Behind which entry to go on.
    pub after: u64,
    /// Names the classes of what is erased.
    pub retention: Arc<Retention>,
}

/// What came of one batch of an erasure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// How many receipts were erased.
    pub erased: u64,
    /// How many stay because of a hold.
    pub held: u64,
    /// Behind which entry to go on; none at the end.
    pub next: Option<u64>,
}

/// An entry and its place in the log of its tenant.
#[derive(Clone)]
pub struct Placed {
    /// Whose log.
    pub tenant: Tenant,
    /// The place; the first is 1.
    pub sequence: u64,
    /// The entry.
    pub entry: Box<EntryRecord>,
}

/// What came of a command.
#[derive(Clone)]
pub enum Outcome {
    /// The entry.
    Entry(Placed),
    /// The intent's state and the newest entry of its operation.
    Intent(State, Option<Placed>),
    /// How far an erasure came.
    Erased(Erased),
    /// Nothing to say.
    Done,
}

/// What a caller is told, once it is durable.
#[derive(Clone)]
pub enum Answer {
    /// The entry, and the proof that it is in the log.
    Entry(Placed, String),
    /// The intent's state and the newest entry of its operation.
    Intent(State, Option<Placed>),
    /// How far an erasure came.
    Erased(Erased),
    /// Nothing to say.
    Done,
}

/// What a group of commands writes.
pub struct Written {
    /// All changes but the head.
    pub changes: BTreeMap<Slot, Option<Vec<u8>>>,
    /// The head afterwards, without its commit id.
    pub head: HeadRecord,
    /// The trees that have grown.
    pub trees: BTreeMap<Tenant, Tree>,
    /// Whether there is anything to commit.
    pub is_needed: bool,
}

impl Call {
    /// Where the operation is stored.
    pub(crate) fn slot(&self) -> Slot {
        Slot::Operation(
            self.routing.tenant.clone(),
            self.writer.as_str().to_owned(),
            self.routing.operation_id.clone(),
        )
    }

    /// How indexes name the operation.
    pub(crate) fn key(&self, deadline_ms: u64) -> OperationKeyRecord {
        OperationKeyRecord {
            tenant: self.routing.tenant.as_str().to_owned(),
            writer: self.writer.as_str().to_owned(),
            operation_id: self.routing.operation_id.as_str().to_owned(),
            deadline_ms,
        }
    }
}

/// Where the operation that an index names is stored.
pub fn operation_slot(key: &OperationKeyRecord) -> Result<Slot, Error> {
    let tenant = Tenant::parse(&key.tenant);
    let operation_id = OperationId::parse(&key.operation_id);
    match (tenant, operation_id) {
        (Some(tenant), Some(id)) => Ok(Slot::Operation(tenant, key.writer.clone(), id)),
        (None, _) | (_, None) => Err(Error::Corrupt("an index names no operation")),
    }
}
