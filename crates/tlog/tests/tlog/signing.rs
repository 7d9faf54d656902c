//! Keys, signed notes and cosignatures.

use cl_tlog::{
    Algorithm, Checkpoint, Cosigner, Ed25519Signer, Error, Form, Hash, KeyId, KeyName,
    MAX_NOTE_BYTES, MAX_SIGNATURES, Note, Signature, SignedCheckpoint, Signer, Verifier,
    VerifierKey, Witnesses,
};
use proptest::prelude::*;

const MALFORMED: Error = Error::Malformed(Form::Note);

pub(crate) fn name(text: &str) -> KeyName {
    KeyName::new(text).unwrap()
}

pub(crate) fn signer(text: &str) -> Ed25519Signer {
    Ed25519Signer::from_seed(name(text), &[text.len() as u8; 32]).unwrap()
}

pub(crate) fn witness(number: u8) -> Cosigner {
    Cosigner::from_seed(name(&format!("witness.example/{number}")), &[number; 32]).unwrap()
}

pub(crate) fn witnesses(numbers: &[u8], quorum: usize) -> Witnesses {
    let keys = numbers
        .iter()
        .map(|number| witness(*number).verifier_key().clone());
    Witnesses::new(keys.collect(), quorum).unwrap()
}

fn note(text: &str) -> String {
    Note::sign(text.to_owned(), &[&signer("log.example")])
        .unwrap()
        .to_string()
}

fn signed() -> SignedCheckpoint {
    let checkpoint = Checkpoint::new("log.example", 5, Hash::EMPTY).unwrap();
    SignedCheckpoint::sign(checkpoint, &[&signer("log.example")]).unwrap()
}

fn verify(signed: &SignedCheckpoint, witnesses: &Witnesses) -> Result<Vec<u64>, Error> {
    let log = signer("log.example");
    let verified = signed.verify("log.example", &[log.verifier_key()], witnesses)?;
    let cosignatures = verified.cosignatures().iter();
    Ok(cosignatures.map(cl_tlog::Cosignature::timestamp).collect())
}

#[test]
fn a_verifier_key_has_one_text() {
    let text = signer("log.example").verifier_key().to_string();
    let key = VerifierKey::parse(&text).unwrap();
    assert_eq!(key.algorithm(), Algorithm::Ed25519);
    assert_eq!(key.to_string(), text);
    let cosigning = witness(1).verifier_key().to_string();
    let cosigning = VerifierKey::parse(&cosigning).unwrap();
    assert_eq!(cosigning, *witness(1).verifier_key());
    assert_eq!(cosigning.algorithm(), Algorithm::Cosignature);

    let parts: Vec<_> = text.splitn(3, '+').collect();
    let (id, encoded) = (parts[1], parts[2]);
    for other in [
        String::new(),
        format!("log.example+{id}"),
        format!("+{id}+{encoded}"),
        format!("log example+{id}+{encoded}"),
        format!("log.exampl3+{id}+{encoded}"),
        format!("log.example+{}+{encoded}", id.to_uppercase()),
        format!("log.example+0{id}+{encoded}"),
        format!("log.example+00000000+{encoded}"),
        format!("log.example+{id}+{encoded}="),
        format!("log.example+{id}+{encoded}\n"),
        format!("log.example+{id}+"),
    ] {
        let refused = VerifierKey::parse(&other).unwrap_err();
        assert_eq!(refused, Error::Malformed(Form::VerifierKey), "{other}");
    }
}

#[test]
fn a_verifier_key_of_another_algorithm_is_named() {
    let id = KeyId::of(&name("k"), 2, b"abc");
    let refused = VerifierKey::parse(&format!("k+{id}+AmFiYw==")).unwrap_err();
    assert_eq!(refused, Error::UnknownAlgorithm(2));
    let id = KeyId::of(&name("k"), 1, b"abc");
    let refused = VerifierKey::parse(&format!("k+{id}+AWFiYw==")).unwrap_err();
    assert_eq!(refused, Error::Malformed(Form::VerifierKey));
}

