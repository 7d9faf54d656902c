//! What must hold after a round, whatever failed in it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;
use std::sync::Arc;

use cl_receipt_store::core::routing::Tenant;
use cl_tlog::{ProofFile, Prover, SignedCheckpoint, Tile, TilePath};
use cl_wire::receipt::v1::receipt_service_server::ReceiptService;
use cl_wire::receipt::v1::verify_log_response::Result as Verdict;
use cl_wire::receipt::v1::{
    IntentState, ListOpenRequest, ListReceiptsRequest, RecordedReceipt, VerifyLogRequest,
};
use serde_json::Value;

use super::life::{Disk, Store};
use super::schedule::{CLOCK_MS, Call, Heard, Kind, Said, TENANTS, from};
use crate::support::{AUDITOR, ENGINE, START_MS, verify_proof};

/// What rounds did, and what must have stayed zero.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(crate) rounds: u64,
    pub(crate) starts: u64,
    pub(crate) kills: u64,
    pub(crate) failures: u64,
    pub(crate) delays: u64,
    pub(crate) calls: u64,
    pub(crate) acknowledged: u64,
    pub(crate) unavailable: u64,
    pub(crate) entries: u64,
    pub(crate) proofs_verified: u64,
    pub(crate) checkpoints_compared: u64,
    pub(crate) repeats_compared: u64,
    pub(crate) overdue: u64,
    pub(crate) wrong: Wrong,
}

/// What a correct store has none of.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) acknowledged_missing: u64,
    pub(crate) acknowledged_unpinned: u64,
    pub(crate) success_without_receipt: u64,
    pub(crate) forks: u64,
    pub(crate) bad_proofs: u64,
    pub(crate) bundles_consumed_twice: u64,
    pub(crate) intents_misreported: u64,
    pub(crate) repeats_differ: u64,
}

impl AddAssign for Figures {
    fn add_assign(&mut self, other: Self) {
        self.rounds += other.rounds;
        self.starts += other.starts;
        self.kills += other.kills;
        self.failures += other.failures;
        self.delays += other.delays;
        self.calls += other.calls;
        self.acknowledged += other.acknowledged;
        self.unavailable += other.unavailable;
        self.entries += other.entries;
        self.proofs_verified += other.proofs_verified;
        self.checkpoints_compared += other.checkpoints_compared;
        self.repeats_compared += other.repeats_compared;
        self.overdue += other.overdue;
    }
}

/// A receipt by its tenant and URN.
type Receipts = BTreeMap<(String, String), RecordedReceipt>;

/// Starts the store once more, without faults and past all deadlines, and holds what was heard to
/// what is there.
pub(crate) async fn check(disk: &Disk, life: u64, heard: &[Heard]) -> Figures {
    let store = Store::start(disk, &Arc::default(), life).expect("starts after all faults");
    let end_ms = i64::try_from(2 * CLOCK_MS).unwrap();
    store.clock.set(START_MS + end_ms);
    let mut figures = Figures {
        rounds: 1,
        ..Figures::default()
    };
    // Every commit looks at deadlines; there may be nothing to repeat.
    let looked = Call::PREFLIGHT.run(Arc::clone(&store.service)).await;
    looked.expect("a preflight succeeds");
    let repeats = repeat(&store, heard).await;
    let receipts = receipts(&store).await;
    figures.entries = receipts.len() as u64;
    let mut checkpoints = BTreeSet::new();
    for heard in heard {
        match heard {
            Heard::Checkpoint { tenant, text } => {
                checkpoints.insert((tenant.clone(), text.clone()));
            }
            Heard::Fault(action) => match action.as_str() {
                "Kill" | "KillAfter" => figures.kills += 1,
                "Delay" => figures.delays += 1,
                _ => figures.failures += 1,
            },
            Heard::Answer {
                call,
                now_ms,
                answer,
                pinned,
            } => {
                figures.calls += 1;
                match answer {
                    Err(code) => {
                        figures.unavailable += u64::from(code == "RECEIPT_STORE_UNAVAILABLE");
                        check_refusal(*call, code, &receipts);
                    }
                    Ok(said) => {
                        figures.acknowledged += 1;
                        let unpinned = said.sequence > *pinned;
                        figures.wrong.acknowledged_unpinned += u64::from(unpinned);
                        check_entry(*call, said, &receipts, &mut figures, &mut checkpoints);
                        check_intent(*call, *now_ms, said, &receipts, &mut figures);
                        check_repeat(*call, said, &repeats, &mut figures);
                    }
                }
            }
        }
    }
    check_forks(&store, &checkpoints, &mut figures).await;
    check_bundles(&receipts, &mut figures);
    check_open(&store, &receipts, &mut figures).await;
    store.end().await;
    figures
}

