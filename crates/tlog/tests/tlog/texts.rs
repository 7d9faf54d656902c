//! Checkpoints, proof files and witness requests.

use cl_tlog::{
    AddCheckpoint, Checkpoint, Error, Form, Hash, MAX_PROOF_FILE_BYTES, ProofFile,
    SignedCheckpoint, Witnesses,
};
use proptest::prelude::*;

use crate::naive::{consistency, entries, inclusion, root};
use crate::signing::{signer, witness, witnesses};

const ORIGIN: &str = "log.example";

fn signed(size: usize) -> SignedCheckpoint {
    let checkpoint = Checkpoint::new(ORIGIN, size as u64, root(&entries(size))).unwrap();
    SignedCheckpoint::sign(checkpoint, &[&signer(ORIGIN)]).unwrap()
}

fn proof_file(index: usize, size: usize) -> ProofFile {
    ProofFile {
        extra: b"anything".to_vec(),
        index: index as u64,
        proof: inclusion(index, &entries(size)),
        checkpoint: signed(size),
    }
}

fn verify(file: &ProofFile, entry: usize, witnesses: &Witnesses) -> Result<(), Error> {
    let leaf = Hash::of_leaf(&entries(entry + 1)[entry]);
    let key = signer(ORIGIN);
    file.verify(leaf, ORIGIN, &[key.verifier_key()], witnesses)
        .map(drop)
}

#[test]
fn a_checkpoint_keeps_its_lines() {
    let root = root(&entries(3));
    let text = format!("log.example with spaces+\n3\n{root}\nmore\n— lines\n");
    let checkpoint = Checkpoint::parse(&text).unwrap();
    assert_eq!(checkpoint.origin(), "log.example with spaces+");
    assert_eq!((checkpoint.size(), checkpoint.root()), (3, root));
    assert_eq!(checkpoint.extensions(), ["more", "— lines"]);
    assert_eq!(checkpoint.to_string(), text);
    let largest = Checkpoint::new("o", u64::MAX, root).unwrap();
    assert_eq!(Checkpoint::parse(&largest.to_string()), Ok(largest));
}

#[test]
fn a_checkpoint_in_another_spelling_is_refused() {
    let root = root(&entries(3));
    let encoded = root.to_string();
    for bad in [
        String::new(),
        format!("o\n3\n{root}"),
        format!("o\n{root}\n"),
        format!("\n3\n{root}\n"),
        format!("o\n\n{root}\n"),
        format!("o\n03\n{root}\n"),
        format!("o\n00\n{}\n", Hash::EMPTY),
        format!("o\n+3\n{root}\n"),
        format!("o\n-3\n{root}\n"),
        format!("o\n 3\n{root}\n"),
        format!("o\n3 \n{root}\n"),
        format!("o\n٣\n{root}\n"),
        format!("o\n18446744073709551616\n{root}\n"),
        format!("o\n0\n{root}\n"),
        format!("o\n3\n{root}\n\n"),
        format!("o\n3\n{root}\n\nmore\n"),
        format!("o\n3\n{root}\nmore"),
        format!("o\n3\n{} \n", root),
        format!("o\n3\n{}\n", encoded.trim_end_matches('=')),
        format!("o\n3\n{}\n", encoded.replace('=', "A=")),
        "o\n3\nAAAA\n".to_owned(),
        format!("o\n3\n{}B=\n", "A".repeat(42)),
    ] {
        let refused = Checkpoint::parse(&bad).unwrap_err();
        assert_eq!(refused, Error::Malformed(Form::Checkpoint), "{bad:?}");
    }
    for origin in ["", "a\nb", "a\n", "a\n3\nb"] {
        assert!(Checkpoint::new(origin, 3, root).is_err());
    }
    assert!(Checkpoint::new("o", 0, root).is_err());
    assert!(Checkpoint::new("o", 0, Hash::EMPTY).is_ok());
}

#[test]
fn a_checkpoint_is_of_the_expected_origin_and_key() {
    let (signed, key, other) = (signed(3), signer(ORIGIN), signer("other.example"));
    let none = Witnesses::default();
    let verify = |origin, key| signed.verify(origin, &[key], &none).map(drop);
    assert_eq!(verify(ORIGIN, key.verifier_key()), Ok(()));
    assert_eq!(
        verify("log.exampl", key.verifier_key()),
        Err(Error::OriginMismatch)
    );
    assert_eq!(verify(ORIGIN, other.verifier_key()), Err(Error::Unsigned));
    let retired_and_new = signed.verify(ORIGIN, &[other.verifier_key(), key.verifier_key()], &none);
    assert_eq!(retired_and_new.unwrap().checkpoint(), signed.checkpoint());
}

