//! Legal holds and erasures of receipts, as the operator.

use cl_wire::receipt::v1::hold_target::Target;
use cl_wire::receipt::v1::{
    EraseReceiptsRequest, Hold, HoldTarget, ListHoldsRequest, PlaceHoldRequest, ReleaseHoldRequest,
};
use serde_json::{Value, json};

use super::{MALFORMED, RECEIPT_PREFIX};
use crate::cli::tenant;
use crate::error::Error;
use crate::output;
use crate::peers;
use crate::policy::time;
use crate::processes::RECEIPT_STORE;
use crate::session::Session;

/// Settings of `clctl receipts hold`.
#[derive(Debug, clap::Args)]
pub(crate) struct HoldArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Why: a lowercase dotted name, such as litigation.2030-17. It stands in a receipt.
    #[arg(long)]
    reason: String,
    /// The tenant of the receipts.
    #[arg(long, default_value = "default", value_parser = tenant)]
    tenant: String,
}

/// Which receipts to hold.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct TargetArgs {
    /// All receipts of the tenant.
    #[arg(long)]
    all: bool,
    /// Those of one subject, by its tag.
    #[arg(long, value_name = "TAG")]
    subject_tag: Option<String>,
    /// Those about one bundle, by its URN.
    #[arg(long, value_name = "URN")]
    bundle: Option<String>,
    /// One receipt, by its URN or by what follows `urn:cl:receipt:`.
    #[arg(long, value_name = "ID")]
    receipt: Option<String>,
}

/// Settings of `clctl receipts release`.
#[derive(Debug, clap::Args)]
pub(crate) struct ReleaseArgs {
    /// The hold, `urn:cl:hold:..`.
    hold: String,
    /// Why, as for `hold`.
    #[arg(long)]
    reason: String,
    /// The tenant of the hold.
    #[arg(long, default_value = "default", value_parser = tenant)]
    tenant: String,
}

/// Settings of `clctl receipts erase`.
#[derive(Debug, clap::Args)]
pub(crate) struct EraseArgs {
    /// Whose receipts, by the subject's tag.
    #[arg(long, value_name = "TAG")]
    subject_tag: String,
    /// Why, as for `hold`.
    #[arg(long)]
    reason: String,
    /// The tenant of the receipts.
    #[arg(long, default_value = "default", value_parser = tenant)]
    tenant: String,
}

impl TargetArgs {
    fn target(self) -> Option<Target> {
        let receipt = self.receipt.map(|id| {
            let id = id.strip_prefix(RECEIPT_PREFIX).unwrap_or(&id);
            Target::ReceiptRef(format!("{RECEIPT_PREFIX}{id}"))
        });
        let all = self.all.then_some(Target::WholeTenant(true));
        all.or(self.subject_tag.map(Target::SubjectTag))
            .or(self.bundle.map(Target::BundleRef))
            .or(receipt)
    }
}

pub(crate) async fn hold(args: HoldArgs, session: &Session) -> Result<(), Error> {
    let request = PlaceHoldRequest {
        tenant: args.tenant,
        target: Some(HoldTarget {
            target: args.target.target(),
        }),
        reason: args.reason,
        operation_id: session.operation_id()?,
    };
    let answer = peers::receipt_admin(session)?.place_hold(request).await;
    let answer = answer.map_err(|status| Error::of_status(RECEIPT_STORE.name, &status))?;
    let answer = answer.into_inner();
    let receipt = answer.entry.ok_or(MALFORMED)?.receipt_ref;
    let document = json!({"hold": answer.hold_id, "receipt_ref": receipt});
    session
        .output
        .answer(&document, || format!("{}\n", answer.hold_id))
}

pub(crate) async fn release(args: ReleaseArgs, session: &Session) -> Result<(), Error> {
    let request = ReleaseHoldRequest {
        tenant: args.tenant,
        hold_id: args.hold,
        reason: args.reason,
        operation_id: session.operation_id()?,
    };
    let answer = peers::receipt_admin(session)?.release_hold(request).await;
    let answer = answer.map_err(|status| Error::of_status(RECEIPT_STORE.name, &status))?;
    let receipt = answer.into_inner().entry.ok_or(MALFORMED)?.receipt_ref;
    let document = json!({"receipt_ref": receipt});
    session.output.answer(&document, || format!("{receipt}\n"))
}

pub(crate) async fn list(tenant: String, session: &Session) -> Result<(), Error> {
    let request = ListHoldsRequest { tenant };
    let answer = peers::receipt_admin(session)?.list_holds(request).await;
    let answer = answer.map_err(|status| Error::of_status(RECEIPT_STORE.name, &status))?;
    let holds = answer.into_inner().holds.into_iter().map(Shown::of);
    let holds = holds.collect::<Option<Vec<_>>>().ok_or(MALFORMED)?;
    let document: Vec<Value> = holds.iter().map(Shown::to_json).collect();
    session.output.answer(&json!({"holds": document}), || {
        let rows = holds.iter().map(|it| {
            let covers = format!("{} {}", it.kind, it.name);
            let covers = covers.trim_end().to_owned();
            let texts = [&it.id, &it.reason, &it.placed_at];
            let [id, reason, placed_at] = texts.map(|text| output::printable(text));
            [id, output::printable(&covers), reason, placed_at]
        });
        let rows: Vec<_> = rows.collect();
        output::table(["HOLD", "COVERS", "REASON", "PLACED"], &rows)
    })
}

pub(crate) async fn erase(args: EraseArgs, session: &Session) -> Result<(), Error> {
    let request = EraseReceiptsRequest {
        tenant: args.tenant,
        subject_tag: args.subject_tag,
        reason: args.reason,
    };
    let answer = peers::receipt_admin(session)?.erase_receipts(request).await;
    let answer = answer.map_err(|status| Error::of_status(RECEIPT_STORE.name, &status))?;
    let answer = answer.into_inner();
    let document = json!({"erased": answer.erased, "held": answer.held});
    session.output.answer(&document, || {
        output::fields(&[
            ("erased", answer.erased.to_string()),
            ("held", answer.held.to_string()),
        ])
    })
}

/// A hold as it is shown.
struct Shown {
    id: String,
    kind: &'static str,
    name: String,
    reason: String,
    placed_by: String,
    placed_at: String,
}

impl Shown {
    fn of(hold: Hold) -> Option<Self> {
        let (kind, name) = match hold.target?.target? {
            Target::WholeTenant(_) => ("tenant", String::new()),
            Target::SubjectTag(tag) => ("subject", tag),
            Target::BundleRef(bundle) => ("bundle", bundle),
            Target::ReceiptRef(receipt) => ("receipt", receipt),
        };
        Some(Self {
            id: hold.hold_id,
            kind,
            name,
            reason: hold.reason,
            placed_by: hold.placed_by,
            placed_at: time(hold.placed_at.as_ref())?,
        })
    }

    fn to_json(&self) -> Value {
        json!({
            "hold": self.id,
            "covers": self.kind,
            "name": self.name,
            "reason": self.reason,
            "placed_by": self.placed_by,
            "placed_at": self.placed_at,
        })
    }
}