/// Every acknowledged call once more.
async fn repeat(store: &Store, heard: &[Heard]) -> BTreeMap<Call, Said> {
    let mut repeats = BTreeMap::new();
    for heard in heard {
        if let Heard::Answer {
            call,
            answer: Ok(_),
            ..
        } = heard
            && !repeats.contains_key(call)
        {
            let answer = call.run(Arc::clone(&store.service)).await;
            repeats.insert(*call, answer.expect("a repeat succeeds"));
        }
    }
    repeats
}

/// All receipts, after a check of each log.
async fn receipts(store: &Store) -> Receipts {
    let mut receipts = Receipts::new();
    for tenant in TENANTS {
        let mut request = ListReceiptsRequest {
            tenant: tenant.to_owned(),
            page_size: 100,
            ..ListReceiptsRequest::default()
        };
        loop {
            let page = store.service.list_receipts(from(AUDITOR, request.clone()));
            let page = page.await.unwrap().into_inner();
            for receipt in page.receipts {
                let reference = receipt.entry.clone().unwrap().receipt_ref;
                receipts.insert((tenant.to_owned(), reference), receipt);
            }
            request.page_token = page.next_page_token;
            if request.page_token.is_empty() {
                break;
            }
        }
        let request = VerifyLogRequest {
            tenant: tenant.to_owned(),
        };
        let checked = store.service.verify_log(from(AUDITOR, request)).await;
        let checked = checked.unwrap().into_inner();
        assert!(
            matches!(checked.result, Some(Verdict::Checkpoint(_))),
            "{checked:?}"
        );
        let of_tenant = receipts.keys().filter(|(of, _)| of == tenant).count();
        assert_eq!(checked.checked_entries, of_tenant as u64);
    }
    receipts
}

/// A refusal says nothing that the log contradicts.
fn check_refusal(call: Call, code: &str, receipts: &Receipts) {
    let allowed = match call.kind {
        Kind::Append | Kind::Preflight => false,
        Kind::Begin => code == "DEADLINE_PASSED",
        Kind::Complete => code == "INTENT_NOT_FOUND",
        Kind::Consume => {
            code == "RECEIPT_REPLAY_CONFLICT" && consumptions(receipts).contains_key(&call.bundle())
        }
    };
    assert!(
        allowed || code == "RECEIPT_STORE_UNAVAILABLE",
        "{call:?}: {code}"
    );
}

/// What was acknowledged is in the log, where it was said to be, and its proof holds.
fn check_entry(
    call: Call,
    said: &Said,
    receipts: &Receipts,
    figures: &mut Figures,
    checkpoints: &mut BTreeSet<(String, String)>,
) {
    let wrong = &mut figures.wrong;
    let writes = matches!(call.kind, Kind::Append | Kind::Complete | Kind::Consume);
    if said.receipt_ref.is_empty() {
        wrong.success_without_receipt += u64::from(writes);
        return;
    }
    let tenant = call.tenant().to_owned();
    let found = receipts.get(&(tenant.clone(), said.receipt_ref.clone()));
    let Some(found) = found.filter(|it| it.entry.as_ref().unwrap().sequence == said.sequence)
    else {
        wrong.acknowledged_missing += 1;
        return;
    };
    if !writes {
        return;
    }
    let verified = std::panic::catch_unwind(|| verify_proof(&tenant, &found.receipt, &said.proof));
    if verified.is_err() {
        wrong.bad_proofs += 1;
        return;
    }
    figures.proofs_verified += 1;
    let proof = ProofFile::parse(said.proof.as_bytes()).unwrap();
    checkpoints.insert((tenant, proof.checkpoint.to_string()));
}

/// Past its deadline an intent is indeterminate until it is settled, and nothing else.
fn check_intent(call: Call, now_ms: i64, said: &Said, receipts: &Receipts, figures: &mut Figures) {
    if call.kind != Kind::Begin {
        return;
    }
    let found = receipts.get(&(call.tenant().to_owned(), said.receipt_ref.clone()));
    let operation = found.map(|it| member(it, "operation"));
    let is_right = match IntentState::try_from(said.state).unwrap() {
        IntentState::Open => found.is_none() && now_ms < call.deadline_ms(),
        IntentState::Overdue => {
            operation.as_deref() == Some("operation.overdue")
                && found.map(|it| member(it, "outcome")).as_deref() == Some("indeterminate")
        }
        IntentState::Settled => operation.as_deref() == Some("policy.decide"),
        IntentState::Unspecified => false,
    };
    figures.wrong.intents_misreported += u64::from(!is_right);
}