#[test]
fn extension_lines_are_signed() {
    let text = format!("{}one more\n", signed(3).checkpoint());
    let checkpoint = Checkpoint::parse(&text).unwrap();
    let signed = SignedCheckpoint::sign(checkpoint, &[&signer(ORIGIN)]).unwrap();
    assert_eq!(signed.note().text(), text);
    let changed = signed.to_string().replace("one more", "one less");
    let changed = SignedCheckpoint::parse(changed.as_bytes()).unwrap();
    let key = signer(ORIGIN);
    let verified = changed.verify(ORIGIN, &[key.verifier_key()], &Witnesses::default());
    assert_eq!(verified, Err(Error::BadSignature));
}

#[test]
fn checkpoints_of_one_log_are_consistent() {
    let (old, new) = (signed(7), signed(20));
    let proof = consistency(7, &entries(20));
    let (old, new) = (old.checkpoint(), new.checkpoint());
    assert_eq!(new.verify_consistency(old, &proof), Ok(()));
    assert!(old.verify_consistency(new, &proof).is_err());
    let other = Checkpoint::new("other.example", 7, old.root()).unwrap();
    assert_eq!(
        new.verify_consistency(&other, &proof),
        Err(Error::OriginMismatch)
    );
}

#[test]
fn a_proof_file_is_verified_offline() {
    for (index, size) in [(0, 1), (0, 2), (4, 5), (5, 300)] {
        let file = proof_file(index, size);
        let text = file.to_string();
        assert!(text.starts_with("c2sp.org/tlog-proof@v1\nextra YW55dGhpbmc=\nindex "));
        let file = ProofFile::parse(text.as_bytes()).unwrap();
        assert_eq!(file.extra, b"anything");
        assert_eq!(file.to_string(), text);
        assert_eq!(verify(&file, index, &Witnesses::default()), Ok(()));
        assert_eq!(
            verify(&file, index + 1, &Witnesses::default()),
            Err(Error::RootMismatch)
        );
    }
    let without = ProofFile {
        extra: Vec::new(),
        ..proof_file(0, 1)
    };
    let text = without.to_string();
    assert!(text.starts_with("c2sp.org/tlog-proof@v1\nindex 0\n\nlog.example\n1\n"));
    assert_eq!(ProofFile::parse(text.as_bytes()), Ok(without));
}

#[test]
fn extra_data_does_not_print() {
    let mut file = proof_file(0, 1);
    file.extra = b"canary".to_vec();
    let printed = format!("{file:?}");
    assert!(!printed.contains("canary") && !printed.contains("99, 97, 110"));
}

#[test]
fn a_proof_file_can_need_witnesses() {
    let mut file = proof_file(3, 9);
    assert_eq!(
        verify(&file, 3, &witnesses(&[1, 2], 1)).unwrap_err().code(),
        "quorum_not_reached"
    );
    let cosignature = witness(2).cosign(&file.checkpoint, 1_700_000_000).unwrap();
    file.checkpoint.add(cosignature).unwrap();
    assert_eq!(verify(&file, 3, &witnesses(&[1, 2], 1)), Ok(()));
}

#[test]
fn a_proof_file_in_another_spelling_is_refused() {
    let good = proof_file(0, 3).to_string();
    let first = proof_file(0, 3).proof[0].to_string();
    for bad in [
        String::new(),
        good.replace("@v1", "@v2"),
        good.replace("tlog-proof@v1\n", "tlog-proof@v1\r\n"),
        good.replace("extra YW55dGhpbmc=", "extra "),
        good.replace("extra YW55dGhpbmc=", "extra"),
        good.replace("extra YW55dGhpbmc=", "extra YW55dGhpbmc"),
        good.replace(
            "extra YW55dGhpbmc=\n",
            "extra YW55dGhpbmc=\nextra YW55dGhpbmc=\n",
        ),
        good.replace(
            "extra YW55dGhpbmc=\nindex 0\n",
            "index 0\nextra YW55dGhpbmc=\n",
        ),
        good.replace("index 0", "index 00"),
        good.replace("index 0", "index +0"),
        good.replace("index 0", "index  0"),
        good.replace("index 0", "Index 0"),
        good.replace("index 0", "index 18446744073709551616"),
        good.replace("index 0\n", ""),
        good.replace(&first, first.trim_end_matches('=')),
        good.replace(&first, &format!(" {first}")),
        good.replace(&format!("{first}\n"), &format!("{first}\n").repeat(64)),
        good.replace("\n\nlog", "\nlog"),
        good.replace("\n\nlog", "\n\n\nlog"),
        good.trim_end().to_owned(),
    ] {
        assert!(ProofFile::parse(bad.as_bytes()).is_err(), "{bad}");
        assert_ne!(bad, good);
    }
    let mut long = proof_file(0, 3);
    long.extra = vec![0; MAX_PROOF_FILE_BYTES * 3 / 4];
    let refused = ProofFile::parse(long.to_string().as_bytes()).unwrap_err();
    assert_eq!(refused, Error::Malformed(Form::ProofFile));
}

