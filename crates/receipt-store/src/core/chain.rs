//! The chain of entries, byte for byte that of the portable log (`cl_model::log`), so that the log
//! can be exported line by line.

use cl_model::digest::Digest;
use cl_model::json::{self, Limits};
use cl_model::object::Receipt;
use cl_model::receipt::{self, MAX_RECEIPT_BYTES};
use cl_model::refusal::Code;
use cl_model::{canonical, record};

use super::records::EntryRecord;

/// The digest of an entry: over its canonical form without the digest itself.
pub fn entry_digest(sequence: u64, previous: Digest, receipt: &str) -> Digest {
    let unlinked = format!(
        r#"{{"log_version":1,"previous_entry_digest":"{previous}","receipt":{receipt},"sequence":{sequence}}}"#
    );
    Digest::of_bytes(unlinked.as_bytes())
}

/// The entry as one line of the portable log, its final line feed included.
pub fn line(sequence: u64, previous: Digest, receipt: &str) -> String {
    let digest = entry_digest(sequence, previous, receipt);
    format!(
        r#"{{"entry_digest":"{digest}","log_version":1,"previous_entry_digest":"{previous}","receipt":{receipt},"sequence":{sequence}}}"#
    ) + "\n"
}

/// Checks an entry's place in the chain and its receipt, by every rule of the specification.
///
/// # Errors
///
/// [`Code::ReceiptLogChainMismatch`], [`Code::ReceiptLogInvalidEntry`] (the record does not say
/// what its receipt says), or those of [`receipt::check`].
pub fn verify(sequence: u64, previous: Digest, entry: &EntryRecord) -> Result<Receipt, Code> {
    let digest = entry_digest(sequence, previous, &entry.receipt);
    if entry.previous != previous.as_bytes() || entry.digest != digest.as_bytes() {
        return Err(Code::ReceiptLogChainMismatch);
    }
    let value = json::parse(entry.receipt.as_bytes(), Limits::network(MAX_RECEIPT_BYTES))
        .ok()
        .filter(|value| canonical::to_text(value) == entry.receipt)
        .ok_or(Code::ReceiptLogInvalidEntry)?;
    let receipt = receipt::check(&value).map_err(|refusal| refusal.code())?;
    let supersedes = supersedes_ref(&receipt);
    if receipt.id.as_str() != entry.receipt_ref || supersedes != entry.supersedes_ref {
        return Err(Code::ReceiptLogInvalidEntry);
    }
    Ok(receipt)
}

/// The URN of the receipt that this one supersedes.
pub fn supersedes_ref(receipt: &Receipt) -> Option<String> {
    let reference = receipt.supersedes_ref.as_ref()?;
    reference.get().map(|id| id.as_str().to_owned())
}

/// A whole receipt that was checked: what can become an entry.
#[derive(Clone)]
pub struct Finished {
    receipt: Receipt,
    text: String,
}

impl Finished {
    /// Completes a receipt by its computed members, and checks it.
    pub fn new(members: serde_json::Value) -> Result<Self, cl_model::refusal::Refusal> {
        let record = record::finalize(members, cl_model::urn::ReceiptId::PREFIX)?;
        Ok(Self {
            receipt: receipt::check(record.value())?,
            text: record.text().to_owned(),
        })
    }

    /// Checks a receipt that has its computed members.
    pub fn check(value: &serde_json::Value) -> Result<Self, cl_model::refusal::Refusal> {
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

#[cfg(test)]
mod tests {
    use cl_model::log::LogState;
    use cl_model::object::Outcome;
    use cl_model::receipt::Draft;
    use cl_model::record::Record;
    use cl_model::time::UnixTime;

    use super::*;

    fn receipt(number: u64) -> Record {
        Draft::new(
            "bundle.issue",
            "urn:a:b",
            "urn:cl:alias:x",
            Outcome::Success,
            "A receipt.",
            UnixTime::from_milliseconds(1_900_000_000_000),
        )
        .with_metadata("number", &number.to_string())
        .finish()
        .unwrap()
    }

    fn entry(sequence: u64, previous: Digest, receipt: &str, receipt_ref: &str) -> EntryRecord {
        EntryRecord {
            previous: previous.as_bytes().to_vec(),
            digest: entry_digest(sequence, previous, receipt)
                .as_bytes()
                .to_vec(),
            receipt: receipt.to_owned(),
            receipt_ref: receipt_ref.to_owned(),
            ..EntryRecord::default()
        }
    }

    #[test]
    fn verifies_place_receipt_and_what_is_said_about_it() {
        let receipt = receipt(1);
        let (text, id) = (receipt.text(), receipt.value()["id"].as_str().unwrap());
        let previous = Digest::of_bytes(b"before");
        let good = entry(7, previous, text, id);
        assert!(verify(7, previous, &good).is_ok());

        let chain = Err(Code::ReceiptLogChainMismatch);
        let failure =
            |sequence, previous, entry: &EntryRecord| verify(sequence, previous, entry).map(|_| ());
        assert_eq!(failure(8, previous, &good), chain);
        assert_eq!(failure(7, Digest::ZERO, &good), chain);
        let changed = EntryRecord {
            receipt: text.replace("success", "failure"),
            ..good.clone()
        };
        assert_eq!(failure(7, previous, &changed), chain);

        // Whoever can write entries can link anything; it must still be a receipt.
        let linked = |text: &str, id| failure(7, previous, &entry(7, previous, text, id));
        let forged = text.replace("success", "failure");
        assert_eq!(linked(&forged, id), Err(Code::RecordIntegrityMismatch));
        let invalid = Err(Code::ReceiptLogInvalidEntry);
        assert_eq!(linked(&format!(" {text}"), id), invalid);
        assert_eq!(linked("{", id), invalid);
        assert_eq!(linked(text, "urn:cl:receipt:other"), invalid);
        let superseding = EntryRecord {
            supersedes_ref: Some(id.to_owned()),
            ..good
        };
        assert_eq!(failure(7, previous, &superseding), invalid);
    }

    #[test]
    fn lines_are_those_of_the_portable_log() {
        let mut log = LogState::empty();
        let mut previous = Digest::ZERO;
        let mut exported = String::new();
        for sequence in 1..=3 {
            let receipt = receipt(sequence);
            let expected = log.append(&receipt).unwrap();
            assert_eq!(line(sequence, previous, receipt.text()), expected);
            previous = entry_digest(sequence, previous, receipt.text());
            assert_eq!(previous, log.tail());
            exported += &expected;
        }
        assert!(LogState::verify(exported.as_bytes()).is_ok());
    }
}
