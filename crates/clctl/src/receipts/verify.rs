//! Verifying a log on this side: of the store, of an exported folder, or some lines of one.

use std::path::{Path, PathBuf};

use cl_host::files::{self, MAX_PUBLIC_BYTES};
use cl_tlog::{Checkpoint, SignedCheckpoint, VerifierKey};
use serde_json::{Value, json};

use super::fault::{Place, Why};
use super::folder::Folder;
use super::keys::{LogKeys, verifier_key, witnesses};
use super::offline;
use super::source::Source;
use super::store::StoreLog;
use super::walk::Walk;
use crate::cli::tenant;
use crate::error::Error;
use crate::output;
use crate::session::Session;

/// Settings of `clctl receipts verify`.
#[derive(Debug, clap::Args)]
pub(crate) struct VerifyArgs {
    /// Verify an exported folder, without any process.
    #[arg(long, value_name = "DIR")]
    export: Option<PathBuf>,
    /// Verify one or more lines of receipts.jsonl by their proofs, without any process.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["export", "since"])]
    offline: Option<PathBuf>,
    /// Verify in addition that the log continues the one of this older checkpoint.
    #[arg(long, value_name = "CHECKPOINT_FILE")]
    since: Option<PathBuf>,
    /// Verify with this verifier key, and the log that it is named after, in place of the home's; may
    /// be repeated for a log whose key was replaced.
    #[arg(long, value_name = "KEY", value_parser = verifier_key)]
    key: Vec<VerifierKey>,
    /// Verify in addition that a quorum of the witnesses in this c2sp.org/tlog-policy file has cosigned
    /// each checkpoint.
    #[arg(long, value_name = "FILE")]
    witness_policy: Option<PathBuf>,
    /// The tenant of the log.
    #[arg(long, default_value = "default", value_parser = tenant)]
    tenant: String,
}

pub(crate) async fn run(args: &VerifyArgs, session: &Session) -> Result<(), Error> {
    let keys = match args.key.as_slice() {
        [] => LogKeys::of_home(session, &args.tenant)?,
        keys => LogKeys::of_keys(keys).ok_or(Error::KeysOfTwoLogs)?,
    };
    let keys = match &args.witness_policy {
        Some(policy) => keys.witnessed(witnesses(policy)?),
        None => keys,
    };
    if let Some(file) = &args.offline {
        let verified = offline::verify(file, &keys)?;
        let counts = (verified.lines, verified.erased);
        return answer(session, &keys, counts, &verified.newest, None);
    }
    let since = args.since.as_deref();
    let older = since.map(|file| read_older(file, &keys)).transpose()?;
    let source = match &args.export {
        Some(folder) => Source::Folder(Box::new(Folder::open(folder)?)),
        None => Source::Store(Box::new(StoreLog::open(session, &args.tenant)?)),
    };
    let checkpoint = match (source.checkpoint().await?, &older) {
        (Some(checkpoint), _) => checkpoint,
        (None, Some(older)) => {
            let older = older.size();
            return Err(Place::Checkpoint
                .is(Why::Rollback { size: 0, older })
                .into());
        }
        (None, None) if args.export.is_some() => {
            return Err(Place::Checkpoint.is(Why::FileMissing).into());
        }
        (None, None) => return Err(no_log(&args.tenant)),
    };
    let mut walk = Walk::open(source, &checkpoint, &keys).await?;
    if let Some(older) = &older {
        walk.check_continues(older).await?;
    }
    let (signed, erased) = walk.finish(&keys).await?;
    let counts = (signed.checkpoint().size(), erased);
    answer(session, &keys, counts, &signed, older.as_ref())
}

/// A tenant that has no log.
pub(super) fn no_log(tenant: &str) -> Error {
    Error::NoLog {
        tenant: tenant.to_owned(),
    }
}

fn read_older(file: &Path, keys: &LogKeys) -> Result<Checkpoint, Error> {
    let bytes = files::load_public(file, MAX_PUBLIC_BYTES)?;
    let signed = keys.read(&bytes, &Place::OlderCheckpoint)?;
    Ok(signed.checkpoint().clone())
}

fn answer(
    session: &Session,
    keys: &LogKeys,
    (entries, erased): (u64, u64),
    signed: &SignedCheckpoint,
    older: Option<&Checkpoint>,
) -> Result<(), Error> {
    let checkpoint = signed.checkpoint();
    let since = older.map(Checkpoint::size);
    let document = json!({
        "verified": true,
        "entries": entries,
        "erased": erased,
        "checkpoint": signed.to_string(),
        "origin": keys.origin(),
        "continues": since.map_or(Value::Null, Value::from),
    });
    session.output.answer(&document, || {
        let mut fields = vec![
            ("log", keys.origin().to_owned()),
            ("entries", entries.to_string()),
            ("erased", erased.to_string()),
            (
                "tree",
                format!("{} {}", checkpoint.size(), checkpoint.root()),
            ),
            ("verified", "yes".to_owned()),
        ];
        if let Some(since) = since {
            fields.push(("continues", format!("the checkpoint of {since} entries")));
        }
        output::fields(&fields)
    })
}
