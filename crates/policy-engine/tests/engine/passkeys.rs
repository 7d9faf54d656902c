//! Passkeys: enrolment, sign-in, counters, sessions.

use cl_authenticator::{Authenticator, BACKUP_ELIGIBLE, BACKUP_STATE, Page};
use cl_testbed::{refusal, refused};
use cl_wire::policy::v1::{
    BeginEnrolmentRequest, CredentialState, EndSessionRequest, FinishEnrolmentRequest,
};
use tonic::Code;

use crate::documents::{gated, operation};
use crate::people::{OWNER, grant_all, page};
use crate::support::{ORIGIN, World};

#[tokio::test]
async fn a_passkey_counts_once_it_is_confirmed_and_until_it_is_revoked() {
    let world = World::new().await;
    let running = world.ready().await;
    for (round, authenticator) in [
        Authenticator::p256(page()).unwrap(),
        Authenticator::ed25519(page()).unwrap(),
    ]
    .into_iter()
    .enumerate()
    {
        let number = 0x100 * (1 + u32::try_from(round).unwrap());
        let unknown = running.sign_in(&authenticator).await;
        assert_eq!(
            refusal(unknown),
            refused(Code::PermissionDenied, "CREDENTIAL_UNKNOWN")
        );
        let link = running.link(OWNER, number).await.unwrap();
        let fingerprint = running
            .enrol(&authenticator, &link, number + 1)
            .await
            .unwrap();
        let inactive = running.sign_in(&authenticator).await;
        assert_eq!(
            refusal(inactive),
            refused(Code::PermissionDenied, "CREDENTIAL_INACTIVE")
        );
        let credential = running.confirm(&fingerprint, number + 2).await.unwrap();
        let session = running.sign_in(&authenticator).await.unwrap();
        assert!(running.queue(&session).await.is_ok());
        running.revoke_credential(&credential, number + 3).await;
        let ended = refused(Code::Unauthenticated, "SESSION_NOT_OPEN");
        assert_eq!(refusal(running.queue(&session).await), ended);
        let revoked = refused(Code::PermissionDenied, "CREDENTIAL_REVOKED");
        assert_eq!(refusal(running.sign_in(&authenticator).await), revoked);
        // Revoked is final, and a repeat is fine.
        assert_eq!(
            refusal(running.confirm(&fingerprint, number + 4).await),
            revoked
        );
        running.revoke_credential(&credential, number + 5).await;
    }
    let states: Vec<_> = running
        .credentials()
        .await
        .iter()
        .map(|it| it.state())
        .collect();
    assert_eq!(states, [CredentialState::Revoked; 2]);
    for (name, count) in [
        ("policy.open_enrolment", 2),
        ("policy.enrol_credential", 2),
        ("policy.confirm_credential", 2),
        ("policy.revoke_credential", 2),
    ] {
        assert_eq!(world.receipts.of(name).len(), count, "{name}");
    }
}

#[tokio::test]
async fn nobody_is_told_of_a_change_whose_receipt_is_not_durable() {
    let world = World::new().await;
    let running = world.ready().await;
    let authenticator = Authenticator::p256(page()).unwrap();
    let link = running.link(OWNER, 1).await.unwrap();
    let fingerprint = running.enrol(&authenticator, &link, 2).await.unwrap();
    world.receipts.set_append_down(true);
    let unsettled = refused(Code::Unavailable, "SERVICE_UNAVAILABLE");
    for number in [3, 3, 4] {
        let confirmed = running.confirm(&fingerprint, number).await;
        assert_eq!(refusal(confirmed), unsettled);
    }
    world.receipts.set_append_down(false);
    running.confirm(&fingerprint, 4).await.unwrap();
    assert_eq!(world.receipts.of("policy.confirm_credential").len(), 1);
}

