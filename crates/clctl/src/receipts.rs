//! Receipts: reading, exporting, verifying and explaining them as the auditor, holding and erasing them
//! as the operator.

mod explain;
mod export;
mod fault;
mod folder;
mod holds;
mod kept;
mod keys;
mod list;
mod offline;
mod recorded;
mod source;
mod store;
mod verify;
mod walk;

use std::path::PathBuf;

use cl_wire::receipt::v1::GetReceiptRequest;
use clap::Subcommand;

pub(crate) use self::fault::Fault;
use self::holds::{EraseArgs, HoldArgs, ReleaseArgs};
use self::list::ListArgs;
pub(crate) use self::list::moment;
use self::recorded::Recorded;
use self::verify::VerifyArgs;
use crate::cli::tenant;
use crate::error::Error;
use crate::peers::Receipts;
use crate::processes::RECEIPT_STORE;
use crate::session::Session;

const RECEIPT_PREFIX: &str = "urn:cl:receipt:";

const MALFORMED: Error = Error::Answer {
    peer: RECEIPT_STORE.name,
};

/// Receipts of what was done.
#[derive(Debug, Subcommand)]
pub(crate) enum ReceiptsCommand {
    /// Lists receipts in the order of the log.
    List(ListArgs),
    /// Shows one receipt.
    Show {
        #[command(flatten)]
        receipt: ReceiptArgs,
        /// Print its proof file alone (c2sp.org/tlog-proof).
        #[arg(long)]
        proof: bool,
    },
    /// Says in plain words what a receipt is evidence of, and whether its proof verifies.
    Explain {
        #[command(flatten)]
        receipt: ReceiptArgs,
    },
    /// Writes a verified log to a new folder that needs nothing else to be verified again.
    Export {
        /// The folder, which must not exist.
        folder: PathBuf,
        /// The tenant of the log.
        #[arg(long, default_value = "default", value_parser = tenant)]
        tenant: String,
    },
    /// Verifies a log here: checkpoint, tiles, entries and receipts.
    Verify(VerifyArgs),
    /// Keeps receipts beyond their retention, until the hold is released.
    Hold(HoldArgs),
    /// Ends a hold.
    Release(ReleaseArgs),
    /// Lists the holds.
    Holds {
        /// The tenant of the holds.
        #[arg(long, default_value = "default", value_parser = tenant)]
        tenant: String,
    },
    /// Erases the receipts of a subject that no hold covers.
    Erase(EraseArgs),
}

/// Which receipt.
#[derive(Debug, clap::Args)]
pub(crate) struct ReceiptArgs {
    /// Its URN, or what follows `urn:cl:receipt:`.
    id: String,
    /// The tenant of the receipt.
    #[arg(long, default_value = "default", value_parser = tenant)]
    tenant: String,
}

impl ReceiptArgs {
    /// The receipt and its proof file, from the store.
    async fn read(&self, store: &mut Receipts) -> Result<(Recorded, String), Error> {
        let id = self.id.strip_prefix(RECEIPT_PREFIX).unwrap_or(&self.id);
        let request = GetReceiptRequest {
            tenant: self.tenant.clone(),
            receipt_ref: format!("{RECEIPT_PREFIX}{id}"),
            actor: None,
        };
        let answer = store.get_receipt(request).await;
        let answer = answer.map_err(|status| Error::of_status(RECEIPT_STORE.name, &status))?;
        let answer = answer.into_inner();
        let recorded = answer.receipt.and_then(Recorded::of_store);
        let asked = |recorded: &Recorded| recorded.receipt_ref() == format!("{RECEIPT_PREFIX}{id}");
        Ok((recorded.filter(asked).ok_or(MALFORMED)?, answer.proof))
    }
}

pub(crate) async fn run(command: ReceiptsCommand, session: &Session) -> Result<(), Error> {
    match command {
        ReceiptsCommand::List(args) => list::run(args, session).await,
        ReceiptsCommand::Show { receipt, proof } => list::show(&receipt, proof, session).await,
        ReceiptsCommand::Explain { receipt } => explain::run(&receipt, session).await,
        ReceiptsCommand::Export { folder, tenant } => export::run(&folder, &tenant, session).await,
        ReceiptsCommand::Verify(args) => verify::run(&args, session).await,
        ReceiptsCommand::Hold(args) => holds::hold(args, session).await,
        ReceiptsCommand::Release(args) => holds::release(args, session).await,
        ReceiptsCommand::Holds { tenant } => holds::list(tenant, session).await,
        ReceiptsCommand::Erase(args) => holds::erase(args, session).await,
    }
}
