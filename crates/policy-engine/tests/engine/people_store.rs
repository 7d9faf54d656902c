//! The store's contract where people are concerned: what was used up is used up, for whoever read it
//! before.

use cl_model::digest::Digest;
use cl_model::scalar::Reference;
use cl_model::urn::{ApprovalId, CredentialId};
use cl_policy_engine::core::challenge::Challenge;
use cl_policy_engine::core::open_answers::MAX_OPEN;
use cl_policy_engine::store::people::{
    Approvals, Credential, CredentialState, Credentials, Enrolment, Link, OpenedAnswer,
    RefusedAnswer, Session, SignIn, Spent, Stored,
};
use cl_policy_engine::store::{KvStore, Store};

use crate::store::{conflicts, entry, now, store, tenant, used};

const PERSON: &str = "urn:person:owner";

fn person() -> Reference {
    Reference::new(PERSON).unwrap()
}

fn challenge(number: u8) -> Challenge {
    Challenge::new(now().plus_seconds(300), [number; 16])
}

fn token(number: u8) -> Digest {
    Digest::of_bytes(&[number])
}

fn credential(number: u8) -> Credential {
    let reference = format!("urn:cl:credential:0198f1b2-0000-7000-8000-0000000000{number:02x}");
    Credential {
        reference: CredentialId::parse(&reference).unwrap(),
        tenant: tenant(),
        principal: person(),
        id: vec![number; 16],
        key: vec![1],
        counter: 0,
        is_backup_eligible: false,
        state: CredentialState::Inactive,
        enrolled_at: now(),
    }
}

fn open_link(store: &KvStore, number: u8) -> Stored<Link> {
    let link = Link {
        tenant: tenant(),
        principal: person(),
        expires_at: now().plus_seconds(1800),
    };
    let number_of = u32::from(number);
    store
        .open_link(token(number), &link, used(b"link"), &entry(number_of))
        .unwrap();
    store.link(token(number)).unwrap().unwrap()
}

fn enrolment(link: (u8, Stored<Link>), by: u8, new: Credential, number: u32) -> Enrolment {
    Enrolment {
        challenge: challenge(by),
        link: (token(link.0), link.1),
        credential: new,
        operation: used(b"enrol"),
        entry: entry(number),
    }
}

fn enrolled(store: &KvStore) -> Stored<Credential> {
    let link = open_link(store, 1);
    let enrolment = enrolment((1, link), 1, credential(1), 0x10);
    store.enrol(&enrolment).unwrap();
    store.credential_by_id(&[1; 16]).unwrap().unwrap()
}

#[test]
fn a_link_a_challenge_and_a_passkey_are_used_once() {
    let store = store();
    let (one, other) = (open_link(&store, 1), open_link(&store, 2));
    store
        .enrol(&enrolment((1, one.clone()), 1, credential(1), 0x10))
        .unwrap();
    assert!(store.link(token(1)).unwrap().is_none());
    let by = Spent::By(entry(0x10).operation_id);
    assert!(store.spent(&challenge(1).id).unwrap() == Some(by));

    let again = enrolment((1, one), 2, credential(2), 0x11);
    assert!(conflicts(store.enrol(&again)), "the link");
    let again = enrolment((2, other.clone()), 1, credential(2), 0x12);
    assert!(conflicts(store.enrol(&again)), "the challenge");
    let again = enrolment((2, other.clone()), 3, credential(1), 0x13);
    assert!(conflicts(store.enrol(&again)), "the passkey");
    // Nothing of those that were refused is there.
    assert!(store.link(token(2)).unwrap().is_some());
    assert!(store.spent(&challenge(3).id).unwrap().is_none());
    assert!(store.credential_by_id(&[2; 16]).unwrap().is_none());
    assert_eq!(store.credentials(&tenant(), None, 10).unwrap().len(), 1);
    store
        .enrol(&enrolment((2, other), 3, credential(2), 0x14))
        .unwrap();
    let of = store.credentials_of(&tenant(), &person(), 10).unwrap();
    assert_eq!(of.len(), 2);
}

