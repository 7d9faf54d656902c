//! Receipts that were checked, and the entries that commit to them.

use cl_model::canonical;
use cl_model::digest::Digest;
use cl_model::json::{self, Limits};
use cl_model::leaf::{self, Salt};
use cl_model::object::Receipt;
use cl_model::receipt::{self, MAX_RECEIPT_BYTES};
use cl_model::refusal::{Code, Refusal};

use super::records::EntryRecord;

/// A whole receipt that was checked: what can become an entry.
#[derive(Clone)]
pub struct Finished {
    receipt: Receipt,
    text: String,
}

impl Finished {
    /// Completes a receipt by its computed members, and checks it.
    pub fn new(members: serde_json::Value) -> Result<Self, Refusal> {
        let (record, receipt) = receipt::finalize(members)?;
        Ok(Self {
            receipt,
            text: record.into_text(),
        })
    }

    /// Checks a receipt that has its computed members.
    pub fn check(value: &serde_json::Value) -> Result<Self, Refusal> {
        Ok(Self {
            receipt: receipt::check(value)?,
            text: canonical::to_text(value),
        })
    }

    /// The receipt.
    pub fn receipt(&self) -> &Receipt {
        &self.receipt
    }

    /// Its canonical text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The digest that its id is made of.
    pub fn digest(&self) -> Option<Digest> {
        self.receipt.integrity.as_ref().map(|it| it.digest)
    }
}

/// The members by which receipts are found; a reader filters by them without parsing a receipt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facets {
    /// What was done.
    pub operation: String,
    /// How it ended.
    pub outcome: String,
    /// The bundle that it is about.
    pub bundle_ref: Option<String>,
    /// The decision that it is about.
    pub decision_ref: Option<String>,
}

impl Facets {
    /// Those of a receipt.
    pub fn of(receipt: &Receipt) -> Self {
        let bundle = receipt.bundle_ref.get();
        let decision = receipt.decision_ref.get();
        Self {
            operation: receipt.operation.as_str().to_owned(),
            outcome: receipt.outcome.as_str().to_owned(),
            bundle_ref: bundle.map(|id| id.as_str().to_owned()),
            decision_ref: decision.map(|id| id.as_str().to_owned()),
        }
    }
}

/// The URN of the receipt that this one supersedes.
pub fn supersedes_ref(receipt: &Receipt) -> Option<String> {
    let reference = receipt.supersedes_ref.as_ref()?;
    reference.get().map(|id| id.as_str().to_owned())
}

/// Checks that a record is what its receipt says and that its leaf commits to it, and the receipt by
/// every rule of the specification.
///
/// # Errors
///
/// [`Code::ReceiptLogInvalidEntry`], or those of [`receipt::check`].
pub fn verify(entry: &EntryRecord) -> Result<Receipt, Code> {
    let salt = Salt::read(&entry.salt).ok_or(Code::ReceiptLogInvalidEntry)?;
    if entry.leaf != leaf::entry(&salt, &entry.receipt) {
        return Err(Code::ReceiptLogInvalidEntry);
    }
    let value = json::parse(entry.receipt.as_bytes(), Limits::network(MAX_RECEIPT_BYTES))
        .ok()
        .filter(|value| canonical::to_text(value) == entry.receipt)
        .ok_or(Code::ReceiptLogInvalidEntry)?;
    let receipt = receipt::check(&value).map_err(|refusal| refusal.code())?;
    let is_what_it_says = receipt.id.as_str() == entry.receipt_ref
        && supersedes_ref(&receipt) == entry.supersedes_ref
        && Facets::of(&receipt) == entry.facets();
    if is_what_it_says {
        Ok(receipt)
    } else {
        Err(Code::ReceiptLogInvalidEntry)
    }
}

/// Whether a record has exactly what an erasure leaves.
pub fn is_tombstone(entry: &EntryRecord) -> bool {
    let EntryRecord {
        leaf, tombstone, ..
    } = entry;
    let is_leaf = leaf.len() == leaf::LEAF_BYTES && leaf.first() == Some(&leaf::VERSION);
    let left = EntryRecord {
        leaf: leaf.clone(),
        recorded_at_ms: entry.recorded_at_ms,
        tombstone: tombstone.clone(),
        ..EntryRecord::default()
    };
    is_leaf && tombstone.is_some() && left == *entry
}

#[cfg(test)]
mod tests {
    use cl_model::object::Outcome;
    use cl_model::receipt::Draft;
    use cl_model::time::UnixTime;

    use super::*;

    fn entry() -> EntryRecord {
        let receipt = Draft::new(
            "bundle.issue",
            "urn:a:b",
            "urn:cl:alias:x",
            Outcome::Success,
            "A receipt.",
            UnixTime::from_milliseconds(1_900_000_000_000),
        );
        let text = receipt.finish().unwrap().text().to_owned();
        let salt = Salt::new([7; 32]);
        EntryRecord {
            leaf: leaf::entry(&salt, &text).to_vec(),
            salt: salt.as_bytes().to_vec(),
            receipt_ref: serde_json::from_str::<serde_json::Value>(&text).unwrap()["id"]
                .as_str()
                .unwrap()
                .to_owned(),
            receipt: text,
            operation: "bundle.issue".to_owned(),
            outcome: "success".to_owned(),
            ..EntryRecord::default()
        }
    }

    #[test]
    fn verifies_leaf_receipt_and_what_is_said_about_it() {
        let good = entry();
        assert!(verify(&good).is_ok());
        let invalid = Some(Code::ReceiptLogInvalidEntry);
        let salt = Salt::new([7; 32]);
        // Whoever can write entries can commit to anything; it must still be a receipt.
        let committed = |text: String| EntryRecord {
            leaf: leaf::entry(&salt, &text).to_vec(),
            receipt: text,
            ..good.clone()
        };
        let forged = committed(good.receipt.replace("success", "failure"));
        assert_eq!(verify(&forged).err(), Some(Code::RecordIntegrityMismatch));
        for bad in [
            committed(format!(" {}", good.receipt)),
            committed("{".to_owned()),
            EntryRecord {
                receipt: good.receipt.replace("success", "failure"),
                ..good.clone()
            },
            EntryRecord {
                salt: vec![8; 32],
                ..good.clone()
            },
            EntryRecord {
                salt: Vec::new(),
                ..good.clone()
            },
            EntryRecord {
                receipt_ref: "urn:cl:receipt:other".to_owned(),
                ..good.clone()
            },
            EntryRecord {
                supersedes_ref: Some(good.receipt_ref.clone()),
                ..good.clone()
            },
            EntryRecord {
                outcome: "failure".to_owned(),
                ..good.clone()
            },
            EntryRecord {
                bundle_ref: Some("urn:cl:bundle:x".to_owned()),
                ..good.clone()
            },
        ] {
            assert_eq!(verify(&bad).err(), invalid);
        }
    }
}
