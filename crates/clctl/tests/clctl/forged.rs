//! Logs that a home's own key signed, whatever is in them.

use std::convert::Infallible;
use std::fs;
use std::path::Path;

use cl_model::leaf::{self, Salt};
use cl_model::log::LogState;
use cl_model::object::Outcome;
use cl_model::receipt::Draft;
use cl_model::record::Record;
use cl_model::time::UnixTime;
use cl_model::{canonical, record};
use cl_tlog::{
    Algorithm, Checkpoint, Edge, Entry, Error, KeyId, KeyName, ProofFile, Prover, SignedCheckpoint,
    Signer, Tile, TilePath, Verifier, VerifierKey,
};
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};

use crate::support::TestHome;

/// The private key of a log.
pub(crate) struct LogKey {
    pair: Ed25519KeyPair,
    verifier: VerifierKey,
}

impl LogKey {
    /// The key of a home, under this name.
    pub(crate) fn of_home(home: &TestHome, origin: &str) -> Self {
        let pem = fs::read(home.path("keys/receipts.pem")).unwrap();
        let document = PrivatePkcs8KeyDer::from_pem_slice(&pem).unwrap();
        Self::of_document(document.secret_pkcs8_der(), origin)
    }

    /// A key that nobody trusts.
    pub(crate) fn fresh(origin: &str) -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::of_document(document.as_ref(), origin)
    }

    fn of_document(document: &[u8], origin: &str) -> Self {
        let pair = Ed25519KeyPair::from_pkcs8(document).unwrap();
        let public_key = pair.public_key().as_ref().try_into().unwrap();
        let name = KeyName::new(origin).unwrap();
        Self {
            verifier: VerifierKey::new(name, Algorithm::Ed25519, public_key),
            pair,
        }
    }

    pub(crate) fn origin(&self) -> &str {
        self.verifier.name().as_str()
    }

    /// The public half.
    pub(crate) fn text(&self) -> String {
        self.verifier.to_string()
    }
}

impl Signer for LogKey {
    fn name(&self) -> &KeyName {
        self.verifier.name()
    }

    fn id(&self) -> KeyId {
        self.verifier.id()
    }

    fn sign(&self, text: &str) -> Result<Vec<u8>, Error> {
        Ok(self.pair.sign(text.as_bytes()).as_ref().to_vec())
    }
}

/// A receipt to be put into a log.
#[derive(Clone)]
pub(crate) struct Forged {
    /// With `id` and `integrity`.
    pub(crate) receipt: Value,
    /// Milliseconds.
    pub(crate) recorded_at: i64,
}

impl Forged {
    /// The receipt after a change of its members; its id follows.
    pub(crate) fn changed(number: u64, change: impl FnOnce(&mut Value)) -> Self {
        let now = UnixTime::from_milliseconds(1_900_000_000_000);
        let draft = Draft::new(
            "tea.brew",
            "urn:a:b",
            "urn:cl:alias:x",
            Outcome::Success,
            "Tea.",
            now,
        );
        let draft = draft.with_metadata("number", &number.to_string());
        let members = draft.members().unwrap();
        let mut members = serde_json::from_slice(&members).unwrap();
        change(&mut members);
        let record = record::finalize(members, "urn:cl:receipt:").unwrap();
        Self {
            receipt: record.into_value(),
            recorded_at: 1_900_000_000_000 + i64::try_from(number).unwrap(),
        }
    }
}

/// Receipts with nothing wrong.
pub(crate) fn receipts(count: u64) -> Vec<Forged> {
    (0..count)
        .map(|number| Forged::changed(number, |_| ()))
        .collect()
}

/// Writes a folder as an export is, of these receipts; a receipt that breaks a rule has no line in the
/// portable log.
pub(crate) fn write(home: &TestHome, name: &str, key: &LogKey, receipts: &[Forged]) -> String {
    let folder = home.beside(name);
    let root = Path::new(&folder);
    let put = |path: &str, bytes: &[u8]| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    };
    let texts: Vec<_> = receipts
        .iter()
        .map(|it| canonical::to_text(&it.receipt))
        .collect();
    let salt = Salt::new([7; 32]);
    let leaves: Vec<_> = texts.iter().map(|text| leaf::entry(&salt, text)).collect();
    let entries: Vec<_> = leaves
        .iter()
        .map(|leaf| Entry::new(leaf).unwrap())
        .collect();
    let appended = Edge::default().append(&entries).unwrap();
    for (tile, bytes) in appended.tiles() {
        put(&tile.to_string(), &bytes);
    }
    let size = appended.edge().size();
    for tile in Tile::all_of(size).filter(|tile| tile.level() == 0) {
        let first = usize::try_from(tile.index()).unwrap() * 256;
        let bundle = &entries[first..first + usize::from(tile.width())];
        let bundle = Entry::write_bundle(bundle).unwrap();
        put(&TilePath::Entries(tile).to_string(), &bundle);
    }
    let checkpoint = Checkpoint::new(key.origin(), size, appended.edge().root()).unwrap();
    let checkpoint = SignedCheckpoint::sign(checkpoint, &[key]).unwrap();
    let mut prover: Prover<_> = appended.prover(|_: Tile| Ok::<_, Infallible>(None));
    let mut portable = LogState::empty();
    let (mut lines, mut log) = (String::new(), String::new());
    for (index, forged) in (0..).zip(receipts) {
        let proof = ProofFile {
            extra: salt.as_bytes().to_vec(),
            index,
            proof: prover.inclusion(index).unwrap(),
            checkpoint: checkpoint.clone(),
        };
        let line = json!({
            "sequence": index + 1,
            "recorded_at": UnixTime::from_milliseconds(forged.recorded_at).to_string(),
            "writer": "spiffe://context-layer.local/a/b",
            "attestation": "authority",
            "receipt": forged.receipt,
            "proof": proof.to_string(),
        });
        lines += &(canonical::to_text(&line) + "\n");
        log += &portable
            .append(&record_of(&forged.receipt))
            .unwrap_or_default();
    }
    put("receipts.jsonl", lines.as_bytes());
    put("portable/receipts.log", log.as_bytes());
    put("key", format!("{}\n", key.text()).as_bytes());
    put("checkpoint", checkpoint.to_string().as_bytes());
    folder
}

fn record_of(receipt: &Value) -> Record {
    let mut members = receipt.clone();
    members.as_object_mut().unwrap().remove("id");
    members.as_object_mut().unwrap().remove("integrity");
    record::finalize(members, "urn:cl:receipt:").unwrap()
}
