//! Policy snapshots: as the operator, and offline.

mod delegations;
mod diff;
mod difference;
mod examined;
mod offline;
mod settings;
mod signing;

use std::path::{Path, PathBuf};

use cl_model::canonical;
use cl_model::time::UnixTime;
use cl_wire::policy::v1::{
    ActivateSnapshotRequest, GetSnapshotRequest, ListSnapshotsRequest, PutSnapshotRequest,
    SnapshotInfo, SnapshotSignature,
};
use clap::Subcommand;
use prost_types::Timestamp;
use serde_json::{Value, json};
use tonic::Code;

use crate::cli::tenant;
use crate::error::Error;
use crate::output;
use crate::peers::{self, PolicyAdmin};
use crate::processes::POLICY_ENGINE;
use crate::session::Session;

use self::delegations::DelegationCommand;
use self::examined::Which;
use self::settings::{AnomalyCommand, ShadowCommand};

const PAGE_SIZE: u32 = 1000;

/// Policy snapshots.
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Stores a snapshot without activating it, and prints its digest.
    Put {
        /// The snapshot, any form of JSON, or YAML if its name ends in `.yaml` or `.yml`.
        file: PathBuf,
        /// What `sign` printed [default: signs with keys/policy-snapshot.pem of the home, if it is there].
        #[arg(long)]
        signature: Option<PathBuf>,
        /// The tenant that it is for.
        #[arg(long, default_value = "default", value_parser = tenant)]
        tenant: String,
    },
    /// Signs a snapshot, for `put`, without any process.
    Sign {
        /// The snapshot.
        file: PathBuf,
        /// The operator's key: Ed25519, PKCS#8, PEM [default: keys/policy-snapshot.pem of the home].
        #[arg(long)]
        key: Option<PathBuf>,
    },
    /// Checks a snapshot as the engine would, without any process.
    Validate {
        /// The snapshot.
        file: PathBuf,
    },
    /// Evaluates the cases of a file by the snapshot that it names, without any process.
    Test {
        /// The cases, in YAML or JSON.
        file: PathBuf,
    },
    /// Prints a list-style snapshot with its policy in Cedar.
    Translate {
        /// The snapshot.
        file: PathBuf,
    },
    /// Says why a decision is as it is: which rules matched, and what they demand.
    Explain {
        /// The decision's URN.
        decision: String,
        /// The tenant of the decision.
        #[arg(long, default_value = "default", value_parser = tenant)]
        tenant: String,
    },
    /// Evaluates recorded decisions by another snapshot and shows what would be different.
    Simulate {
        /// The snapshot; it need not be stored.
        file: PathBuf,
        #[command(flatten)]
        which: Which,
    },
    /// Says what two snapshots say differently.
    Diff {
        /// A file, or the digest of a stored snapshot.
        one: String,
        /// Another one.
        other: String,
        /// The tenant of stored snapshots.
        #[arg(long, default_value = "default", value_parser = tenant)]
        tenant: String,
    },
    /// Evaluates recorded decisions again from their inputs: each has to come out bit by bit.
    Replay {
        /// The decision's URN.
        #[arg(required_unless_present = "all", conflicts_with_all = ["all", "since", "until", "last"])]
        decision: Option<String>,
        /// All decisions that are kept, or those of a time.
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        which: Which,
    },
    /// A snapshot that is evaluated beside the active one, and changes no answer.
    #[command(subcommand)]
    Shadow(ShadowCommand),
    /// Anomaly states of requesters.
    #[command(subcommand)]
    Anomaly(AnomalyCommand),
    /// What subjects delegate to requesters, for policies in Cedar to ask about.
    #[command(subcommand)]
    Delegation(DelegationCommand),
    /// Lists the snapshots of a tenant, newest first.
    List {
        /// The tenant.
        #[arg(long, default_value = "default", value_parser = tenant)]
        tenant: String,
    },
    /// Makes a stored snapshot the one that requests are decided by.
    Activate {
        /// The digest that `put` printed.
        digest: String,
        /// Only if this snapshot is the active one [default: the one that is active now].
        #[arg(long)]
        expected: Option<String>,
        /// The tenant of the snapshot.
        #[arg(long, default_value = "default", value_parser = tenant)]
        tenant: String,
    },
}

pub(crate) async fn run(command: PolicyCommand, session: &Session) -> Result<(), Error> {
    match command {
        PolicyCommand::Put {
            file,
            signature,
            tenant,
        } => {
            let snapshot = read_canonical(&file)?;
            let signature = match signature {
                Some(path) => Some(signing::read(&path)?),
                None => signing::by_home(session, &snapshot)?,
            };
            let mut admin = peers::policy_admin(session)?;
            let digest = put(&mut admin, session, &tenant, snapshot, signature).await?;
            let document = json!({"digest": digest});
            session.output.answer(&document, || format!("{digest}\n"))
        }
        PolicyCommand::Sign { file, key } => {
            signing::sign(session, &read_canonical(&file)?, key.as_deref())
        }
        PolicyCommand::Validate { file } => offline::validate(&file, session),
        PolicyCommand::Test { file } => offline::test(&file, session),
        PolicyCommand::Translate { file } => offline::print_translation(&file, session),
        PolicyCommand::Explain { decision, tenant } => {
            examined::explain(session, tenant, decision).await
        }
        PolicyCommand::Simulate { file, which } => {
            examined::simulate(session, read_canonical(&file)?, &which).await
        }
        PolicyCommand::Diff { one, other, tenant } => {
            examined::diff(session, &tenant, &one, &other).await
        }
        PolicyCommand::Replay {
            decision,
            all: _,
            which,
        } => examined::replay(session, decision, &which).await,
        PolicyCommand::Shadow(command) => settings::shadow(command, session).await,
        PolicyCommand::Anomaly(command) => settings::anomaly(command, session).await,
        PolicyCommand::Delegation(command) => delegations::run(command, session).await,
        PolicyCommand::List { tenant } => list(session, tenant).await,
        PolicyCommand::Activate {
            digest,
            expected,
            tenant,
        } => {
            let mut admin = peers::policy_admin(session)?;
            let expected = match expected {
                Some(digest) => Some(digest),
                None => active(&mut admin, &tenant).await?.map(|info| info.digest),
            };
            let info = activate(&mut admin, session, &tenant, digest, expected).await?;
            session
                .output
                .answer(&info_json(&info), || table(std::slice::from_ref(&info)))
        }
    }
}

