//! What the fuzz target of the transparency log does with one input; the ordinary tests of `cl-tlog`
//! replay its corpus.

use std::convert::Infallible;

use cl_tlog::{
    AddCheckpoint, Checkpoint, Edge, Entry, Hash, Note, Policy, ProofFile, Signature,
    SignedCheckpoint, Tile, TilePath, VerifierKey, Witnesses,
};

/// Whatever is accepted, in whichever form, is written back as it was; nothing verifies without the
/// private key.
pub(crate) fn tlog(bytes: &[u8]) {
    if let Ok(entries) = Entry::parse_bundle(bytes) {
        assert_eq!(Entry::write_bundle(&entries).as_deref(), Ok(bytes));
    }
    let read = |_: Tile| Ok::<_, Infallible>(Some(bytes.to_vec()));
    assert!(
        Edge::load(300, Hash::EMPTY, &read).is_err(),
        "no tiles lead to this root"
    );
    if let Ok(note) = Note::parse(bytes) {
        assert_eq!(note.to_string().as_bytes(), bytes);
    }
    if let Ok(signed) = SignedCheckpoint::parse(bytes) {
        assert_eq!(signed.to_string().as_bytes(), bytes);
        nobody_signed(&signed);
    }
    if let Ok(file) = ProofFile::parse(bytes) {
        assert_eq!(file.to_string().as_bytes(), bytes);
        nobody_signed(&file.checkpoint);
    }
    if let Ok(request) = AddCheckpoint::parse(bytes) {
        assert_eq!(request.to_string().as_bytes(), bytes);
        nobody_signed(request.checkpoint());
    }
    if let Ok(text) = str::from_utf8(bytes) {
        short_texts(text);
    }
}

fn short_texts(text: &str) {
    if let Ok(policy) = Policy::parse(text) {
        let named = policy.named_witnesses().len();
        assert!(named <= text.lines().count(), "a line names one witness");
        let _quorum = policy.witnesses();
    }
    let written = [
        TilePath::parse(text).map(|path| path.to_string()),
        VerifierKey::parse(text).ok().map(|key| key.to_string()),
        Signature::parse(text).ok().map(|line| line.to_string()),
        Checkpoint::parse(text)
            .ok()
            .map(|checkpoint| checkpoint.to_string()),
    ];
    for written in written.into_iter().flatten() {
        assert_eq!(written, text);
    }
}

fn nobody_signed(signed: &SignedCheckpoint) {
    let key = "a+dabad067+AchTrQ8M0rYZrqks7sT9VqJNZJnVhM55JX5Fz9gTm2Cn";
    if let Ok(key) = VerifierKey::parse(key) {
        let origin = signed.checkpoint().origin();
        let verified = signed.verify(origin, &[&key], &Witnesses::default());
        assert!(verified.is_err(), "nobody can sign");
    }
}