#[tokio::test]
async fn a_link_lets_one_passkey_in_and_not_for_long() {
    let world = World::new().await;
    let running = world.ready().await;
    let closed = refused(Code::FailedPrecondition, "ENROLMENT_LINK_NOT_OPEN");
    let (one, other) = (
        Authenticator::p256(page()).unwrap(),
        Authenticator::ed25519(page()).unwrap(),
    );
    let guessed = running.enrol(&one, &[7; 32], 1).await;
    assert_eq!(refusal(guessed), closed);
    let link = running.link(OWNER, 2).await.unwrap();
    // The same operation makes no second link, and shows none again.
    let again = running.link(OWNER, 2).await;
    assert_eq!(
        refusal(again),
        refused(Code::AlreadyExists, "OPERATION_CONFLICT")
    );
    running.enrol(&one, &link, 3).await.unwrap();
    assert_eq!(refusal(running.enrol(&other, &link, 4).await), closed);
    let link = running.link(OWNER, 5).await.unwrap();
    let twice = running.enrol(&one, &link, 6).await;
    assert_eq!(
        refusal(twice),
        refused(Code::AlreadyExists, "CREDENTIAL_EXISTS")
    );
    world.clock.advance(1_800_000);
    assert_eq!(refusal(running.enrol(&other, &link, 7).await), closed);
    assert_eq!(running.credentials().await.len(), 1);
}

#[tokio::test]
async fn an_enrolment_is_bound_to_its_link_page_and_challenge() {
    let world = World::new().await;
    let running = world.ready().await;
    let authenticator = Authenticator::p256(page()).unwrap();
    let link = running.link(OWNER, 1).await.unwrap();
    let other_link = running.link("urn:person:other", 2).await.unwrap();
    let mut approvals = running.approvals.clone();
    let begin = BeginEnrolmentRequest {
        link_token: link.clone(),
    };
    let begun = approvals.begin_enrolment(begin).await.unwrap().into_inner();
    assert_eq!(begun.principal, OWNER);
    assert_eq!(begun.user_handle.len(), 32);
    let ceremony = begun.ceremony.unwrap();
    let message = |link: &[u8], page: &Page, challenge: &[u8]| {
        let created = authenticator.create_on(page, challenge);
        FinishEnrolmentRequest {
            ceremony_id: ceremony.id.clone(),
            link_token: link.to_vec(),
            client_data: created.client_data,
            attestation_object: created.attestation_object,
            operation_id: operation(3),
        }
    };
    let evil = Page::new(&page().rp_id, "https://evil.example");
    for (message, refusal_of) in [
        (
            message(&other_link, &page(), &ceremony.challenge),
            refused(Code::PermissionDenied, "ASSERTION_CHALLENGE"),
        ),
        (
            message(&link, &evil, &ceremony.challenge),
            refused(Code::PermissionDenied, "ASSERTION_ORIGIN"),
        ),
        (
            message(&link, &page(), &[0; 32]),
            refused(Code::PermissionDenied, "ASSERTION_CHALLENGE"),
        ),
    ] {
        assert_eq!(
            refusal(approvals.finish_enrolment(message).await),
            refusal_of
        );
    }
    assert!(running.credentials().await.is_empty());
    let good = message(&link, &page(), &ceremony.challenge);
    let first = approvals.finish_enrolment(good.clone()).await.unwrap();
    let again = approvals.finish_enrolment(good).await.unwrap();
    assert_eq!(first.into_inner(), again.into_inner());
    assert_eq!(world.receipts.of("policy.enrol_credential").len(), 1);
}

#[tokio::test]
async fn a_passkey_is_confirmed_by_the_fingerprint_that_was_compared() {
    let world = World::new().await;
    let running = world.ready().await;
    let mut enrolled = Vec::new();
    for number in [1, 3] {
        let authenticator = Authenticator::p256(page()).unwrap();
        let link = running.link(OWNER, number).await.unwrap();
        let fingerprint = running.enrol(&authenticator, &link, number + 1).await;
        enrolled.push((authenticator, fingerprint.unwrap()));
    }
    let [(owner, read_out), (_, other)] = enrolled.as_slice() else {
        panic!("two passkeys");
    };
    let listed = running.credentials().await;
    let named = listed.iter().find(|it| it.fingerprint == *read_out);
    let name = &named.unwrap().credential_ref;
    let mismatch = refused(Code::FailedPrecondition, "FINGERPRINT_MISMATCH");
    let confirmed = running.confirm_as(name, other, 5).await;
    assert_eq!(refusal(confirmed), mismatch);
    for malformed in ["", "0", &read_out[1..], &read_out.replace(' ', "-")] {
        let confirmed = running.confirm_as(name, malformed, 6).await;
        let invalid = refused(Code::InvalidArgument, "INVALID_FIELD");
        assert_eq!(refusal(confirmed), invalid, "{malformed}");
    }
    let inactive = refused(Code::PermissionDenied, "CREDENTIAL_INACTIVE");
    assert_eq!(refusal(running.sign_in(owner).await), inactive);
    assert!(world.receipts.of("policy.confirm_credential").is_empty());

    let as_typed = read_out.replace(' ', "").to_uppercase();
    running.confirm_as(name, &as_typed, 7).await.unwrap();
    running.sign_in(owner).await.unwrap();
}

