//! Policies: which witnesses make a quorum, and what is no policy.

use cl_tlog::{
    Checkpoint, Error, Form, Hash, MAX_POLICY_BYTES, Policy, SignedCheckpoint, VerifierKey,
    WitnessAnswer,
};
use proptest::prelude::*;

use crate::signing::{name, signer, witness};

fn key(number: u8) -> String {
    witness(number).verifier_key().to_string()
}

/// Five witnesses in nested groups.
fn nested() -> String {
    let mut policy = format!(
        "# who\n\nlog {} https://log.example\n",
        signer("log.example").verifier_key()
    );
    for number in 1..=5 {
        policy += &format!(
            "witness\tw{number}  {} https://w{number}.example/\n",
            key(number)
        );
    }
    policy + "group pair all w1 w2\ngroup three 2 w3 w4 w5\ngroup top any pair three\nquorum top\n"
}

fn signed() -> SignedCheckpoint {
    let checkpoint = Checkpoint::new("log.example", 5, Hash::EMPTY).unwrap();
    SignedCheckpoint::sign(checkpoint, &[&signer("log.example")]).unwrap()
}

fn cosigned(by: &[u8]) -> SignedCheckpoint {
    let mut signed = signed();
    for number in by {
        signed
            .add(witness(*number).cosign(&signed, 7).unwrap())
            .unwrap();
    }
    signed
}

#[test]
fn a_policy_names_logs_witnesses_and_their_addresses() {
    let policy = Policy::parse(&nested()).unwrap();
    assert_eq!(
        policy.logs(),
        [signer("log.example").verifier_key().clone()]
    );
    let named: Vec<_> = policy.named_witnesses().iter().collect();
    assert_eq!(named.len(), 5);
    assert_eq!(named[0].name(), "w1");
    assert_eq!(named[0].key(), witness(1).verifier_key());
    assert_eq!(named[4].url(), Some("https://w5.example/"));
}

#[test]
fn groups_count_their_members() {
    let witnesses = Policy::parse(&nested()).unwrap().witnesses();
    for (by, is_enough) in [
        (&[][..], false),
        (&[1], false),
        (&[2], false),
        (&[1, 2], true),
        (&[1, 3], false),
        (&[1, 3, 4], true),
        (&[5, 3], true),
        (&[1, 2, 3, 4, 5], true),
        (&[9, 8], false),
    ] {
        let found = cosigned(by).cosignatures(&witnesses);
        assert_eq!(found.is_ok(), is_enough, "{by:?}");
        if let Err(error) = found {
            assert_eq!(error.code(), "quorum_not_reached");
            assert!(error.to_string().contains("quorum of 2"), "{error}");
        }
    }
    let none = Policy::parse("quorum none").unwrap().witnesses();
    assert!(signed().cosignatures(&none).unwrap().is_empty());
    let one = format!("witness a {}\nquorum a", key(1));
    let one = Policy::parse(&one).unwrap().witnesses();
    assert!(cosigned(&[1]).cosignatures(&one).is_ok());
    assert!(cosigned(&[2]).cosignatures(&one).is_err());
}

#[test]
fn what_is_no_policy_is_refused_by_its_line() {
    let (one, two) = (key(1), key(2));
    let two_witnesses = format!("witness a {one}\nwitness b {two}\n");
    let renamed = VerifierKey::new(
        name("other.example"),
        witness(1).verifier_key().algorithm(),
        *witness(1).verifier_key().public_key(),
    );
    for (text, line) in [
        (String::new(), 1),
        ("# nothing\n".to_owned(), 2),
        (two_witnesses.clone(), 3),
        ("quorum a".to_owned(), 1),
        ("quorum none\nquorum none".to_owned(), 2),
        ("quorum none none".to_owned(), 1),
        ("quorum".to_owned(), 1),
        ("Quorum none".to_owned(), 1),
        ("quorum none # as yet".to_owned(), 1),
        ("quorum\u{7f}none".to_owned(), 1),
        ("witness".to_owned(), 1),
        (format!("witness a {one} url more"), 1),
        (format!("witness none {one}"), 1),
        (format!("witness a {one}\nwitness a {two}"), 2),
        (format!("witness a {one}\nwitness b {one}"), 2),
        (format!("witness a {one}\nwitness b {renamed}"), 2),
        (
            format!("witness a {}", signer("log.example").verifier_key()),
            1,
        ),
        (format!("log {one}"), 1),
        (format!("{two_witnesses}group g 0 a b"), 3),
        (format!("{two_witnesses}group g 3 a b"), 3),
        (format!("{two_witnesses}group g 01 a b"), 3),
        (format!("{two_witnesses}group g -1 a b"), 3),
        (format!("{two_witnesses}group g some a b"), 3),
        (format!("{two_witnesses}group g all"), 3),
        (format!("{two_witnesses}group g all a c"), 3),
        (format!("{two_witnesses}group g all a a"), 3),
        (format!("{two_witnesses}group a all b"), 3),
        (format!("{two_witnesses}group none all b"), 3),
        (format!("{two_witnesses}group g any a\ngroup h any a b"), 4),
        (" ".repeat(MAX_POLICY_BYTES + 1), 1),
    ] {
        let refused = Policy::parse(&text).map(|_| ());
        assert_eq!(refused, Err(Error::Policy { line }), "{text}");
    }
}

