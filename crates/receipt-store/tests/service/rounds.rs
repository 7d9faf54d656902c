//! Rounds: many callers on a store that fails and is killed, by a seed, and what must hold afterwards.
//!
//! `CL_ROUNDS` says how many rounds there are, and `CL_SEED` where their seeds start; a failure
//! prints the command that repeats its round.

mod check;
mod life;
mod schedule;

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use cl_kv::{MemoryEngine, RocksEngine};
use cl_receipt_store::pin::FolderPin;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use crate::failpoints::{Death, Failpoints, MemoryPin};
use check::{Figures, Wrong};
use life::{Disk, live};
use schedule::{Heard, Random, faults};

/// Starts in a round, the last one without faults not counted.
const MAX_LIVES: u64 = 4;

/// The stream of random numbers that a round itself draws from; its lives have those from 0 on.
const OF_ROUND: u64 = u64::MAX;

fn setting(name: &str) -> Option<u64> {
    #[expect(clippy::disallowed_methods, reason = "a test has no other settings")]
    let text = std::env::var(name).ok()?;
    Some(text.parse().expect("a number"))
}

/// The seeds to go through.
fn seeds(rounds: u64) -> impl Iterator<Item = u64> {
    let seed = setting("CL_SEED");
    let rounds = setting("CL_ROUNDS").unwrap_or(if seed.is_some() { 1 } else { rounds });
    let first = seed.unwrap_or(1);
    first..first + rounds
}

/// Prints how to repeat a round that fails.
struct Replay {
    test: &'static str,
    seed: u64,
}

impl Drop for Replay {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { test, seed } = self;
            eprintln!("repeat with: CL_SEED={seed} cargo test --workspace --test service {test}");
        }
    }
}

/// All rounds, and what they came to.
fn run(test: &'static str, rounds: u64, round: impl Fn(u64) -> Figures) {
    let mut total = Figures::default();
    for seed in seeds(rounds) {
        let _replay = Replay { test, seed };
        let figures = round(seed);
        assert_eq!(figures.wrong, Wrong::default());
        total += figures;
    }
    eprintln!("{test}: {total:#?}");
}

/// One thread, so that a seed fixes which calls share a group, as far as the machine lets it.
fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn memory_round(seed: u64) -> Figures {
    let engine = MemoryEngine::new();
    let disk = Disk {
        engine: Arc::new(engine.clone()),
        pin: Arc::new(MemoryPin::default()),
    };
    let mut random = Random::new(seed, OF_ROUND);
    let lives = 1 + random.below(MAX_LIVES);
    let mut heard = Vec::new();
    for life in 0..lives {
        let points = Failpoints::new(Death::Pretended, faults(&mut random));
        let mut tell = |it| heard.push(it);
        runtime().block_on(live(&disk, &Arc::new(points), (seed, life), &mut tell));
        engine.crash();
    }
    let mut figures = runtime().block_on(check::check(&disk, seed << 8 | lives, &heard));
    figures.starts = lives + 1;
    figures
}

#[test]
fn in_memory_no_fault_costs_what_was_acknowledged() {
    run("rounds::in_memory", 40, memory_round);
}

/// The disk of rounds that really kill.
fn disk(folder: &Path) -> Disk {
    Disk {
        engine: Arc::new(RocksEngine::open(&folder.join("data")).unwrap()),
        pin: Arc::new(FolderPin::open(folder.join("pins")).unwrap()),
    }
}

const CHILD: &str = "rounds::a_life_in_a_process_of_its_own";

/// The process that is killed, by its own plan or from outside; it tells on its standard error.
#[test]
#[ignore = "a part of another test"]
fn a_life_in_a_process_of_its_own() {
    #[expect(clippy::disallowed_methods, reason = "how its parent tells")]
    let folder = std::env::var("CL_ROUND_FOLDER").expect("only its parent starts it");
    let [seed, life, fault_seed] =
        ["CL_ROUND_SEED", "CL_ROUND_LIFE", "CL_ROUND_FAULTS"].map(|it| setting(it).unwrap());
    let plan = faults(&mut Random::new(fault_seed, OF_ROUND));
    let points = Arc::new(Failpoints::new(Death::Real, plan));
    let mut tell = |heard| eprintln!("{}", serde_json::to_string(&heard).unwrap());
    let disk = disk(Path::new(&folder));
    runtime().block_on(live(&disk, &points, (seed, life), &mut tell));
}

/// Runs a life, kills it after so many lines, and takes down what it told until then.
fn killed_life(
    folder: &Path,
    settings: [(&str, u64); 3],
    lines: u64,
    heard: &mut Vec<Heard>,
) -> bool {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--ignored", "--exact", "--nocapture", CHILD])
        .env("CL_ROUND_FOLDER", folder)
        .envs(settings.map(|(name, number)| (name, number.to_string())))
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let told = BufReader::new(child.stderr.take().unwrap());
    let mut other = String::new();
    for (number, line) in told.lines().map_while(Result::ok).enumerate() {
        match serde_json::from_str(&line) {
            Ok(it) => heard.push(it),
            Err(_) => other.push_str(&(line + "\n")),
        }
        if number as u64 == lines {
            child.kill().unwrap();
        }
    }
    let status = child.wait().unwrap();
    // Killed from outside, or by its own plan.
    let is_killed = matches!(status.signal(), Some(9 | 6));
    assert!(is_killed || status.success(), "{other}");
    assert!(!other.contains("panicked"), "{other}");
    is_killed
}

fn killed_round(seed: u64) -> Figures {
    let folder = TempDir::new().unwrap();
    let mut random = Random::new(seed, OF_ROUND);
    let lives = 1 + random.below(MAX_LIVES);
    let mut heard = Vec::new();
    let mut kills = 0;
    for life in 0..lives {
        let settings = [
            ("CL_ROUND_SEED", seed),
            ("CL_ROUND_LIFE", life),
            ("CL_ROUND_FAULTS", random.below(u64::MAX)),
        ];
        let lines = random.below(60);
        let is_killed = killed_life(folder.path(), settings, lines, &mut heard);
        kills += u64::from(is_killed);
    }
    let disk = disk(folder.path());
    let mut figures = runtime().block_on(check::check(&disk, seed << 8 | lives, &heard));
    figures.starts = lives + 1;
    figures.kills = kills;
    figures
}

#[test]
fn when_killed_no_fault_costs_what_was_acknowledged() {
    run("rounds::when_killed", 10, killed_round);
}