/// A repeat gives the same entry; only an intent may have gone on.
fn check_repeat(call: Call, said: &Said, repeats: &BTreeMap<Call, Said>, figures: &mut Figures) {
    let repeat = &repeats[&call];
    let same = match call.kind {
        Kind::Begin => repeat.state >= said.state,
        Kind::Append | Kind::Complete | Kind::Consume | Kind::Preflight => {
            (repeat.sequence, &repeat.receipt_ref) == (said.sequence, &said.receipt_ref)
        }
    };
    figures.repeats_compared += 1;
    figures.wrong.repeats_differ += u64::from(!same);
}

/// Every checkpoint that anybody saw leads to the last one.
async fn check_forks(
    store: &Store,
    checkpoints: &BTreeSet<(String, String)>,
    figures: &mut Figures,
) {
    for tenant in TENANTS {
        let Some(last) = store.checkpoint(tenant).await else {
            continue;
        };
        let last = SignedCheckpoint::parse(last.as_bytes()).unwrap();
        let last = last.checkpoint();
        let reader = store.service.reader.clone();
        let tiles = |tile: Tile| {
            let path = TilePath::Hashes(tile).to_string();
            let tenant = Tenant::parse(tenant).unwrap();
            reader.file(&tenant, &path).map(|found| {
                found.map(|file| match file {
                    cl_receipt_store::http::File::Tile(bytes) => bytes,
                    cl_receipt_store::http::File::Checkpoint(_) => panic!("not a tile"),
                })
            })
        };
        let mut prover = Prover::load(last.size(), last.root(), tiles).unwrap();
        for (_, text) in checkpoints.iter().filter(|(of, _)| of == tenant) {
            let old = SignedCheckpoint::parse(text.as_bytes()).unwrap();
            let old = old.checkpoint();
            let is_consistent = old.size() <= last.size()
                && last
                    .verify_consistency(old, &prover.consistency(old.size()).unwrap())
                    .is_ok();
            figures.checkpoints_compared += 1;
            figures.wrong.forks += u64::from(!is_consistent);
        }
    }
}

/// How often each bundle was consumed with success.
fn consumptions(receipts: &Receipts) -> BTreeMap<String, u64> {
    let mut consumptions = BTreeMap::new();
    for receipt in receipts.values() {
        let is_success = member(receipt, "outcome") == "success";
        if is_success && member(receipt, "operation") == "bundle.consume" {
            *consumptions
                .entry(member(receipt, "bundle_ref"))
                .or_default() += 1;
        }
    }
    consumptions
}

fn check_bundles(receipts: &Receipts, figures: &mut Figures) {
    let twice = consumptions(receipts).into_values().filter(|it| *it > 1);
    figures.wrong.bundles_consumed_twice += twice.count() as u64;
}

/// What is open now, after all deadlines, is indeterminate; what was settled late supersedes it.
async fn check_open(store: &Store, receipts: &Receipts, figures: &mut Figures) {
    let request = ListOpenRequest {
        page_size: 100,
        ..ListOpenRequest::default()
    };
    let open = store.service.list_open(from(ENGINE, request)).await;
    let open = open.unwrap().into_inner().intents;
    let mut open_ids = BTreeSet::new();
    for intent in &open {
        let routing = intent.routing.clone().unwrap();
        let entry = intent.entry.clone().unwrap_or_default();
        let found = receipts.get(&(routing.tenant, entry.receipt_ref));
        let is_right = intent.state() == IntentState::Overdue
            && found.is_some_and(|it| member(it, "outcome") == "indeterminate");
        figures.wrong.intents_misreported += u64::from(!is_right);
        open_ids.insert(routing.operation_id);
    }
    let overdue = receipts
        .iter()
        .filter(|(_, it)| member(it, "operation") == "operation.overdue");
    for ((_, reference), receipt) in overdue {
        figures.overdue += 1;
        let id = receipt.routing.clone().unwrap().operation_id;
        let superseded = receipts.values().any(|it| {
            let entry = it.entry.as_ref().unwrap();
            entry.supersedes_ref.as_ref() == Some(reference)
        });
        let is_right = open_ids.contains(&id) != superseded;
        figures.wrong.intents_misreported += u64::from(!is_right);
    }
}

fn member(receipt: &RecordedReceipt, name: &str) -> String {
    let receipt: Value = serde_json::from_slice(&receipt.receipt).unwrap();
    receipt[name].as_str().unwrap_or_default().to_owned()
}
