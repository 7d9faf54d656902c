//! Witnesses that cosign checkpoints: what they notice, and what happens while they do not answer.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard};

use cl_receipt_store::cosigning::Cosigning;
use cl_receipt_store::witness::{Witness, WitnessAway};
use cl_testbed::{refusal, refused, within};
use cl_tlog::{
    AddCheckpoint, Checkpoint, Cosigner, KeyName, Policy, SignedCheckpoint, VerifierKey, Witnesses,
};
use cl_wire::receipt::v1::{AppendResponse, PreflightRequest};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tonic::{Code, Status};

use crate::failpoints::MemoryPin;
use crate::process::Home;
use crate::requests::{append, begin, get};
use crate::support::{
    AUDITOR, Client, ENGINE, GATEWAY, World, log_public_key, verified_entries, verifier_key,
    verify_cosigned,
};

/// How a witness answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mood {
    #[default]
    Honest,
    /// Not at all.
    Away,
    /// With this status and nothing else.
    Says(u16),
    /// With what is no cosignature.
    Garbage,
    /// With the cosignature of somebody else.
    Foreign,
    /// With a cosignature of another checkpoint.
    Other,
    /// With the size that it was asked from plus one, always.
    Confused,
    /// That it knows no log but this tenant's.
    Knows(&'static str),
}

/// A witness as its specification has it.
#[derive(Clone, Debug)]
struct TestWitness {
    key: Arc<Cosigner>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    mood: Mood,
    seen: BTreeMap<String, Checkpoint>,
    calls: usize,
}

