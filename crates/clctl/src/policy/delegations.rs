//! What subjects delegate to requesters.

use cl_model::time::UnixTime;
use cl_wire::policy::v1::{
    Delegation, ListDelegationsRequest, RevokeDelegationRequest, SetDelegationRequest,
};
use clap::Subcommand;
use serde_json::json;

use super::examined::refused;
use super::{PAGE_SIZE, time};
use crate::cli::tenant;
use crate::error::Error;
use crate::output::{self, joined};
use crate::peers;
use crate::receipts::moment;
use crate::session::Session;

/// What subjects delegate to requesters.
#[derive(Debug, Subcommand)]
pub(crate) enum DelegationCommand {
    /// Writes down what a subject delegates, in place of what it had delegated to the same requester.
    Set {
        /// Whose context.
        subject: String,
        /// To whom: the principal, as it authenticates.
        delegate: String,
        /// A purpose code; repeatable.
        #[arg(long = "purpose", required = true)]
        purposes: Vec<String>,
        /// A predicate; repeatable.
        #[arg(long = "predicate", required = true)]
        predicates: Vec<String>,
        /// Until when, such as 2030-01-01T00:00:00Z; at most a year.
        #[arg(long, value_parser = moment)]
        until: UnixTime,
        /// The tenant of the subject.
        #[arg(long, default_value = "default", value_parser = tenant)]
        tenant: String,
    },
    /// Revokes it.
    Revoke {
        /// Whose context.
        subject: String,
        /// To whom it was delegated.
        delegate: String,
        /// The tenant of the subject.
        #[arg(long, default_value = "default", value_parser = tenant)]
        tenant: String,
    },
    /// Lists what is delegated, also what has ended.
    List {
        /// The tenant.
        #[arg(long, default_value = "default", value_parser = tenant)]
        tenant: String,
    },
}

pub(super) async fn run(command: DelegationCommand, session: &Session) -> Result<(), Error> {
    let mut admin = peers::policy_admin(session)?;
    match command {
        DelegationCommand::Set {
            subject,
            delegate,
            purposes,
            predicates,
            until,
            tenant,
        } => {
            let request = SetDelegationRequest {
                tenant,
                subject,
                delegate,
                purpose_codes: purposes,
                predicates,
                expires_at: Some(cl_wire::time::to_message(until)),
                operation_id: session.operation_id()?,
            };
            let answer = admin.set_delegation(request).await;
            let answer = answer.map_err(|status| refused(&status))?.into_inner();
            show(session, &Vec::from_iter(answer.delegation))
        }
        DelegationCommand::Revoke {
            subject,
            delegate,
            tenant,
        } => {
            let request = RevokeDelegationRequest {
                tenant,
                subject,
                delegate,
                operation_id: session.operation_id()?,
            };
            let answer = admin.revoke_delegation(request).await;
            answer.map_err(|status| refused(&status))?;
            show(session, &[])
        }
        DelegationCommand::List { tenant } => list(session, tenant).await,
    }
}

async fn list(session: &Session, tenant: String) -> Result<(), Error> {
    let mut admin = peers::policy_admin(session)?;
    let mut request = ListDelegationsRequest {
        tenant,
        page_size: PAGE_SIZE,
        page_token: String::new(),
    };
    let mut delegations = Vec::new();
    loop {
        let page = admin.list_delegations(request.clone()).await;
        let page = page.map_err(|status| refused(&status))?.into_inner();
        delegations.extend(page.delegations);
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
    }
    delegations.sort_by(|one, other| {
        (&one.subject, &one.delegate).cmp(&(&other.subject, &other.delegate))
    });
    show(session, &delegations)
}

fn show(session: &Session, delegations: &[Delegation]) -> Result<(), Error> {
    let documents = delegations.iter().map(|delegation| {
        json!({
            "subject": delegation.subject,
            "delegate": delegation.delegate,
            "purpose_codes": delegation.purpose_codes,
            "predicates": delegation.predicates,
            "expires_at": time(delegation.expires_at.as_ref()),
            "set_at": time(delegation.set_at.as_ref()),
        })
    });
    let document = json!({"delegations": documents.collect::<Vec<_>>()});
    session.output.answer(&document, || {
        let rows: Vec<_> = delegations
            .iter()
            .map(|delegation| {
                [
                    delegation.subject.clone(),
                    delegation.delegate.clone(),
                    joined(&delegation.purpose_codes),
                    joined(&delegation.predicates),
                    time(delegation.expires_at.as_ref()).unwrap_or_else(|| "-".to_owned()),
                ]
            })
            .collect();
        let heads = ["SUBJECT", "DELEGATE", "PURPOSES", "PREDICATES", "UNTIL"];
        output::table(heads, &rows)
    })
}