#[test]
fn names_have_no_spaces_controls_or_plus() {
    for bad in [
        "",
        " ",
        "a b",
        "a+b",
        "a\u{a0}b",
        "a\u{2003}b",
        "a\u{85}b",
        "a\tb",
        "a\nb",
        "a\0b",
    ] {
        assert_eq!(KeyName::new(bad), None, "{bad:?}");
    }
    for good in ["a", "log.example/7", "ключ", "—"] {
        assert_eq!(KeyName::new(good).unwrap().as_str(), good);
    }
}

#[test]
fn a_note_keeps_its_text_and_every_signature() {
    for text in [
        "a\n",
        "\n",
        "a\n\n\nb\n",
        "a\n\n",
        "— not a signature\n",
        "é\n",
    ] {
        let text = note(text);
        let note = Note::parse(text.as_bytes()).unwrap();
        assert_eq!(note.to_string(), text);
        let key = signer("log.example");
        assert_eq!(note.verify(&[key.verifier_key()]).unwrap().len(), 1);
    }
}

#[test]
fn a_text_that_would_not_come_back_is_not_signed() {
    for text in [
        "",
        "a",
        "a\n\n— b AAAAAAA=",
        "a\n\n— b AAAAAAA=\n\n",
        "a\tb\n",
        "a\r\n",
        "a\0\n",
    ] {
        let signed = Note::sign(text.to_owned(), &[&signer("log.example")]);
        let same = signed.as_ref().is_ok_and(|note| note.text() == text);
        assert!(same || signed == Err(MALFORMED), "{text:?}");
    }
    assert_eq!(Note::sign("a\n".to_owned(), &[]), Err(MALFORMED));
}

#[test]
fn malformed_notes_are_refused() {
    let good = note("text\n");
    let (text, line) = good.split_once("\n\n").unwrap();
    let encoded = line.trim_end().rsplit(' ').next().unwrap();
    for bad in [
        String::new(),
        "\n".to_owned(),
        "\n\n".to_owned(),
        format!("{text}\n"),
        format!("{text}\n\n"),
        format!("{text}\n{line}"),
        format!("\n{line}"),
        good.trim_end().to_owned(),
        format!("{good}\n"),
        format!("{good}more\n"),
        good.replace("text", "te\rxt"),
        good.replace("text", "te\u{1f}xt"),
        good.replace('—', "-"),
        good.replace("— ", "—"),
        good.replace("— ", "—  "),
        good.replace(" log.example", " "),
        good.replace("log.example", "log+example"),
        good.replace("log.example ", "log.example  "),
        good.replace("log.example ", "log.example\u{a0} "),
        good.replace(encoded, encoded.trim_end_matches('=')),
        good.replace(encoded, "AAAAAA=="),
        good.replace(encoded, "AAAAAAA=AAAA"),
        good.replace(encoded, "AAAAAAB="),
        good.replace(encoded, "AAAAAAAA AAAA"),
        good.replace(encoded, &encoded.replace(['+', '/'], "-"))
            .replace(encoded, "-"),
    ] {
        assert_eq!(Note::parse(bad.as_bytes()), Err(MALFORMED), "{bad:?}");
    }
    assert_eq!(Note::parse(b"\xff\n\n"), Err(MALFORMED));
    let mut bytes = good.clone().into_bytes();
    bytes[1] = 0xff;
    assert_eq!(Note::parse(&bytes), Err(MALFORMED));
}

#[test]
fn a_note_has_a_limit_of_bytes_and_signatures() {
    let line = "— other.example AAAAAAA=\n";
    let many = |count| format!("a\n\n{}", line.repeat(count));
    assert!(Note::parse(many(MAX_SIGNATURES).as_bytes()).is_ok());
    assert_eq!(
        Note::parse(many(MAX_SIGNATURES + 1).as_bytes()),
        Err(MALFORMED)
    );
    let long = |bytes| format!("{}\n\n{line}", "a".repeat(bytes - line.len() - 2));
    assert!(Note::parse(long(MAX_NOTE_BYTES).as_bytes()).is_ok());
    assert_eq!(
        Note::parse(long(MAX_NOTE_BYTES + 1).as_bytes()),
        Err(MALFORMED)
    );
    let mut full = Note::parse(many(MAX_SIGNATURES).as_bytes()).unwrap();
    let one_more = Signature::parse("— another.example AAAAAAA=").unwrap();
    assert_eq!(full.add(one_more), Err(MALFORMED));
}