#[tokio::test]
async fn counters_only_grow_and_a_possible_clone_is_receipted() {
    let world = World::new().await;
    let running = world.ready().await;
    let mut person = running.person(OWNER, 0x100).await;
    let mut receipts = 0;
    for (counter, is_taken) in [
        (0, true),
        (0, true),
        (9, true),
        (9, false),
        (8, false),
        (0, false),
        (10, true),
        (u32::MAX, true),
        (0, false),
        (u32::MAX, false),
    ] {
        person.authenticator.counter = counter;
        let signed_in = running.sign_in(&person.authenticator).await;
        if is_taken {
            person.session = signed_in.unwrap();
        } else {
            let clone = refused(Code::PermissionDenied, "CREDENTIAL_POSSIBLE_CLONE");
            assert_eq!(refusal(signed_in), clone, "{counter}");
            receipts += 1;
        }
        let recorded = world.receipts.of("policy.refuse_sign_in");
        assert_eq!(recorded.len(), receipts, "{counter}");
    }

    // The same rule for an answer, which nothing follows from.
    running.ask(&gated("r1"), 1).await.unwrap();
    let item = running.only_item(&person.session).await;
    let answer = running
        .answer(&person, grant_all(&person.session, &item), 2)
        .await;
    let clone = refused(Code::PermissionDenied, "CREDENTIAL_POSSIBLE_CLONE");
    assert_eq!(refusal(answer), clone);
    let recorded = world.receipts.of("policy.refuse_approval");
    assert_eq!(
        recorded[0].receipt["metadata"]["reason"],
        "CREDENTIAL_POSSIBLE_CLONE"
    );
    assert!(world.receipts.of("policy.approve").is_empty());
}

#[tokio::test]
async fn two_signatures_at_once_leave_the_higher_counter() {
    let world = World::new().await;
    let running = world.ready().await;
    let mut person = running.person(OWNER, 0x100).await;
    for base in [10, 20, 30, 40] {
        let (first, second) = (running.begin_sign_in().await, running.begin_sign_in().await);
        person.authenticator.counter = base;
        let lower = person.authenticator.sign(&first.challenge).unwrap();
        person.authenticator.counter = base + 1;
        let higher = person.authenticator.sign(&second.challenge).unwrap();
        let (_, won) = tokio::join!(
            running.finish_sign_in(&first, lower),
            running.finish_sign_in(&second, higher.clone()),
        );
        won.unwrap();
        // Replayed: the challenge is spent, whatever the counter says.
        let again = running.finish_sign_in(&second, higher).await;
        assert_eq!(
            refusal(again),
            refused(Code::FailedPrecondition, "CEREMONY_NOT_OPEN")
        );
        let stale = running.sign_in(&person.authenticator).await;
        let clone = refused(Code::PermissionDenied, "CREDENTIAL_POSSIBLE_CLONE");
        assert_eq!(refusal(stale), clone);
    }
}

#[tokio::test]
async fn synced_passkeys_sign_in_every_time() {
    let world = World::new().await;
    let running = world.ready().await;
    let mut authenticator = Authenticator::p256(page()).unwrap();
    authenticator.flags |= BACKUP_ELIGIBLE | BACKUP_STATE;
    let link = running.link(OWNER, 1).await.unwrap();
    let fingerprint = running.enrol(&authenticator, &link, 2).await.unwrap();
    running.confirm(&fingerprint, 3).await.unwrap();
    assert!(running.credentials().await[0].backup_eligible);
    for _ in 0..3 {
        running.sign_in(&authenticator).await.unwrap();
    }
    authenticator.flags &= !(BACKUP_ELIGIBLE | BACKUP_STATE);
    let changed = running.sign_in(&authenticator).await;
    assert_eq!(
        refusal(changed),
        refused(Code::PermissionDenied, "ASSERTION_BACKUP_STATE")
    );
}

