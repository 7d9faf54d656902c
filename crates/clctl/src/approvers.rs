//! People who approve: their passkeys, as the operator, and what they signed.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use cl_model::artefact::{Artefact, InvalidArtefact, MAX_ARTEFACT_BYTES, VerifiedApproval};
use cl_model::passkey::RelyingParty;
use cl_wire::policy::v1::{
    ConfirmCredentialRequest, Credential, CredentialState, GetApprovalRequest,
    ListCredentialsRequest, OpenEnrolmentRequest, RevokeCredentialRequest,
};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::cli::tenant;
use crate::error::Error;
use crate::output;
use crate::peers::{self, ApproverAdmin};
use crate::policy::time;
use crate::processes::POLICY_ENGINE;
use crate::session::Session;

const PAGE_SIZE: u32 = 1000;

const MALFORMED: Error = Error::Answer {
    peer: POLICY_ENGINE.name,
};

/// People who approve, and their passkeys.
#[derive(Debug, Subcommand)]
pub(crate) enum ApproversCommand {
    /// Makes a link by which a person enrols one passkey within half an hour. It is shown once.
    Enrol {
        /// The person, as the policy's approvers name them.
        principal: String,
        /// The tenant of the person.
        #[arg(long, default_value = "default", value_parser = tenant)]
        tenant: String,
    },
    /// Lists passkeys with their fingerprints.
    List {
        /// The tenant.
        #[arg(long, default_value = "default", value_parser = tenant)]
        tenant: String,
    },
    /// Makes an enrolled passkey usable, if it has the fingerprint that the person reads out.
    Confirm {
        /// The passkey, as `list` names it.
        credential: String,
        /// What the person's browser shows: 20 hexadecimal digits, with or without spaces.
        fingerprint: String,
        /// The tenant of the person.
        #[arg(long, default_value = "default", value_parser = tenant)]
        tenant: String,
    },
    /// Ends a passkey for good.
    Revoke {
        /// The passkey, as `list` names it.
        credential: String,
        /// The tenant of the person.
        #[arg(long, default_value = "default", value_parser = tenant)]
        tenant: String,
    },
}

/// What people approved.
#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// Prints the signed approval that a decision was made with, for `verify`.
    Show {
        /// The decision's URN.
        decision: String,
        /// The tenant of the decision.
        #[arg(long, default_value = "default", value_parser = tenant)]
        tenant: String,
    },
    /// Verifies a signed approval by nothing but itself.
    Verify(VerifyArgs),
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// What `show` printed.
    file: PathBuf,
    /// The relying party id of the console.
    #[arg(long, default_value = "localhost")]
    rp_id: String,
    /// An origin of the console; may be given more than once.
    #[arg(long, default_value = "https://localhost:7406")]
    origin: Vec<String>,
}

pub(crate) async fn approvers(command: ApproversCommand, session: &Session) -> Result<(), Error> {
    match command {
        ApproversCommand::Enrol { principal, tenant } => enrol(session, tenant, principal).await,
        ApproversCommand::List { tenant } => list(session, tenant).await,
        ApproversCommand::Confirm {
            credential,
            fingerprint,
            tenant,
        } => {
            let message = ConfirmCredentialRequest {
                tenant,
                credential_ref: credential,
                fingerprint,
                operation_id: session.operation_id()?,
            };
            let mut admin = peers::approver_admin(session)?;
            let answer = admin.confirm_credential(message).await.map_err(refused)?;
            show_one(session, answer.into_inner().credential)
        }
        ApproversCommand::Revoke { credential, tenant } => {
            let message = RevokeCredentialRequest {
                tenant,
                credential_ref: credential,
                operation_id: session.operation_id()?,
            };
            let mut admin = peers::approver_admin(session)?;
            let answer = admin.revoke_credential(message).await.map_err(refused)?;
            show_one(session, answer.into_inner().credential)
        }
    }
}

pub(crate) async fn approvals(command: ApprovalsCommand, session: &Session) -> Result<(), Error> {
    match command {
        ApprovalsCommand::Show { decision, tenant } => show(session, tenant, decision).await,
        ApprovalsCommand::Verify(args) => verify(session, &args),
    }
}

fn refused(status: tonic::Status) -> Error {
    Error::of_status(POLICY_ENGINE.name, &status)
}

async fn enrol(session: &Session, tenant: String, principal: String) -> Result<(), Error> {
    let message = OpenEnrolmentRequest {
        tenant,
        principal,
        operation_id: session.operation_id()?,
    };
    let mut admin: ApproverAdmin = peers::approver_admin(session)?;
    let answer = admin.open_enrolment(message).await.map_err(refused)?;
    let answer = answer.into_inner();
    let ends = time(answer.expires_at.as_ref()).ok_or(MALFORMED)?;
    let document = json!({"link": answer.link, "expires_at": ends});
    session.output.secret(&document, &answer.link)
}