#[test]
fn signatures_by_other_keys_are_kept_and_ignored() {
    let (known, other) = (signer("log.example"), signer("log.example/other"));
    let mut note = Note::sign("a\n".to_owned(), &[&other, &known]).unwrap();
    let same_name = Signature::new(name("log.example"), KeyId::from([1; 4]), vec![1]).unwrap();
    note.add(same_name).unwrap();
    let same_id = Signature::new(name("x"), known.id(), vec![1]).unwrap();
    note.add(same_id).unwrap();
    let note = Note::parse(note.to_string().as_bytes()).unwrap();
    assert_eq!(note.signatures().len(), 4);
    let good = note.verify(&[known.verifier_key()]).unwrap();
    assert_eq!(good, [&note.signatures()[1]]);
    let stranger = signer("stranger");
    assert_eq!(
        note.verify(&[stranger.verifier_key()]),
        Err(Error::Unsigned)
    );
    assert_eq!(note.verify(&[]), Err(Error::Unsigned));
}

#[test]
fn a_wrong_or_second_signature_of_a_known_key_refuses_the_note() {
    let (log, other) = (signer("log.example"), signer("log.example/other"));
    let keys: [&dyn Verifier; 2] = [log.verifier_key(), other.verifier_key()];
    let note = Note::sign("a\n".to_owned(), &[&log, &other]).unwrap();
    assert_eq!(note.verify(&keys).unwrap().len(), 2);
    let mut wrong = note.clone();
    wrong
        .add(Signature::new(name("log.example"), log.id(), vec![0; 64]).unwrap())
        .unwrap();
    assert_eq!(wrong.verify(&keys), Err(Error::BadSignature));
    let line = note.signatures()[0].to_string();
    let twice = Note::parse(format!("{note}{line}\n").as_bytes()).unwrap();
    assert_eq!(twice.verify(&keys), Err(Error::DuplicateSignature));
    assert_eq!(twice.verify(&keys[1..]).unwrap().len(), 1);
}

#[test]
fn another_algorithm_can_be_plugged_in() {
    struct Reversed(KeyName);
    impl Signer for Reversed {
        fn name(&self) -> &KeyName {
            &self.0
        }
        fn id(&self) -> KeyId {
            KeyId::of(&self.0, 0xff, b"reversed")
        }
        fn sign(&self, text: &str) -> Result<Vec<u8>, Error> {
            Ok(text.bytes().rev().collect())
        }
    }
    impl Verifier for Reversed {
        fn name(&self) -> &KeyName {
            &self.0
        }
        fn id(&self) -> KeyId {
            Signer::id(self)
        }
        fn verifies(&self, text: &str, signature: &[u8]) -> bool {
            self.sign(text).is_ok_and(|expected| expected == signature)
        }
    }
    let key = Reversed(name("reversed.example"));
    let note = Note::sign("abc\n".to_owned(), &[&key]).unwrap();
    assert_eq!(note.verify(&[&key]).unwrap().len(), 1);
}

#[test]
fn cosignatures_are_counted_with_their_times() {
    let mut signed = signed();
    signed
        .add(witness(1).cosign(&signed, 1_700_000_000).unwrap())
        .unwrap();
    signed.add(witness(2).cosign(&signed, 0).unwrap()).unwrap();
    signed
        .add(witness(3).cosign(&signed, i64::MAX as u64).unwrap())
        .unwrap();
    let signed = SignedCheckpoint::parse(signed.to_string().as_bytes()).unwrap();
    let times = vec![1_700_000_000, i64::MAX as u64];
    assert_eq!(verify(&signed, &witnesses(&[3, 1, 9], 2)), Ok(times));
    assert_eq!(verify(&signed, &Witnesses::default()), Ok(Vec::new()));
    let missed = Error::QuorumNotReached {
        found: 2,
        quorum: 3,
    };
    assert_eq!(verify(&signed, &witnesses(&[1, 2, 8, 9], 3)), Err(missed));
}

