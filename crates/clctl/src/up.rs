//! Starts the processes of a home, watches them, and stops them.

mod children;
mod log;
mod plan;

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cl_host::life::Signals;
use clap::builder::PossibleValuesParser;
use tokio::signal::unix::{SignalKind, signal};

use self::children::Children;
use self::plan::{Plan, Planned};
use crate::endpoints::{Endpoint, Endpoints};
use crate::error::Error;
use crate::home::{Home, make_folder, write_error};
use crate::http::is_ready;
use crate::output;
use crate::peers;
use crate::policy;
use crate::processes::{
    CONSOLE, DEFAULT_BASE_PORT, GATEWAY, POLICY_ENGINE, PROCESSES, Process, console_url,
};
use crate::session::Session;

/// The tenant that gets the home's first policy.
const TENANT: &str = "default";

/// Time for a process to become ready; a large log is checked before.
const READY_LIMIT: Duration = Duration::from_secs(60);

/// How often a process that starts is asked whether it is ready.
const ASK_INTERVAL: Duration = Duration::from_millis(50);

/// What a process may need after its last call: sending telemetry, ending threads.
const AFTER_DRAIN: Duration = Duration::from_secs(8);

/// Settings of `clctl up`.
#[derive(Debug, clap::Args)]
pub(crate) struct UpArgs {
    /// The first of the ports, all on 127.0.0.1; 0 takes free ones.
    #[arg(long, default_value_t = DEFAULT_BASE_PORT)]
    base_port: u16,

    /// Folder of the programs [default: where clctl is].
    #[arg(long)]
    bin_dir: Option<PathBuf>,

    /// Leave this process out; repeatable.
    #[arg(long, value_name = "PROCESS", value_parser = PossibleValuesParser::new(names()))]
    without: Vec<String>,

    /// Which logs the processes write, for example `info,cl_gateway=debug`.
    #[arg(long, env = "CL_LOG_FILTER", default_value = "info")]
    log_filter: String,

    /// OTLP collector for traces and metrics of the processes, `http://..`.
    #[arg(long, env = "CL_OTLP_ENDPOINT")]
    otlp_endpoint: Option<String>,

    /// Has the policy engine take only snapshots that a key of trust.json has signed, such as the home's.
    #[arg(long)]
    require_signed_snapshots: bool,

    /// Time for running calls to end when the processes are stopped.
    #[arg(long, default_value_t = 5_000)]
    drain_deadline_ms: u64,
}

fn names() -> impl Iterator<Item = &'static str> {
    PROCESSES.iter().map(|process| process.name)
}

pub(crate) async fn run(args: &UpArgs, session: &Session) -> Result<(), Error> {
    let home = &session.home;
    home.check()?;
    // Before anything exists that a signal would have to undo.
    let mut signals = signals().map_err(Error::Runtime)?;
    let _held_until_the_end = lock(home)?;
    refuse_left_overs(home)?;
    Endpoints::remove(home)?;
    let plan = Plan::of(args, home)?;
    let mut children = Children::default();

    let started = tokio::select! {
        started = start(plan, &mut children, session) => started,
        () = signals.next() => Err(Error::Interrupted),
    };
    let outcome = match started {
        Ok(endpoints) => serve(&endpoints, &mut children, &mut signals, session).await,
        Err(error) => Err(error),
    };
    let removed = Endpoints::remove(home);
    let limit = Duration::from_millis(args.drain_deadline_ms) + AFTER_DRAIN;
    let stopped = children.stop(limit, &mut signals).await;
    outcome.and(removed).and(stopped)
}