#[test]
fn groups_are_not_nested_without_end() {
    let nested = |depth: usize| {
        let mut policy = format!("witness g0 {}\n", key(1));
        for level in 1..=depth {
            policy += &format!("group g{level} all g{}\n", level - 1);
        }
        policy + &format!("quorum g{depth}\n")
    };
    assert!(Policy::parse(&nested(8)).is_ok());
    assert_eq!(
        Policy::parse(&nested(9)).unwrap_err(),
        Error::Policy { line: 10 }
    );
}

#[test]
fn an_answer_is_a_good_cosignature_or_says_why_not() {
    let (signed, key) = (signed(), witness(1).verifier_key().clone());
    let line = witness(1).cosign(&signed, 7).unwrap();
    let other = witness(2).cosign(&signed, 7).unwrap();
    let parse = |status, body: String| WitnessAnswer::parse(status, body.as_bytes(), &signed, &key);
    assert_eq!(
        parse(200, format!("{line}\n")),
        Ok(WitnessAnswer::Cosigned(line.clone()))
    );
    let both = format!("{other}\n{line}\n");
    assert_eq!(parse(200, both), Ok(WitnessAnswer::Cosigned(line.clone())));
    assert_eq!(
        parse(409, "17\n".to_owned()),
        Ok(WitnessAnswer::OldSize(17))
    );
    assert_eq!(
        parse(422, "why".to_owned()),
        Ok(WitnessAnswer::Inconsistent)
    );
    assert_eq!(parse(503, String::new()), Ok(WitnessAnswer::Refused(503)));

    let malformed = Err(Error::Malformed(Form::WitnessAnswer));
    for body in [
        "17",
        "017\n",
        "-1\n",
        "17\n\n",
        "",
        "99999999999999999999\n",
    ] {
        assert_eq!(parse(409, body.to_owned()), malformed, "{body}");
    }
    assert_eq!(parse(200, String::new()), Err(Error::Unsigned));
    assert_eq!(parse(200, format!("{other}\n")), Err(Error::Unsigned));
    assert_eq!(
        parse(200, "text\n".to_owned()),
        Err(Error::Malformed(Form::Note))
    );
    let later = Checkpoint::new("log.example", 6, Hash::EMPTY).unwrap();
    let later = SignedCheckpoint::sign(later, &[&signer("log.example")]).unwrap();
    let elsewhere = witness(1).cosign(&later, 7).unwrap();
    assert_eq!(
        parse(200, format!("{elsewhere}\n")),
        Err(Error::BadSignature)
    );
    let not_text = WitnessAnswer::parse(200, &[0xff], &signed, &key);
    assert_eq!(not_text, malformed);
}

proptest! {
    #[test]
    fn any_text_is_a_policy_or_refused(
        lines in proptest::collection::vec(
            "(log|witness|group|quorum|#)?( |\\t)?[a-c0-9+/=]{0,6} ?(any|all|none|1|2)?( [a-c])*",
            0..12,
        ),
    ) {
        let text = lines.join("\n");
        if let Ok(policy) = Policy::parse(&text) {
            let _verdict = signed().cosignatures(&policy.witnesses());
        }
    }

    #[test]
    fn any_answer_is_read_or_refused(status in 100_u16..600, body: Vec<u8>) {
        let key = witness(1).verifier_key().clone();
        let answer = WitnessAnswer::parse(status, &body, &signed(), &key);
        prop_assert!(!matches!(answer, Ok(WitnessAnswer::Cosigned(_))));
    }
}
