//! What an operator sets beside snapshots: a shadow, and anomaly states of requesters.

use std::fmt::Write as _;

use cl_wire::policy::v1::{
    AnomalyState, ClearAnomalyStateRequest, ClearShadowRequest, GetShadowRequest,
    ListAnomalyStatesRequest, SetAnomalyStateRequest, SetShadowRequest, Shadow,
};
use clap::Subcommand;
use serde_json::{Value, json};

use super::difference::{self, difference_json};
use super::examined::refused;
use super::{PAGE_SIZE, time};
use crate::cli::tenant;
use crate::error::Error;
use crate::output::{self, printable};
use crate::peers;
use crate::session::Session;

/// A snapshot that is evaluated beside the active one.
#[derive(Debug, Subcommand)]
pub(crate) enum ShadowCommand {
    /// Has a stored snapshot evaluated beside the active one. It changes no answer.
    Set {
        /// The digest that `put` printed.
        digest: String,
        /// The tenant of the snapshot.
        #[arg(long, default_value = "default", value_parser = tenant)]
        tenant: String,
    },
    /// Ends that.
    Clear {
        /// The tenant.
        #[arg(long, default_value = "default", value_parser = tenant)]
        tenant: String,
    },
    /// Shows what the shadow would have decided otherwise since the engine was started.
    Show {
        /// The tenant.
        #[arg(long, default_value = "default", value_parser = tenant)]
        tenant: String,
    },
}

/// Anomaly states of requesters.
#[derive(Debug, Subcommand)]
pub(crate) enum AnomalyCommand {
    /// Sets the state of a requester: a list-style policy denies it everything, one in Cedar asks.
    Set {
        /// The principal, as it authenticates.
        requester: String,
        /// The state, a lowercase name such as `elevated`.
        state: String,
        /// The tenant of the requester.
        #[arg(long, default_value = "default", value_parser = tenant)]
        tenant: String,
    },
    /// Clears the state of a requester.
    Clear {
        /// The principal.
        requester: String,
        /// The tenant of the requester.
        #[arg(long, default_value = "default", value_parser = tenant)]
        tenant: String,
    },
    /// Lists requesters that have a state.
    List {
        /// The tenant.
        #[arg(long, default_value = "default", value_parser = tenant)]
        tenant: String,
    },
}

pub(super) async fn shadow(command: ShadowCommand, session: &Session) -> Result<(), Error> {
    let mut admin = peers::policy_admin(session)?;
    let shadow = match command {
        ShadowCommand::Set { digest, tenant } => {
            let request = SetShadowRequest {
                tenant,
                digest,
                operation_id: session.operation_id()?,
            };
            let answer = admin.set_shadow(request).await;
            answer
                .map_err(|status| refused(&status))?
                .into_inner()
                .shadow
        }
        ShadowCommand::Clear { tenant } => {
            let request = ClearShadowRequest {
                tenant,
                operation_id: session.operation_id()?,
            };
            let answer = admin.clear_shadow(request).await;
            answer.map_err(|status| refused(&status))?;
            None
        }
        ShadowCommand::Show { tenant } => {
            let answer = admin.get_shadow(GetShadowRequest { tenant }).await;
            answer
                .map_err(|status| refused(&status))?
                .into_inner()
                .shadow
        }
    };
    let document = json!({"shadow": shadow.as_ref().map(shadow_json)});
    session.output.answer(&document, || match &shadow {
        None => "no snapshot is evaluated beside the active one\n".to_owned(),
        Some(shadow) => shadow_text(shadow),
    })
}

fn shadow_json(shadow: &Shadow) -> Value {
    json!({
        "digest": shadow.digest,
        "version": shadow.version,
        "set_at": time(shadow.set_at.as_ref()),
        "equal": shadow.equal,
        "different": shadow.different,
        "differences": shadow.differences.iter().map(difference_json).collect::<Vec<_>>(),
    })
}

fn shadow_text(shadow: &Shadow) -> String {
    let mut text = format!(
        "{} ({})\n",
        printable(&shadow.version),
        printable(&shadow.digest)
    );
    text.push_str(&difference::table(&shadow.differences));
    let looked_at = shadow.equal.saturating_add(shadow.different);
    // Writing into a string does not fail.
    let _written = writeln!(
        text,
        "{} of {looked_at} decisions would be different",
        shadow.different
    );
    text
}

pub(super) async fn anomaly(command: AnomalyCommand, session: &Session) -> Result<(), Error> {
    match command {
        AnomalyCommand::Set {
            requester,
            state,
            tenant,
        } => {
            let request = SetAnomalyStateRequest {
                tenant,
                requester,
                state,
                operation_id: session.operation_id()?,
            };
            let mut admin = peers::policy_admin(session)?;
            let answer = admin.set_anomaly_state(request).await;
            let answer = answer.map_err(|status| refused(&status))?.into_inner();
            show(session, &Vec::from_iter(answer.anomaly_state))
        }
        AnomalyCommand::Clear { requester, tenant } => {
            let request = ClearAnomalyStateRequest {
                tenant,
                requester,
                operation_id: session.operation_id()?,
            };
            let mut admin = peers::policy_admin(session)?;
            let answer = admin.clear_anomaly_state(request).await;
            answer.map_err(|status| refused(&status))?;
            show(session, &[])
        }
        AnomalyCommand::List { tenant } => list(session, tenant).await,
    }
}

async fn list(session: &Session, tenant: String) -> Result<(), Error> {
    let mut admin = peers::policy_admin(session)?;
    let mut request = ListAnomalyStatesRequest {
        tenant,
        page_size: PAGE_SIZE,
        page_token: String::new(),
    };
    let mut states = Vec::new();
    loop {
        let page = admin.list_anomaly_states(request.clone()).await;
        let page = page.map_err(|status| refused(&status))?.into_inner();
        states.extend(page.anomaly_states);
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
    }
    states.sort_by(|one, other| one.requester.cmp(&other.requester));
    show(session, &states)
}

fn show(session: &Session, states: &[AnomalyState]) -> Result<(), Error> {
    let documents = states.iter().map(|state| {
        json!({
            "requester": state.requester,
            "state": state.state,
            "set_at": time(state.set_at.as_ref()),
        })
    });
    let document = json!({"anomaly_states": documents.collect::<Vec<_>>()});
    session.output.answer(&document, || {
        let rows: Vec<_> = states
            .iter()
            .map(|state| {
                [
                    state.state.clone(),
                    time(state.set_at.as_ref()).unwrap_or_else(|| "-".to_owned()),
                    state.requester.clone(),
                ]
            })
            .collect();
        output::table(["STATE", "SET", "REQUESTER"], &rows)
    })
}