#[test]
fn a_newer_cosignature_replaces_the_older_one() {
    let mut signed = signed();
    for time in [5, 9] {
        signed
            .add(witness(1).cosign(&signed, time).unwrap())
            .unwrap();
    }
    assert_eq!(verify(&signed, &witnesses(&[1], 1)), Ok(vec![9]));
}

#[test]
fn a_cosignature_holds_for_its_time_and_text_only() {
    let signed = signed();
    let good = witness(1).cosign(&signed, 7).unwrap();
    for byte in 0..good.bytes().len() {
        let mut bytes = good.bytes().to_vec();
        bytes[byte] ^= 1;
        let mut changed = signed.clone();
        changed
            .add(Signature::new(good.name().clone(), good.id(), bytes).unwrap())
            .unwrap();
        assert_eq!(
            verify(&changed, &witnesses(&[1], 0)),
            Err(Error::BadSignature),
            "{byte}"
        );
    }
    let other = Checkpoint::new("log.example", 6, Hash::EMPTY).unwrap();
    let mut other = SignedCheckpoint::sign(other, &[&signer("log.example")]).unwrap();
    other.add(good).unwrap();
    assert_eq!(
        verify(&other, &witnesses(&[1], 0)),
        Err(Error::BadSignature)
    );
    let beyond = i64::MAX as u64 + 1;
    assert_eq!(witness(1).cosign(&signed, beyond), Err(Error::SignerFailed));
}

#[test]
fn a_cosignature_is_no_signature_of_the_log() {
    let mut signed = signed();
    let log = signer("log.example");
    let as_witness = Cosigner::from_seed(name("log.example"), &[11; 32]).unwrap();
    assert_eq!(
        as_witness.verifier_key().public_key(),
        log.verifier_key().public_key()
    );
    assert_ne!(Verifier::id(as_witness.verifier_key()), Signer::id(&log));
    let note = Note::parse(
        signed
            .to_string()
            .replace("— log.example", "— other")
            .as_bytes(),
    );
    let cosignature = as_witness.cosign(&signed, 7).unwrap();
    let mut note = note.unwrap();
    note.add(cosignature.clone()).unwrap();
    assert_eq!(note.verify(&[log.verifier_key()]), Err(Error::Unsigned));
    signed.add(cosignature).unwrap();
    assert_eq!(verify(&signed, &Witnesses::default()), Ok(Vec::new()));
}

#[test]
fn witnesses_that_could_count_twice_or_never_are_refused() {
    let key = |number| witness(number).verifier_key().clone();
    let same_key = Cosigner::from_seed(name("another.name"), &[1; 32]).unwrap();
    let same_key = same_key.verifier_key().clone();
    let of_a_log = signer("log.example").verifier_key().clone();
    for (keys, quorum) in [
        (vec![key(1), key(1)], 1),
        (vec![key(1), same_key], 1),
        (vec![key(1), of_a_log], 1),
        (vec![key(1), key(2)], 3),
    ] {
        assert_eq!(
            Witnesses::new(keys, quorum).unwrap_err(),
            Error::InvalidWitnesses
        );
    }
}

proptest! {
    #[test]
    fn any_bytes_are_a_note_that_comes_back_or_are_refused(
        bytes in prop_oneof![
            any::<Vec<u8>>(),
            "[a\n—  =A+]{0,40}".prop_map(String::into_bytes),
            "(a\n){0,3}\n(— [ab]+ [A-D=]{8}\n){0,3}".prop_map(String::into_bytes),
        ],
    ) {
        if let Ok(note) = Note::parse(&bytes) {
            prop_assert_eq!(note.to_string().into_bytes(), bytes);
        }
    }

    #[test]
    fn any_changed_bit_of_a_signed_note_is_noticed(place: prop::sample::Index, bit in 0_u8..8) {
        let key = signer("log.example");
        let mut bytes = note("some text\n\nof a note\n").into_bytes();
        let at = place.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let verified = Note::parse(&bytes).and_then(|note| {
            note.verify(&[key.verifier_key()]).map(drop)
        });
        prop_assert!(verified.is_err());
    }
}