async fn list(session: &Session, tenant: String) -> Result<(), Error> {
    let mut admin = peers::approver_admin(session)?;
    let mut message = ListCredentialsRequest {
        tenant,
        page_size: PAGE_SIZE,
        page_token: String::new(),
    };
    let mut credentials = Vec::new();
    loop {
        let page = admin.list_credentials(message.clone()).await;
        let page = page.map_err(refused)?.into_inner();
        credentials.extend(page.credentials);
        if page.next_page_token.is_empty() {
            break;
        }
        message.page_token = page.next_page_token;
    }
    let documents: Result<Vec<_>, _> = credentials.iter().map(credential_json).collect();
    let document = json!({"credentials": documents?});
    session.output.answer(&document, || table(&credentials))
}

fn show_one(session: &Session, credential: Option<Credential>) -> Result<(), Error> {
    let credential = credential.ok_or(MALFORMED)?;
    let document = credential_json(&credential)?;
    let text = || table(std::slice::from_ref(&credential));
    session.output.answer(&document, text)
}

fn credential_json(credential: &Credential) -> Result<Value, Error> {
    Ok(json!({
        "credential": credential.credential_ref,
        "principal": credential.principal,
        "fingerprint": credential.fingerprint,
        "state": state(credential).ok_or(MALFORMED)?,
        "enrolled_at": time(credential.enrolled_at.as_ref()),
        "backup_eligible": credential.backup_eligible,
    }))
}

fn state(credential: &Credential) -> Option<&'static str> {
    match credential.state() {
        CredentialState::Unspecified => None,
        CredentialState::Inactive => Some("inactive"),
        CredentialState::Active => Some("active"),
        CredentialState::Revoked => Some("revoked"),
    }
}

fn table(credentials: &[Credential]) -> String {
    let rows: Vec<_> = credentials
        .iter()
        .map(|credential| {
            [
                state(credential).unwrap_or("-").to_owned(),
                credential.principal.clone(),
                credential.fingerprint.clone(),
                time(credential.enrolled_at.as_ref()).unwrap_or_else(|| "-".to_owned()),
                credential.credential_ref.clone(),
            ]
        })
        .collect();
    let heads = ["STATE", "PERSON", "FINGERPRINT", "ENROLLED", "CREDENTIAL"];
    output::table(heads, &rows)
}

async fn show(session: &Session, tenant: String, decision_ref: String) -> Result<(), Error> {
    let message = GetApprovalRequest {
        tenant,
        decision_ref,
    };
    let mut admin = peers::approver_admin(session)?;
    let answer = admin.get_approval(message).await.map_err(refused)?;
    let artefact = answer.into_inner().artefact;
    let text = String::from_utf8(artefact).map_err(|_| MALFORMED)?;
    session.output.exact(&text)
}

fn verify(session: &Session, args: &VerifyArgs) -> Result<(), Error> {
    let relying_party = RelyingParty::new(&args.rp_id, args.origin.clone());
    let relying_party = relying_party.ok_or(Error::RelyingParty)?;
    let bytes = read(&args.file)?;
    let artefact = Artefact::parse(&bytes)?;
    let verified = artefact.verify(&relying_party)?;
    let document = verified_json(&verified);
    session.output.answer(&document, || {
        let lines = document.as_object().into_iter().flatten();
        let lines = lines.map(|(name, value)| {
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            format!("{name}: {text}\n")
        });
        lines.collect()
    })
}

/// A file of at most an artefact's size, without the end of line that a shell adds.
fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let unreadable = |source| Error::Unreadable {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(unreadable)?;
    let limit = u64::try_from(MAX_ARTEFACT_BYTES).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(2))
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    if bytes.len() > MAX_ARTEFACT_BYTES {
        return Err(InvalidArtefact::Malformed.into());
    }
    Ok(bytes)
}

fn verified_json(verified: &VerifiedApproval) -> Value {
    let document = verified.document();
    let selectors = |names: &[cl_model::scalar::Predicate]| {
        let names = names.iter().map(|name| Value::from(name.as_str()));
        names.collect::<Value>()
    };
    let actions = |names: &[cl_model::scalar::Action]| {
        let names = names.iter().map(|name| Value::from(name.as_str()));
        names.collect::<Value>()
    };
    json!({
        "approval": document.id.as_str(),
        "approver": document.approver.as_str(),
        "tenant": document.tenant.as_str(),
        "fingerprint": verified.fingerprint().to_string(),
        "counter": verified.counter(),
        "request_digest": document.request_digest.to_string(),
        "policy_digest": document.policy_digest.to_string(),
        "granted_selectors": selectors(&document.granted_selectors),
        "granted_actions": actions(&document.granted_actions),
        "declined_selectors": selectors(&document.declined_selectors),
        "declined_actions": actions(&document.declined_actions),
        "expires_at": document.expires_at.as_str(),
    })
}