/// Starts one process after the other, each when those before it are ready.
async fn start(plan: Plan, children: &mut Children, session: &Session) -> Result<Endpoints, Error> {
    let mut processes = Vec::new();
    for planned in plan.processes {
        let Planned {
            process,
            command,
            addrs,
            log,
            ports,
        } = planned;
        drop(ports);
        let pid = children.start(process.name, command, log)?;
        let ready = async {
            while !is_ready(addrs.admin).await {
                tokio::time::sleep(ASK_INTERVAL).await;
            }
        };
        tokio::select! {
            waited = tokio::time::timeout(READY_LIMIT, ready) => {
                waited.map_err(|_| Error::NotReady {
                    process: process.name,
                    seconds: READY_LIMIT.as_secs(),
                    log: session.home.log(process.name),
                })?;
            }
            death = children.death() => return Err(death),
        }
        processes.push(Endpoint {
            name: process.name.to_owned(),
            addr: addrs.main,
            admin_addr: addrs.admin,
            pid,
        });
    }
    let addr_of = |process: &Process| {
        let mut started = processes.iter();
        let found = started.find(|endpoint| endpoint.name == process.name);
        found.map(|endpoint| endpoint.addr)
    };
    if let Some(addr) = addr_of(&POLICY_ENGINE) {
        let mut admin = peers::policy_admin_at(session, addr)?;
        let file = session.home.default_policy();
        policy::ensure_active(&mut admin, session, TENANT, &file).await?;
    }
    Ok(Endpoints {
        ready_at: session.now().to_string(),
        gateway_url: addr_of(&GATEWAY).map(|addr| format!("https://{addr}")),
        console_url: addr_of(&CONSOLE).map(console_url),
        processes,
    })
}

/// Tells where everything is, and waits until something ends.
async fn serve(
    endpoints: &Endpoints,
    children: &mut Children,
    signals: &mut Signals,
    session: &Session,
) -> Result<(), Error> {
    endpoints.write(&session.home)?;
    session.output.answer(&endpoints.to_json(), || {
        let rows: Vec<_> = endpoints.processes.iter().map(row).collect();
        let table = output::table(["PROCESS", "ADDRESS", "ADMIN", "PID"], &rows);
        let gateway = endpoints.gateway_url.iter();
        let gateway: String = gateway.map(|url| format!("\ngateway  {url}\n")).collect();
        let console = endpoints.console_url.iter();
        let console: String = console.map(|url| format!("console  {url}\n")).collect();
        format!("{table}{gateway}{console}\nCtrl-C stops all of them.\n")
    })?;
    tokio::select! {
        death = children.death() => Err(death),
        () = signals.next() => {
            session.output.note("stopping");
            Ok(())
        }
    }
}

fn row(endpoint: &Endpoint) -> [String; 4] {
    [
        endpoint.name.clone(),
        endpoint.addr.to_string(),
        endpoint.admin_addr.to_string(),
        endpoint.pid.to_string(),
    ]
}

/// Makes this the only `up` of the home, until the file is closed.
fn lock(home: &Home) -> Result<File, Error> {
    let path = home.lock();
    make_folder(path.parent().unwrap_or(Path::new(".")))?;
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(write_error(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::AlreadyUp),
        Err(TryLockError::Error(error)) => Err(write_error(&path)(error)),
    }
}

/// An `up` that was killed could not stop its processes.
fn refuse_left_overs(home: &Home) -> Result<(), Error> {
    // A file that cannot be read names nobody; it is removed next.
    let Ok(Some(endpoints)) = Endpoints::load(home) else {
        return Ok(());
    };
    let is_left = |endpoint: &&Endpoint| runs(endpoint.pid, &endpoint.name);
    let left: Vec<_> = endpoints.processes.iter().filter(is_left).collect();
    if left.is_empty() {
        return Ok(());
    }
    Err(Error::LeftOver {
        processes: left.iter().map(|process| process.name.clone()).collect(),
        pids: left.iter().map(|process| process.pid.to_string()).collect(),
    })
}

/// Whether a program with this name runs as this process, and has not just ended.
fn runs(pid: i32, name: &str) -> bool {
    // As Linux shortens names.
    const MAX_NAME_BYTES: usize = 15;

    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // `<pid> (<name>) <state> ..`
    let parts = stat
        .split_once(" (")
        .and_then(|(_, rest)| rest.rsplit_once(") "));
    parts.is_some_and(|(shown, rest)| {
        shown == name.get(..MAX_NAME_BYTES).unwrap_or(name) && !rest.starts_with('Z')
    })
}

/// What tells this process to end: SIGTERM, Ctrl-C, and the end of its terminal.
fn signals() -> io::Result<Signals> {
    let (sender, signals) = Signals::injected();
    for kind in [
        SignalKind::terminate(),
        SignalKind::interrupt(),
        SignalKind::hangup(),
    ] {
        let mut source = signal(kind)?;
        let sender = sender.clone();
        tokio::spawn(async move {
            while source.recv().await.is_some() {
                sender.send();
            }
        });
    }
    Ok(signals)
}