#[tokio::test]
async fn sessions_end_by_time_idleness_and_word() {
    let world = World::new().await;
    let running = world.ready().await;
    let person = running.person(OWNER, 0x100).await;
    let ended = refused(Code::Unauthenticated, "SESSION_NOT_OPEN");
    assert_eq!(refusal(running.queue(&[9; 32]).await), ended);
    let short = running.queue(&[9; 31]).await;
    assert_eq!(
        refusal(short),
        refused(Code::InvalidArgument, "INVALID_FIELD")
    );
    // Used every ten minutes, it lasts eight hours and no longer.
    for _ in 0..47 {
        world.clock.advance(600_000);
        running.queue(&person.session).await.unwrap();
    }
    world.clock.advance(600_000);
    assert_eq!(refusal(running.queue(&person.session).await), ended);

    let idle = running.sign_in(&person.authenticator).await.unwrap();
    world.clock.advance(900_000);
    assert_eq!(refusal(running.queue(&idle).await), ended);

    let session = running.sign_in(&person.authenticator).await.unwrap();
    let message = EndSessionRequest {
        session: session.clone(),
    };
    running
        .approvals
        .clone()
        .end_session(message.clone())
        .await
        .unwrap();
    running
        .approvals
        .clone()
        .end_session(message)
        .await
        .unwrap();
    assert_eq!(refusal(running.queue(&session).await), ended);
}

#[tokio::test]
async fn a_sign_in_challenge_is_for_one_sign_in_only() {
    let world = World::new().await;
    let running = world.ready().await;
    let person = running.person(OWNER, 0x100).await;
    let ceremony = running.begin_sign_in().await;
    let page = Page::new("evil.example", ORIGIN);
    let wrong = person
        .authenticator
        .sign_on(&page, &ceremony.challenge)
        .unwrap();
    let refused_first = running.finish_sign_in(&ceremony, wrong).await;
    assert_eq!(
        refusal(refused_first),
        refused(Code::PermissionDenied, "ASSERTION_RP_ID")
    );
    // Whoever guesses does not end a sign-in; the sign-in does.
    let signed = person.authenticator.sign(&ceremony.challenge).unwrap();
    let signed_in = running.finish_sign_in(&ceremony, signed.clone()).await;
    signed_in.unwrap();
    let spent = refused(Code::FailedPrecondition, "CEREMONY_NOT_OPEN");
    assert_eq!(
        refusal(running.finish_sign_in(&ceremony, signed).await),
        spent
    );

    // With another end, overdue, and of another kind.
    let ceremony = running.begin_sign_in().await;
    let signed = person.authenticator.sign(&ceremony.challenge).unwrap();
    let mut longer = ceremony.clone();
    longer.id[0] += 1;
    let foreign = refused(Code::PermissionDenied, "ASSERTION_CHALLENGE");
    let finished = running.finish_sign_in(&longer, signed).await;
    assert_eq!(refusal(finished), foreign);
    let ceremony = running.begin_sign_in().await;
    let signed = person.authenticator.sign(&ceremony.challenge).unwrap();
    world.clock.advance(300_000);
    assert_eq!(
        refusal(running.finish_sign_in(&ceremony, signed).await),
        spent
    );
    running.ask(&gated("r1"), 1).await.unwrap();
    let item = running.only_item(&person.session).await;
    let answer = running
        .begin_answer(grant_all(&person.session, &item))
        .await
        .unwrap();
    let mut ceremony = answer.ceremony.unwrap();
    // An id that has not ended, if it is read as that of a sign-in.
    ceremony.id[..6].copy_from_slice(&[0xff; 6]);
    let signed = person.authenticator.sign(&ceremony.challenge).unwrap();
    assert_eq!(
        refusal(running.finish_sign_in(&ceremony, signed).await),
        foreign
    );
    let ceremony = running.begin_sign_in().await;
    let signed = person.authenticator.sign(&ceremony.challenge).unwrap();
    let crossed = running
        .finish_answer(&person.session, &ceremony, signed, 2)
        .await;
    assert_eq!(refusal(crossed), spent);
    // Refused strangers leave no receipts.
    assert!(world.receipts.of("policy.refuse_sign_in").is_empty());
}