#[test]
fn a_sign_in_uses_its_challenge_up_and_never_lowers_a_counter() {
    let store = store();
    let read = enrolled(&store);
    let sign_in = |by: u8, read: &Stored<Credential>, counter: u32| SignIn {
        challenge: challenge(by),
        credential: read.clone(),
        counter,
        token: token(by),
        session: Session {
            tenant: tenant(),
            principal: person(),
            credential: read.value.reference.clone(),
            used_at: now(),
            expires_at: now().plus_seconds(60),
        },
    };
    store.sign_in(&sign_in(5, &read, 7)).unwrap();
    assert!(store.session(token(5)).unwrap().is_some());
    // The same challenge, and a counter that was judged by an older writing.
    let newer = store.credential_by_id(&[1; 16]).unwrap().unwrap();
    assert_eq!(newer.value.counter, 7);
    assert!(conflicts(store.sign_in(&sign_in(5, &newer, 8))));
    assert!(conflicts(store.sign_in(&sign_in(6, &read, 8))));
    assert!(store.session(token(6)).unwrap().is_none());
    assert!(store.spent(&challenge(6).id).unwrap().is_none());
    // A refused one uses its challenge up too.
    store
        .refuse_sign_in(&challenge(6), used(b"refuse"), &entry(0x20))
        .unwrap();
    assert!(conflicts(store.sign_in(&sign_in(6, &newer, 8))));
    let again = store.refuse_sign_in(&challenge(5), used(b"refuse"), &entry(0x21));
    assert!(conflicts(again));
    store.end_session(token(5)).unwrap();
    store.end_session(token(5)).unwrap();
    assert!(store.session(token(5)).unwrap().is_none());
}

#[test]
fn a_credential_turns_from_the_state_that_was_read() {
    let store = store();
    let read = enrolled(&store);
    let turn = |read: &Stored<Credential>, state, number| {
        store.turn_credential(read, state, used(b"turn"), &entry(number))
    };
    turn(&read, CredentialState::Revoked, 0x20).unwrap();
    assert!(conflicts(turn(&read, CredentialState::Active, 0x21)));
    let turned = store.credential(&tenant(), &read.value.reference).unwrap();
    assert_eq!(turned.unwrap().value.state, CredentialState::Revoked);
}

fn opened(number: u8) -> OpenedAnswer {
    let approval = "urn:cl:approval:0198f1b2-0000-7000-8000-000000000001";
    OpenedAnswer {
        tenant: tenant(),
        principal: person(),
        approval: ApprovalId::parse(approval).unwrap(),
        item: token(number),
        document: vec![number],
        expires_at: now().plus_seconds(300),
        spent_by: None,
    }
}

fn open(store: &KvStore, number: u8) {
    let read = store.open_answers(&tenant(), &person()).unwrap();
    store
        .open_answer(&[number; 16], &opened(number), read)
        .unwrap();
}

#[test]
fn a_person_holds_a_bounded_number_of_answers_also_in_a_race() {
    let store = store();
    let before = store.open_answers(&tenant(), &person()).unwrap();
    assert!(before.is_none());
    open(&store, 1);
    // Whoever has not seen the first one cannot add a second.
    let blind = store.open_answer(&[2; 16], &opened(2), None);
    assert!(conflicts(blind));
    assert!(store.opened_answer(&[2; 16]).unwrap().is_none());
    for number in 2..=9 {
        open(&store, number);
    }
    assert!(store.opened_answer(&[1; 16]).unwrap().is_none());
    assert!(store.opened_answer(&[2; 16]).unwrap().is_some());
    let now_open = store.open_answers(&tenant(), &person()).unwrap().unwrap();
    assert_eq!(now_open.value.open.len(), MAX_OPEN);
}

#[test]
fn an_answer_is_refused_once_and_counted() {
    let store = store();
    open(&store, 1);
    let refusal = |number| RefusedAnswer {
        opened: ([1; 16], store.opened_answer(&[1; 16]).unwrap().unwrap()),
        read: store.open_answers(&tenant(), &person()).unwrap(),
        now: now(),
        operation: used(b"refuse"),
        entry: entry(number),
    };
    let (first, late) = (refusal(0x20), refusal(0x21));
    store.refuse_answer(&first).unwrap();
    assert!(conflicts(store.refuse_answer(&late)));
    let counted = store.open_answers(&tenant(), &person()).unwrap().unwrap();
    assert_eq!(counted.value.refused, 1);
    let spent = store.opened_answer(&[1; 16]).unwrap().unwrap();
    assert!(spent.value.spent_by == Some(Spent::Unnamed));
    let operation = entry(0x21).operation_id;
    assert!(store.outstanding(&tenant(), &operation).unwrap().is_none());
}