/// Puts and activates the first snapshot of a tenant that has none active.
pub(crate) async fn ensure_active(
    admin: &mut PolicyAdmin,
    session: &Session,
    tenant: &str,
    file: &Path,
) -> Result<(), Error> {
    if active(admin, tenant).await?.is_some() {
        return Ok(());
    }
    let snapshot = read_canonical(file)?;
    let signature = signing::by_home(session, &snapshot)?;
    let digest = put(admin, session, tenant, snapshot, signature).await?;
    activate(admin, session, tenant, digest, None).await?;
    Ok(())
}

/// The active snapshot of a tenant, if there is one.
pub(crate) async fn active(
    admin: &mut PolicyAdmin,
    tenant: &str,
) -> Result<Option<SnapshotInfo>, Error> {
    let request = GetSnapshotRequest {
        tenant: tenant.to_owned(),
        digest: None,
    };
    match admin.get_snapshot(request).await {
        Ok(answer) => answer.into_inner().info.map(Some).ok_or(MALFORMED),
        Err(status) if status.code() == Code::NotFound => Ok(None),
        Err(status) => Err(Error::of_status(POLICY_ENGINE.name, &status)),
    }
}

const MALFORMED: Error = Error::Answer {
    peer: POLICY_ENGINE.name,
};

/// The canonical bytes of a snapshot in a file.
fn read_canonical(file: &Path) -> Result<Vec<u8>, Error> {
    Ok(canonical::to_text(&offline::read(file)?).into_bytes())
}

async fn put(
    admin: &mut PolicyAdmin,
    session: &Session,
    tenant: &str,
    snapshot: Vec<u8>,
    signature: Option<SnapshotSignature>,
) -> Result<String, Error> {
    let request = PutSnapshotRequest {
        tenant: tenant.to_owned(),
        snapshot,
        operation_id: session.operation_id()?,
        signature,
    };
    let answer = admin.put_snapshot(request).await;
    let answer = answer.map_err(|status| Error::of_status(POLICY_ENGINE.name, &status))?;
    Ok(answer.into_inner().digest)
}

async fn activate(
    admin: &mut PolicyAdmin,
    session: &Session,
    tenant: &str,
    digest: String,
    expected_current_digest: Option<String>,
) -> Result<SnapshotInfo, Error> {
    let request = ActivateSnapshotRequest {
        tenant: tenant.to_owned(),
        digest,
        expected_current_digest,
        operation_id: session.operation_id()?,
    };
    let answer = admin.activate_snapshot(request).await;
    let answer = answer.map_err(|status| Error::of_status(POLICY_ENGINE.name, &status))?;
    answer.into_inner().info.ok_or(MALFORMED)
}

async fn list(session: &Session, tenant: String) -> Result<(), Error> {
    let mut admin = peers::policy_admin(session)?;
    let mut request = ListSnapshotsRequest {
        tenant,
        page_size: PAGE_SIZE,
        page_token: String::new(),
    };
    let mut snapshots = Vec::new();
    loop {
        let page = admin.list_snapshots(request.clone()).await;
        let page = page.map_err(|status| Error::of_status(POLICY_ENGINE.name, &status))?;
        let page = page.into_inner();
        snapshots.extend(page.snapshots);
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
    }
    let document = json!({
        "snapshots": snapshots.iter().map(info_json).collect::<Vec<_>>(),
    });
    session.output.answer(&document, || table(&snapshots))
}

fn info_json(info: &SnapshotInfo) -> Value {
    json!({
        "digest": info.digest,
        "version": info.version,
        "active": info.active,
        "stored_at": time(info.stored_at.as_ref()),
        "activated_at": time(info.activated_at.as_ref()),
        "expires_at": time(info.expires_at.as_ref()),
        "signed_by": info.signed_by,
    })
}

fn table(snapshots: &[SnapshotInfo]) -> String {
    let or_dash = |stamp: Option<&Timestamp>| time(stamp).unwrap_or_else(|| "-".to_owned());
    let rows: Vec<_> = snapshots
        .iter()
        .map(|info| {
            [
                if info.active { "*" } else { "" }.to_owned(),
                info.version.clone(),
                or_dash(info.stored_at.as_ref()),
                or_dash(info.expires_at.as_ref()),
                info.digest.clone(),
            ]
        })
        .collect();
    output::table(["ACTIVE", "VERSION", "STORED", "EXPIRES", "DIGEST"], &rows)
}

/// A time of a peer, as this project writes times.
pub(crate) fn time(stamp: Option<&Timestamp>) -> Option<String> {
    let stamp = stamp?;
    let ms = stamp
        .seconds
        .saturating_mul(1000)
        .saturating_add(i64::from(stamp.nanos / 1_000_000));
    Some(UnixTime::from_milliseconds(ms).to_string())
}
