//! What callers do in a round, all of it from a seed.

use std::collections::BTreeMap;
use std::sync::Arc;

use cl_host::identity::PeerId;
use cl_receipt_store::grpc::Service;
use cl_testbed::spiffe_id;
use cl_wire::receipt::v1::receipt_service_server::ReceiptService;
use cl_wire::receipt::v1::{
    AppendRequest, BeginRequest, CompleteRequest, IntentState, LogEntry, PreflightRequest,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tonic::{Request, Status};

use crate::failpoints::Action;
use crate::requests::{append, begin, complete, consumer_append, consumption, time, with};
use crate::support::{ENGINE, ISSUER, START_MS};

/// How many operations of each kind a round is about: few, so that calls are often repeats.
const OPERATIONS: u64 = 12;

/// How many bundles they consume: fewer still.
const BUNDLES: u64 = 3;

/// How far the clock jumps, to and fro.
pub(crate) const CLOCK_MS: u64 = 300_000;

pub(crate) const TENANTS: [&str; 2] = ["acme", "beta"];

/// A small generator of numbers (splitmix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut random = Self(seed ^ stream.rotate_left(32));
        random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// One to three faults within the first steps of a life.
pub(crate) fn faults(random: &mut Random) -> BTreeMap<u64, Action> {
    let count = 1 + random.below(3);
    let fault = |_| {
        let step = random.below(24);
        let action = random.below(Action::ALL.len() as u64);
        (step, Action::ALL[usize::try_from(action).unwrap()])
    };
    (0..count).map(fault).collect()
}

/// What is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Kind {
    Append,
    Begin,
    Complete,
    Consume,
    Preflight,
}

/// A call; equal ones carry the same bytes, so that the second is a repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Call {
    pub(crate) kind: Kind,
    pub(crate) number: u64,
}

impl Call {
    /// The one that changes nothing.
    pub(crate) const PREFLIGHT: Self = Self {
        kind: Kind::Preflight,
        number: 0,
    };

    pub(crate) fn any(random: &mut Random) -> Self {
        let kind = match random.below(16) {
            0..4 => Kind::Append,
            4..8 => Kind::Begin,
            8..12 => Kind::Complete,
            12..15 => Kind::Consume,
            _ => Kind::Preflight,
        };
        Self {
            kind,
            number: random.below(OPERATIONS),
        }
    }

    /// Whose log it is about.
    pub(crate) fn tenant(self) -> &'static str {
        match self.kind {
            Kind::Consume => TENANTS[0],
            Kind::Append | Kind::Begin | Kind::Complete | Kind::Preflight => {
                TENANTS[usize::try_from(self.number % 2).unwrap()]
            }
        }
    }

    /// The number in its operation id.
    fn operation(self) -> u64 {
        match self.kind {
            Kind::Begin | Kind::Complete => 1000 + self.number,
            Kind::Append | Kind::Consume | Kind::Preflight => self.number,
        }
    }

    pub(crate) fn bundle(self) -> String {
        format!("urn:cl:bundle:b{}", self.number % BUNDLES)
    }

    /// When the intent is over.
    pub(crate) fn deadline_ms(self) -> i64 {
        START_MS + 20_000 + i64::try_from(self.number * 25_000).unwrap()
    }

    fn append(self) -> AppendRequest {
        let mut request = append(self.operation());
        request.routing.as_mut().unwrap().tenant = self.tenant().to_owned();
        request
    }

    fn consume(self) -> AppendRequest {
        let bundle = json!({"bundle_ref": self.bundle()});
        consumer_append(with(consumption(self.operation()), bundle))
    }

    fn begin(self) -> BeginRequest {
        let mut request = BeginRequest {
            deadline: Some(time(self.deadline_ms())),
            ..begin(self.operation())
        };
        request.routing.as_mut().unwrap().tenant = self.tenant().to_owned();
        request
    }

    fn complete(self) -> CompleteRequest {
        let mut request = complete(self.operation());
        request.routing.as_mut().unwrap().tenant = self.tenant().to_owned();
        request
    }

    fn preflight(self) -> PreflightRequest {
        PreflightRequest {
            tenant: self.tenant().to_owned(),
            operations: vec!["policy.decide".to_owned()],
        }
    }

    /// Calls, and waits for the answer.
    pub(crate) async fn run(self, service: Arc<Service>) -> Result<Said, Status> {
        let settled = IntentState::Settled;
        match self.kind {
            Kind::Append => {
                let answer = service.append(from(ENGINE, self.append())).await?;
                let answer = answer.into_inner();
                Ok(Said::new(answer.entry, answer.proof, settled))
            }
            Kind::Consume => {
                let answer = service.append(from(ISSUER, self.consume())).await?;
                let answer = answer.into_inner();
                Ok(Said::new(answer.entry, answer.proof, settled))
            }
            Kind::Complete => {
                let answer = service.complete(from(ENGINE, self.complete())).await?;
                let answer = answer.into_inner();
                Ok(Said::new(answer.entry, answer.proof, settled))
            }
            Kind::Begin => {
                let answer = service.begin(from(ENGINE, self.begin())).await?;
                let answer = answer.into_inner();
                let state = answer.state();
                Ok(Said::new(answer.entry, String::new(), state))
            }
            Kind::Preflight => {
                service.preflight(from(ENGINE, self.preflight())).await?;
                Ok(Said::new(None, String::new(), settled))
            }
        }
    }
}

/// A request of a caller whose certificate was verified.
pub(crate) fn from<T>(caller: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.extensions_mut().insert(PeerId {
        id: spiffe_id(caller).parse().unwrap(),
        serial: "01".to_owned(),
        thumbprint: [1; 32],
        not_before_unix_s: 0,
        not_after_unix_s: i64::MAX,
    });
    request
}

/// What a caller was told of success.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Said {
    pub(crate) sequence: u64,
    pub(crate) receipt_ref: String,
    pub(crate) proof: String,
    pub(crate) state: i32,
}

impl Said {
    fn new(entry: Option<LogEntry>, proof: String, state: IntentState) -> Self {
        let entry = entry.unwrap_or_default();
        Self {
            sequence: entry.sequence,
            receipt_ref: entry.receipt_ref,
            proof,
            state: state.into(),
        }
    }
}

/// What somebody outside saw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Heard {
    /// The answer to a call, when it was made, and how far the pin was when it came.
    Answer {
        call: Call,
        now_ms: i64,
        answer: Result<Said, String>,
        pinned: u64,
    },
    /// A checkpoint that was read.
    Checkpoint { tenant: String, text: String },
    /// What happened at a step of the plan.
    Fault(String),
}

impl Heard {
    /// The call that is to be repeated.
    pub(crate) fn failed(&self) -> Option<Call> {
        match self {
            Self::Answer {
                call,
                answer: Err(code),
                ..
            } if code == "RECEIPT_STORE_UNAVAILABLE" => Some(*call),
            Self::Answer { .. } | Self::Checkpoint { .. } | Self::Fault(_) => None,
        }
    }
}
