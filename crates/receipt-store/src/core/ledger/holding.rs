//! Placing and ending legal holds, and the store's receipts of its own acts.

use cl_model::digest::Digest;
use cl_model::object::Outcome as Ended;
use cl_model::receipt::Draft;
use cl_model::time::UnixTime;

use super::Ledger;
use crate::core::command::{Call, Outcome};
use crate::core::finished::Finished;
use crate::core::holds::{HoldRecord, HoldTarget, HoldsRecord, MAX_HOLDS};
use crate::core::records::NumberRecord;
use crate::core::routing::Tenant;
use crate::error::Error;
use crate::store::Slot;

/// What the receipts of holds and erasures are about: other receipts.
const SUBJECT: &str = "urn:cl:alias:receipts";

/// What the store or an operator did with receipts.
pub(super) struct Act<'a> {
    pub(super) operation: &'static str,
    pub(super) actor: &'a str,
    pub(super) operation_id: &'a str,
    pub(super) summary: &'static str,
    pub(super) input: Digest,
    pub(super) output: Digest,
    pub(super) facts: &'a [(&'static str, &'a str)],
}

impl Ledger<'_> {
    pub(super) fn hold(
        &mut self,
        call: &Call,
        target: &HoldTarget,
        reason: &str,
    ) -> Result<Outcome, Error> {
        let tenant = &call.routing.tenant;
        let operation = &call.routing.operation_id;
        let hold = HoldRecord::new(operation, target, reason, &call.writer, self.now_ms);
        let receipt = self.act(&Act {
            operation: "receipts.hold",
            actor: call.writer.as_str(),
            operation_id: operation.as_str(),
            summary: "Receipts were put on hold.",
            input: target.digest(),
            output: Digest::of_json(&hold.hold_id.as_str().into()),
            facts: &[
                ("hold_id", &hold.hold_id),
                ("covers", target.kind()),
                ("reason", reason),
            ],
        })?;
        if self.operation(&call.slot())?.is_some() {
            return self.append(call, &receipt, false);
        }
        if let HoldTarget::Receipt(reference) = target {
            self.check_is_there(tenant, reference)?;
        }
        let mut record = self.holds(tenant)?;
        if record.holds.len() >= MAX_HOLDS {
            return Err(Error::TooManyHolds);
        }
        record.holds.push(hold);
        let outcome = self.append(call, &receipt, false)?;
        self.put(Slot::Holds(tenant.clone()), &record);
        Ok(outcome)
    }

    pub(super) fn release(
        &mut self,
        call: &Call,
        hold_id: &str,
        reason: &str,
    ) -> Result<Outcome, Error> {
        let tenant = &call.routing.tenant;
        let receipt = self.act(&Act {
            operation: "receipts.release",
            actor: call.writer.as_str(),
            operation_id: call.routing.operation_id.as_str(),
            summary: "A hold on receipts was ended.",
            input: Digest::of_json(&hold_id.into()),
            output: Digest::of_json(&serde_json::Value::Null),
            facts: &[("hold_id", hold_id), ("reason", reason)],
        })?;
        if self.operation(&call.slot())?.is_some() {
            return self.append(call, &receipt, false);
        }
        let mut record = self.holds(tenant)?;
        let count = record.holds.len();
        record.holds.retain(|hold| hold.hold_id != hold_id);
        if record.holds.len() == count {
            return Err(Error::HoldNotFound);
        }
        let outcome = self.append(call, &receipt, false)?;
        self.put(Slot::Holds(tenant.clone()), &record);
        // What was held may have to go now: all is looked through again.
        self.changes.insert(Slot::Swept(tenant.clone()), None);
        Ok(outcome)
    }

    /// The holds of a tenant.
    pub(super) fn holds(&self, tenant: &Tenant) -> Result<HoldsRecord, Error> {
        let record = self.read(&Slot::Holds(tenant.clone()))?;
        Ok(record.unwrap_or_default())
    }

    /// The receipt of an act on receipts.
    pub(super) fn act(&self, act: &Act<'_>) -> Result<Finished, Error> {
        let now = UnixTime::from_milliseconds(i64::try_from(self.now_ms).unwrap_or(i64::MAX));
        let draft = Draft::new(
            act.operation,
            act.actor,
            SUBJECT,
            Ended::Success,
            act.summary,
            now,
        );
        let mut draft = draft
            .issued_by(self.base.rules.own_id.as_str())
            .with_digests(act.input, act.output)
            .with_metadata("operation_id", act.operation_id);
        for (name, fact) in act.facts {
            draft = draft.with_metadata(name, fact);
        }
        let record = draft.finish()?;
        Ok(Finished::check(record.value())?)
    }

    fn check_is_there(&self, tenant: &Tenant, reference: &str) -> Result<(), Error> {
        let slot = Slot::Receipt(tenant.clone(), reference.to_owned());
        let found = self.read::<NumberRecord>(&slot)?;
        let found = found.ok_or(Error::ReceiptNotFound)?;
        let entry = self.entry_record(tenant, found.number)?;
        match entry.tombstone {
            Some(_) => Err(Error::ReceiptErased),
            None => Ok(()),
        }
    }
}