impl TestWitness {
    fn new(number: u8) -> Self {
        let name = KeyName::new(&format!("witness.example/{number}")).unwrap();
        Self {
            key: Arc::new(Cosigner::from_seed(name, &[number; 32]).unwrap()),
            state: Arc::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn cosign(&self, signed: &SignedCheckpoint) -> (u16, Vec<u8>) {
        let signature = self.key.cosign(signed, 1_900_000_000).unwrap();
        (200, format!("{signature}\n").into_bytes())
    }

    fn honest(
        &self,
        seen: &mut BTreeMap<String, Checkpoint>,
        ask: &AddCheckpoint,
    ) -> (u16, Vec<u8>) {
        let newest = ask.checkpoint().checkpoint();
        let old_size = seen.get(newest.origin()).map_or(0, Checkpoint::size);
        if old_size != ask.old_size() {
            return (409, format!("{old_size}\n").into_bytes());
        }
        if let Some(old) = seen.get(newest.origin())
            && newest.verify_consistency(old, ask.proof()).is_err()
        {
            return (422, Vec::new());
        }
        seen.insert(newest.origin().to_owned(), newest.clone());
        self.cosign(ask.checkpoint())
    }
}

impl Witness for TestWitness {
    fn add_checkpoint(&self, request: &AddCheckpoint) -> Result<(u16, Vec<u8>), WitnessAway> {
        // What arrives is what is sent over a network.
        let request = AddCheckpoint::parse(request.to_string().as_bytes()).unwrap();
        let mut state = self.state();
        state.calls += 1;
        match state.mood {
            Mood::Honest => Ok(self.honest(&mut state.seen, &request)),
            Mood::Knows(tenant) if request.checkpoint().checkpoint().origin().ends_with(tenant) => {
                Ok(self.honest(&mut state.seen, &request))
            }
            Mood::Knows(_) => Ok((404, Vec::new())),
            Mood::Away => Err(WitnessAway::new(io::Error::other("away"))),
            Mood::Says(status) => Ok((status, Vec::new())),
            Mood::Garbage => Ok((200, b"no signature\n".to_vec())),
            Mood::Foreign => Ok(Self::new(9).cosign(request.checkpoint())),
            Mood::Other => {
                let same = request.checkpoint().checkpoint();
                let other = Checkpoint::new(same.origin(), same.size() + 1, same.root()).unwrap();
                Ok(self.cosign(&SignedCheckpoint::sign(other, &[&signer()]).unwrap()))
            }
            Mood::Confused => {
                let size = request.old_size().saturating_sub(1);
                Ok((409, format!("{size}\n").into_bytes()))
            }
        }
    }
}

fn signer() -> cl_tlog::Ed25519Signer {
    cl_tlog::Ed25519Signer::from_seed(KeyName::new("log.example").unwrap(), &[1; 32]).unwrap()
}

/// The witnesses of a store under test.
#[derive(Clone, Debug, Default)]
pub(crate) struct TestWitnesses(Option<(Vec<TestWitness>, String)>);

impl TestWitnesses {
    /// So many, and how many of them must cosign.
    fn new(count: u8, threshold: usize) -> Self {
        let witnesses: Vec<_> = (1..=count).map(TestWitness::new).collect();
        let mut policy = String::new();
        let mut names = String::new();
        for (number, witness) in witnesses.iter().enumerate() {
            let key = witness.key.verifier_key();
            policy += &format!("witness w{number} {key} https://witness.example\n");
            names += &format!(" w{number}");
        }
        policy += &format!("group all {threshold}{names}\nquorum all\n");
        Self(Some((witnesses, policy)))
    }

    pub(crate) fn cosigning(&self) -> Cosigning {
        let Some((witnesses, policy)) = &self.0 else {
            return Cosigning::default();
        };
        let by_key = |key: &VerifierKey| {
            let found = witnesses.iter().find(|it| it.key.verifier_key() == key);
            found.unwrap().clone()
        };
        let policy = Policy::parse(policy).unwrap();
        let cosigning = Cosigning::new(&policy, |named| {
            Ok::<_, ()>(Box::new(by_key(named.key())) as Box<dyn Witness>)
        });
        cosigning.unwrap()
    }

    fn quorum(&self) -> Witnesses {
        let policy = &self.0.as_ref().unwrap().1;
        Policy::parse(policy).unwrap().witnesses()
    }

    fn set(&self, number: usize, mood: Mood) {
        self.0.as_ref().unwrap().0[number].state().mood = mood;
    }

    fn calls(&self, number: usize) -> usize {
        self.0.as_ref().unwrap().0[number].state().calls
    }
}

fn witnessed(count: u8, threshold: usize) -> World {
    World {
        witnesses: TestWitnesses::new(count, threshold),
        ..World::new()
    }
}

fn unavailable() -> (Code, String) {
    refused(Code::Unavailable, "RECEIPT_STORE_UNAVAILABLE")
}

fn receipt_ref(answer: AppendResponse) -> String {
    answer.entry.unwrap().receipt_ref
}

async fn preflight(writer: &mut Client) -> Result<(), Status> {
    let request = PreflightRequest {
        tenant: "acme".to_owned(),
        operations: vec!["policy.decide".to_owned()],
    };
    writer.preflight(request).await.map(|_| ())
}

#[tokio::test]
async fn every_proof_carries_the_cosignatures_of_a_quorum() {
    let world = witnessed(3, 2);
    world.witnesses.set(2, Mood::Away);
    let store = world.start().await;
    let writer = &mut world.client(store.addr, ENGINE);
    let reader = &mut world.client(store.addr, GATEWAY);
    for number in 1..=3 {
        let answer = writer.append(append(number)).await.unwrap().into_inner();
        let appended = answer.proof.clone();
        let found = reader.get_receipt(get("acme", &receipt_ref(answer))).await;
        let found = found.unwrap().into_inner();
        let receipt = found.receipt.unwrap().receipt;
        for proof in [appended, found.proof] {
            let quorum = world.witnesses.quorum();
            let at = verify_cosigned(log_public_key(), &quorum, "acme", &receipt, &proof);
            assert_eq!(at.size(), number);
        }
    }
    // The first time a witness says how far it is; then one question an entry.
    assert_eq!(world.witnesses.calls(0), 4);
}

#[tokio::test]
async fn without_a_quorum_nothing_is_acknowledged() {
    let moods = [
        Mood::Away,
        Mood::Says(404),
        Mood::Says(500),
        Mood::Garbage,
        Mood::Foreign,
        Mood::Other,
        Mood::Confused,
    ];
    for mood in moods {
        let world = witnessed(2, 1);
        let store = world.start().await;
        let writer = &mut world.client(store.addr, ENGINE);
        let reader = &mut world.client(store.addr, GATEWAY);
        let first = writer.append(append(1)).await.unwrap().into_inner();
        let first = receipt_ref(first);

        world.witnesses.set(0, mood);
        world.witnesses.set(1, mood);
        let status = writer.append(append(2)).await.unwrap_err();
        assert!(cl_wire::status::retry_delay(&status).is_some());
        assert_eq!(refusal(Err::<(), _>(status)), unavailable(), "{mood:?}");
        assert_eq!(refusal(writer.append(append(2)).await), unavailable());
        assert_eq!(refusal(writer.append(append(3)).await), unavailable());
        assert_eq!(refusal(writer.begin(begin(4)).await), unavailable());
        assert_eq!(refusal(preflight(writer).await), unavailable());
        // What was acknowledged before is served as it was.
        let found = reader.get_receipt(get("acme", &first)).await.unwrap();
        let found = found.into_inner();
        let (quorum, receipt) = (world.witnesses.quorum(), found.receipt.unwrap().receipt);
        let at = verify_cosigned(log_public_key(), &quorum, "acme", &receipt, &found.proof);
        assert_eq!(at.size(), 1);

        // One of them is enough, and the store goes on by itself.
        world.witnesses.set(1, Mood::Honest);
        let repeat = writer.append(append(2)).await.unwrap().into_inner();
        assert_eq!(repeat.entry.unwrap().sequence, 2);
        preflight(writer).await.unwrap();
        let auditor = &mut world.client(store.addr, AUDITOR);
        assert_eq!(verified_entries(auditor).await, 2);
        store.end().await;
    }
}

#[tokio::test]
async fn a_log_that_no_witness_knows_stops_no_other() {
    let world = witnessed(1, 1);
    world.witnesses.set(0, Mood::Knows("/acme"));
    let store = world.start().await;
    let writer = &mut world.client(store.addr, ENGINE);
    let mut foreign = append(1);
    foreign.routing.as_mut().unwrap().tenant = "beta".to_owned();
    for _ in 0..2 {
        assert_eq!(refusal(writer.append(foreign.clone()).await), unavailable());
    }
    writer.append(append(2)).await.unwrap();
    writer.begin(begin(3)).await.unwrap();
    preflight(writer).await.unwrap();
    let request = PreflightRequest {
        tenant: "beta".to_owned(),
        operations: vec!["policy.decide".to_owned()],
    };
    assert_eq!(
        refusal(writer.preflight(request.clone()).await),
        unavailable()
    );
    let mut begun = begin(4);
    begun.routing.as_mut().unwrap().tenant = "beta".to_owned();
    assert_eq!(refusal(writer.begin(begun).await), unavailable());
    // At once, so that the log is told to the witness: what waited is there.
    world.witnesses.set(0, Mood::Honest);
    writer.preflight(request).await.unwrap();
    let repeat = writer.append(foreign).await.unwrap().into_inner();
    assert_eq!(repeat.entry.unwrap().sequence, 1);
}

#[tokio::test]
async fn a_store_starts_without_its_witnesses_and_acknowledges_nothing() {
    let world = witnessed(1, 1);
    let store = world.start().await;
    let writer = &mut world.client(store.addr, ENGINE);
    let first = writer.append(append(1)).await.unwrap().into_inner();
    let first = receipt_ref(first);
    store.end().await;
    world.witnesses.set(0, Mood::Away);
    let store = world.start().await;
    let writer = &mut world.client(store.addr, ENGINE);
    let reader = &mut world.client(store.addr, GATEWAY);
    assert_eq!(refusal(writer.append(append(2)).await), unavailable());
    // Whether an older copy was put back is not known yet.
    let read = reader.get_receipt(get("acme", &first)).await;
    assert_eq!(refusal(read), unavailable());
    world.witnesses.set(0, Mood::Honest);
    reader.get_receipt(get("acme", &first)).await.unwrap();
    writer.append(append(2)).await.unwrap();
}

/// The same witnesses, and data and pins of another time.
fn on(world: &World, engine: cl_kv::MemoryEngine, pin: MemoryPin) -> World {
    World {
        engine,
        pin,
        witnesses: world.witnesses.clone(),
        ..World::new()
    }
}

#[tokio::test]
async fn data_put_back_together_with_their_pins_are_refused() {
    let world = witnessed(1, 1);
    let store = world.start().await;
    let writer = &mut world.client(store.addr, ENGINE);
    writer.append(append(1)).await.unwrap();
    writer.append(append(2)).await.unwrap();
    let (earlier, pins) = (crate::pins::copy_of(&world.engine), world.pin.copy());
    writer.append(append(3)).await.unwrap();
    store.end().await;
    let refused = on(&world, earlier.clone(), pins.copy()).refuses_to_start();
    assert!(refused.to_string().contains("rollback"), "{refused}");

    // They went on where no witness was asked, past what the witness has seen.
    let alone = World {
        engine: earlier.clone(),
        pin: pins.clone(),
        ..World::new()
    };
    let store = alone.start().await;
    let writer = &mut alone.client(store.addr, ENGINE);
    for number in 4..7 {
        writer.append(append(number)).await.unwrap();
    }
    store.end().await;
    let refused = on(&world, earlier, pins).refuses_to_start();
    assert!(refused.to_string().contains("fork"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_callers_are_cosigned_in_groups() {
    const CALLERS: u64 = 64;
    let world = witnessed(2, 2);
    let store = world.start().await;
    let writer = world.client(store.addr, ENGINE);
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..CALLERS {
        let mut writer = writer.clone();
        calls.spawn(async move { writer.append(append(number)).await.unwrap().into_inner() });
    }
    for answer in within("the calls", calls.join_all()).await {
        let signed = answer.proof.split_once("\n\n").unwrap().1;
        let signed = SignedCheckpoint::parse(signed.as_bytes()).unwrap();
        let cosigned = signed.cosignatures(&world.witnesses.quorum()).unwrap();
        assert_eq!(cosigned.len(), 2);
    }
}

/// A witness of other people, as a process.
struct OutsideWitness {
    key: String,
    port: u16,
    folder: tempfile::TempDir,
    child: Option<Child>,
}

impl OutsideWitness {
    /// None where Python or the package is not there.
    #[expect(
        clippy::disallowed_methods,
        clippy::print_stdout,
        reason = "whoever runs the tests has the package, or not"
    )]
    async fn start(log_key: &VerifierKey) -> Option<Self> {
        let Some(python) = std::env::var_os("CL_TLOG_PYTHON") else {
            println!("skipped: CL_TLOG_PYTHON names no interpreter");
            return None;
        };
        // A port that was free a moment ago.
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let folder = tempfile::tempdir().unwrap();
        let run = |arguments: Vec<String>| {
            let mut command = Command::new(&python);
            command.args(["-m", "aics_witness"]).args(&arguments);
            command
                .args(["-c", "witness.json"])
                .current_dir(folder.path());
            command
        };
        let listen = format!("127.0.0.1:{port}");
        let init = [
            "init",
            "--name",
            "witness.example/outside",
            "--listen",
            &listen,
        ];
        let init = run(init.map(str::to_owned).to_vec())
            .output()
            .await
            .unwrap();
        assert!(init.status.success(), "{init:?}");
        let printed = String::from_utf8(init.stdout).unwrap();
        let key = printed
            .split_whitespace()
            .find(|word| VerifierKey::parse(word).is_ok());
        let key = key.expect("a verifier key").to_owned();
        let (origin, log_key) = (log_key.to_string(), log_key.to_string());
        let origin = origin.split('+').next().unwrap();
        let add = ["add-log", "--origin", origin, "--vkey", &log_key];
        let add = run(add.map(str::to_owned).to_vec()).output().await.unwrap();
        assert!(add.status.success(), "{add:?}");
        let mut child = run(vec!["serve".to_owned()])
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let listening = async {
            while let Some(line) = lines.next_line().await.unwrap() {
                if line.contains("listening") {
                    return;
                }
            }
            panic!("the witness has ended");
        };
        within("the witness", listening).await;
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Some(Self {
            key,
            port,
            folder,
            child: Some(child),
        })
    }

    fn policy(&self) -> String {
        let Self { key, port, .. } = self;
        format!("witness outside {key} http://127.0.0.1:{port}\nquorum outside\n")
    }
}

#[tokio::test]
async fn a_witness_of_other_people_cosigns_and_notices_data_that_were_put_back() {
    let home = Home::new();
    let Some(mut witness) = OutsideWitness::start(&verifier_key(home.log_key, "acme")).await else {
        return;
    };
    fs::write(home.path().join("witnesses.policy"), witness.policy()).unwrap();
    let quorum = Policy::parse(&witness.policy()).unwrap().witnesses();
    let folders = ["data", "pins"];
    for number in 1..4 {
        let process = home.start().await;
        let writer = &mut home.client(&process, ENGINE);
        let answer = writer.append(append(number)).await.unwrap().into_inner();
        let proof = answer.proof.clone();
        let reader = &mut home.client(&process, GATEWAY);
        let found = reader.get_receipt(get("acme", &receipt_ref(answer))).await;
        let receipt = found.unwrap().into_inner().receipt.unwrap().receipt;
        let at = verify_cosigned(home.log_key, &quorum, "acme", &receipt, &proof);
        assert_eq!(at.size(), number);
        process.end().await;
        if number == 2 {
            for folder in folders {
                let path = home.path().join(folder);
                let copy = home.path().join(format!("{folder}-2"));
                let copied = Command::new("cp").arg("-r").args([path, copy]).status();
                assert!(copied.await.unwrap().success());
            }
        }
    }
    for folder in folders {
        let path = home.path().join(folder);
        fs::rename(&path, home.path().join(format!("{folder}-3"))).unwrap();
        fs::rename(home.path().join(format!("{folder}-2")), path).unwrap();
    }
    let output = within("an end", home.command().output()).await.unwrap();
    assert_eq!(output.status.code(), Some(1));
    let log = String::from_utf8(output.stderr).unwrap();
    assert!(log.contains("rollback"), "{log}");
    // Without the witness nothing says so, and nothing is acknowledged either.
    within("an end", witness.child.take().unwrap().kill())
        .await
        .unwrap();
    let process = home.start().await;
    let writer = &mut home.client(&process, ENGINE);
    assert_eq!(refusal(writer.append(append(9)).await), unavailable());
    drop(witness.folder);
}

#[tokio::test]
async fn refuses_policies_that_are_wrong() {
    let key = TestWitness::new(1).key.verifier_key().to_string();
    for (policy, says) in [
        (String::new(), "line 1 of the policy is wrong"),
        (format!("witness a {key}\nquorum b\n"), "line 2"),
        (format!("witness a {key}\nquorum a\n"), "a has no URL"),
        (
            format!("witness a {key} http://witness.example\nquorum a\n"),
            "https URL",
        ),
        (
            format!("witness a {key} https://witness.example\nquorum a\n"),
            "needs the certificates",
        ),
    ] {
        let home = Home::new();
        fs::write(home.path().join("witnesses.policy"), &policy).unwrap();
        let output = within("an end", home.command().output()).await.unwrap();
        assert_eq!(output.status.code(), Some(1), "{policy}");
        let log = String::from_utf8(output.stderr).unwrap();
        assert!(log.contains(says), "{log}");
    }
}