#[test]
fn a_request_to_a_witness_comes_back() {
    for (old, new) in [(0, 1), (0, 20), (7, 20), (8, 20), (20, 20)] {
        let proof = consistency(old, &entries(new));
        let request = AddCheckpoint::new(old as u64, proof, signed(new)).unwrap();
        let parsed = AddCheckpoint::parse(request.to_string().as_bytes()).unwrap();
        assert_eq!(parsed, request);
        let (from, checkpoint) = (parsed.old_size(), parsed.checkpoint().checkpoint());
        let before = Checkpoint::new(ORIGIN, from, root(&entries(old))).unwrap();
        assert_eq!(
            checkpoint.verify_consistency(&before, parsed.proof()),
            Ok(())
        );
    }
}

#[test]
fn a_request_that_no_witness_takes_is_refused() {
    let malformed = Error::Malformed(Form::AddCheckpoint);
    let hashes = |count| vec![Hash::EMPTY; count];
    assert!(AddCheckpoint::new(1, hashes(63), signed(5)).is_ok());
    for (old, proof) in [(6, 0), (0, 1), (1, 64)] {
        let refused = AddCheckpoint::new(old, hashes(proof), signed(5));
        assert_eq!(refused, Err(malformed));
    }
    let good = AddCheckpoint::new(4, hashes(2), signed(5))
        .unwrap()
        .to_string();
    for bad in [
        good.replace("old 4", "old 04"),
        good.replace("old 4", "old 6"),
        good.replace("old 4", "old"),
        good.replace("old 4", "new 4"),
        good.replace("\n\nlog", "\nlog"),
        good.replace("old 4\n", "old 4\n\n"),
        good.trim_end().to_owned(),
    ] {
        assert!(AddCheckpoint::parse(bad.as_bytes()).is_err(), "{bad}");
        assert_ne!(bad, good);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn any_changed_bit_of_a_proof_file_is_noticed(
        index in 0_usize..40,
        place: prop::sample::Index,
        bit in 0_u8..8,
    ) {
        let file = ProofFile { extra: Vec::new(), ..proof_file(index, 40) };
        let mut bytes = file.to_string().into_bytes();
        let at = place.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let verified = ProofFile::parse(&bytes)
            .and_then(|file| verify(&file, index, &Witnesses::default()));
        prop_assert!(verified.is_err(), "byte {}", at);
    }

    #[test]
    fn any_text_is_read_as_it_is_written_or_refused(
        text in "(c2sp.org/tlog-proof@v1\n)?(extra [A-D=]{4}\n)?((index|old) [0-3]{1,2}\n)?\
            (A{43}=\n){0,2}\n?(o\n)?([0-3]{1,2}\n)?(A{43}=\n)?([a-c]{0,2}\n){0,2}(\n— a A{6}E=\n)?",
    ) {
        if let Ok(checkpoint) = Checkpoint::parse(&text) {
            prop_assert_eq!(checkpoint.to_string(), text.as_str());
        }
        if let Ok(file) = ProofFile::parse(text.as_bytes()) {
            prop_assert_eq!(file.to_string(), text.as_str());
        }
        if let Ok(request) = AddCheckpoint::parse(text.as_bytes()) {
            prop_assert_eq!(request.to_string(), text.as_str());
        }
    }

    #[test]
    fn no_bytes_panic(bytes: Vec<u8>) {
        let _ = ProofFile::parse(&bytes);
        let _ = AddCheckpoint::parse(&bytes);
        let _ = SignedCheckpoint::parse(&bytes);
    }
}
