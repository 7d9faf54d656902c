//! What one commit makes of several commands, without a network in between.

use std::sync::Arc;

use cl_host::clock::{Clock, ManualClock};
use cl_host::ids::{Ids, SeededIds};
use cl_kv::{Fault, MemoryEngine};
use cl_model::digest::Digest;
use cl_receipt_store::committer::{Metrics, Writer};
use cl_receipt_store::core::command::{Answer, Call, Command, Placed, Rules};
use cl_receipt_store::core::kept::Kept;
use cl_receipt_store::core::members::Members;
use cl_receipt_store::core::routing::{OperationId, Routing, Tenant};
use cl_receipt_store::core::writers::Writers;
use cl_receipt_store::cosigning::Cosigning;
use cl_receipt_store::error::Error;
use cl_receipt_store::open_store;
use cl_receipt_store::proven::Proven;
use cl_testbed::{spiffe_id, telemetry};
use serde_json::{Value, json};

use crate::failpoints::MemoryPin;
use crate::requests::{begun_members, bytes, complete, consumption, operation_id, with};
use crate::support::{ENGINE, START_MS, STORE, WRITERS, log_key, sealed};

/// More than one group takes along by itself.
const MANY: u64 = 70;

struct Store {
    engine: MemoryEngine,
    clock: ManualClock,
    writer: Writer,
}

impl Store {
    fn new() -> Self {
        let engine = MemoryEngine::new();
        let clock = ManualClock::new(START_MS);
        let injected: Arc<dyn Clock> = Arc::new(clock.clone());
        let ids: Arc<dyn Ids> = Arc::new(SeededIds::new(1, Arc::clone(&injected)));
        let writer = Writer {
            store: open_store(sealed(engine.clone()), &ids).unwrap(),
            kept: Arc::new(Kept::new(
                log_key(),
                Arc::new(MemoryPin::default()),
                Cosigning::default(),
            )),
            rules: Arc::new(rules(WRITERS)),
            clock: injected,
            ids,
            proven: Proven::default(),
            metrics: Metrics::new(&telemetry().meter()),
        };
        Self {
            engine,
            clock,
            writer,
        }
    }

    fn commit(&self, command: Command) -> Result<Answer, Error> {
        self.writer.commit(&[command]).remove(0)
    }

    fn entries(&self) -> u64 {
        self.writer.store.head().unwrap().0.entries
    }

    fn consume(&self, number: u64) -> Command {
        let actor = json!({"actor": "urn:cl:policy-engine:x"});
        let members = parsed(&with(consumption(number), actor));
        append(&members, number, &self.writer.rules)
    }

    /// An intent whose deadline is as many milliseconds away as its number.
    fn begin(&self, number: u64) -> Command {
        let members = parsed(&begun_members(number));
        let call = call(number);
        let checked = members.check_intent(&call.routing.operation_id).unwrap();
        Command::Begin {
            authorized: self.writer.rules.authorize(&call.writer, &checked).unwrap(),
            call,
            deadline_ms: u64::try_from(START_MS).unwrap() + number,
            members: bytes(&begun_members(number)),
        }
    }

    fn complete(number: u64) -> Command {
        Command::Complete {
            call: call(number),
            members: Members::parse(&complete(number).members).unwrap(),
        }
    }
}

pub(crate) fn rules(writers: &str) -> Rules {
    Rules {
        own_id: spiffe_id(STORE).parse().unwrap(),
        writers: Writers::parse(writers.as_bytes()).unwrap(),
    }
}

pub(crate) fn parsed(members: &Value) -> Members {
    Members::parse(&bytes(members)).unwrap()
}

pub(crate) fn call(number: u64) -> Call {
    Call {
        writer: spiffe_id(ENGINE).parse().unwrap(),
        routing: Routing {
            tenant: Tenant::parse("acme").unwrap(),
            operation_id: OperationId::parse(&operation_id(number)).unwrap(),
            subject_tag: None,
        },
        content: Digest::of_bytes(&number.to_be_bytes()),
    }
}

/// The command that appends a receipt.
pub(crate) fn append(members: &Members, number: u64, rules: &Rules) -> Command {
    let call = call(number);
    let receipt = members.clone().finish(&call.routing.operation_id).unwrap();
    Command::Append {
        authorized: rules.authorize(&call.writer, &receipt).unwrap(),
        call,
        receipt: Box::new(receipt),
        by_consumer: false,
    }
}

#[tokio::test]
async fn a_later_command_sees_an_earlier_one() {
    for fault in [None, Some(Fault::AfterPersist)] {
        let store = Store::new();
        if let Some(fault) = fault {
            store.engine.plan(fault);
        }
        let group = [store.consume(1), store.consume(2), store.consume(1)];
        let answers = store.writer.commit(&group);
        assert!(matches!(
            answers.as_slice(),
            [
                Ok(Answer::Entry(Placed { sequence: 1, .. }, _)),
                Err(Error::ReplayConflict),
                Ok(Answer::Entry(Placed { sequence: 1, .. }, _))
            ]
        ));
        assert_eq!(store.entries(), 1);
    }
}

#[tokio::test]
async fn refusals_fall_with_the_group_that_they_rest_on() {
    for fault in [Fault::Full, Fault::BeforePersist] {
        let store = Store::new();
        store.engine.plan(fault);
        let group = [store.consume(1), store.consume(2)];
        for answer in store.writer.commit(&group) {
            assert!(matches!(answer, Err(Error::Unavailable(_))));
        }
        assert_eq!(store.entries(), 0);
        let answer = store.commit(store.consume(2));
        assert!(matches!(
            answer,
            Ok(Answer::Entry(Placed { sequence: 1, .. }, _))
        ));
    }
}

#[tokio::test]
async fn a_late_receipt_supersedes_also_when_many_are_overdue() {
    let store = Store::new();
    for number in 1..=MANY {
        store.commit(store.begin(number)).unwrap();
    }
    store.clock.advance(3_600_000);
    // The last deadline of all is not among those that the group takes along by itself.
    let Ok(Answer::Entry(
        Placed {
            sequence, entry, ..
        },
        _,
    )) = store.commit(Store::complete(MANY))
    else {
        panic!("not completed");
    };
    assert!(entry.supersedes_ref.is_some());
    assert_eq!(store.entries(), sequence);
    // An empty group goes on with the rest, once.
    for _ in 0..2 {
        store.writer.commit(&[]);
        assert_eq!(store.entries(), MANY + 1);
    }
}

#[tokio::test]
async fn completing_needs_the_row_that_beginning_needed() {
    let mut store = Store::new();
    store.commit(store.begin(1)).unwrap();
    store.writer.rules = Arc::new(rules(&WRITERS.replace("policy.*", "policy.other")));
    let answer = store.commit(Store::complete(1));
    assert!(matches!(answer, Err(Error::OperationNotAllowed)));
    assert_eq!(store.entries(), 0);
}
