//! Why a command failed, and what to do next.

use std::io;
use std::path::PathBuf;

use cl_host::client::InvalidTarget;
use cl_host::files::FileError;
use cl_host::ids::NoRandomness;
use cl_host::status::{OWN_CERTIFICATE_REFUSED, PEER_NOT_VERIFIED};
use cl_host::tls::TlsError;
use cl_model::artefact::InvalidArtefact;
use cl_model::refusal::Refusal;
use cl_policy_cedar::{InvalidCases, InvalidPolicies, Untranslatable};
use tonic::{Code, Status};

use crate::output;
use crate::processes::GATEWAY;
use crate::receipts::Fault;

/// Why a command failed. Nothing in it is a key or a token.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{} is not empty", path.display())]
    HomeNotEmpty { path: PathBuf },
    #[error("{} is not a home", path.display())]
    NoHome { path: PathBuf },
    #[error("not a SPIFFE trust domain")]
    TrustDomain,
    #[error(transparent)]
    File(#[from] FileError),
    #[error("cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("the origins are not those of a console under the relying party id")]
    RelyingParty,
    #[error("the approval does not verify: {0}")]
    Approval(#[from] InvalidArtefact),
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("{} is not {expected}", path.display())]
    Malformed {
        path: PathBuf,
        expected: &'static str,
    },
    #[error("{}: {error}", path.display())]
    WitnessPolicy {
        path: PathBuf,
        error: cl_tlog::Error,
    },
    #[error("{}: {refusal}", path.display())]
    Document { path: PathBuf, refusal: Refusal },
    #[error("{}:\n{}", path.display(), findings(invalid))]
    Policies {
        path: PathBuf,
        invalid: InvalidPolicies,
    },
    #[error("{}: {invalid}", path.display())]
    Cases {
        path: PathBuf,
        invalid: InvalidCases,
    },
    #[error("{failed} of the cases failed")]
    CasesFailed { failed: usize },
    #[error("{changed} of {evaluated} recorded decisions would be different")]
    DecisionsChange { changed: usize, evaluated: usize },
    #[error("{unequal} of {replayed} recorded decisions do not come out as they were")]
    ReplayUnequal { unequal: usize, replayed: usize },
    #[error("{}: {cause}", path.display())]
    Untranslatable {
        path: PathBuf,
        cause: Untranslatable,
    },
    #[error(transparent)]
    Certificate(#[from] cl_pki::Error),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("the certificate cannot be used: {0}")]
    TlsSetup(#[from] rustls::Error),
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
    #[error("cannot start: {0}")]
    Runtime(#[source] io::Error),
    #[error("cannot write the answer: {0}")]
    Output(#[source] io::Error),
    #[error("the answer of {peer} cannot be read")]
    Answer { peer: &'static str },
    #[error("{}: no such program", path.display())]
    NoProgram { path: PathBuf },
    #[error("cannot start {process}: {source}")]
    Spawn {
        process: &'static str,
        source: io::Error,
    },
    #[error("{process} needs {needed}")]
    Needs {
        process: &'static str,
        needed: &'static str,
    },
    #[error("port {port} for {process} cannot be used: {source}")]
    Port {
        port: u16,
        process: &'static str,
        source: io::Error,
    },
    #[error("the ports from {base_port} on do not exist")]
    PortRange { base_port: u16 },
    #[error("the processes of this home are started already")]
    AlreadyUp,
    #[error(
        "processes of an earlier start still run: {}",
        output::joined(processes)
    )]
    LeftOver {
        processes: Vec<String>,
        pids: Vec<String>,
    },
    #[error("{process} ended: {how}\n{tail}the log is {}", log.display())]
    Died {
        process: &'static str,
        how: String,
        tail: String,
        log: PathBuf,
    },
    #[error("{process} is not ready after {seconds} s; the log is {}", log.display())]
    NotReady {
        process: &'static str,
        seconds: u64,
        log: PathBuf,
    },
    #[error("{process} did not end in time and was killed")]
    Killed { process: &'static str },
    #[error("told to end before everything was ready")]
    Interrupted,
    #[error("the processes of this home are not running")]
    NotUp,
    #[error("{0} is not running")]
    NotStarted(&'static str),
    #[error("not everything is ready")]
    Unready,
    #[error("{peer} cannot be reached")]
    Unreachable { peer: &'static str },
    #[error("{peer} is not the process that this home made certificates for")]
    WrongPeer { peer: &'static str },
    #[error("{peer} does not accept this home's certificate")]
    CertificateRefused { peer: &'static str },
    #[error("{}", refusal(peer, reason, message, violations))]
    Refused {
        peer: &'static str,
        kind: Kind,
        reason: String,
        message: String,
        violations: Vec<String>,
    },
    #[error("the bundle does not allow this: {0}")]
    Bundle(Refusal),
    #[error("the receipt log does not verify: {code} at entry {sequence}")]
    LogFault { sequence: u64, code: String },
    #[error("does not verify: {0}")]
    Unverified(Box<Fault>),
    #[error("the tenant {tenant} has no receipt log")]
    NoLog { tenant: String },
    #[error("the keys are not all of one log")]
    KeysOfTwoLogs,
    #[error("{} is there already", path.display())]
    FolderExists { path: PathBuf },
}

/// What a refusal means for the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The same call will be refused again.
    Final,
    /// The same call may succeed later.
    Later,
    /// There is no such thing.
    NotFound,
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        Self::Unverified(Box::new(fault))
    }
}

impl From<InvalidTarget> for Error {
    fn from(_address: InvalidTarget) -> Self {
        Self::NotUp
    }
}

impl Error {
    /// What a gRPC answer of a peer means.
    pub(crate) fn of_status(peer: &'static str, status: &Status) -> Self {
        let Some(reason) = cl_wire::status::reason(status) else {
            if status.code() == Code::Unavailable {
                return Self::Unreachable { peer };
            }
            return Self::Answer { peer };
        };
        match reason.as_str() {
            PEER_NOT_VERIFIED => return Self::WrongPeer { peer },
            OWN_CERTIFICATE_REFUSED => return Self::CertificateRefused { peer },
            _ => {}
        }
        let violations = cl_wire::status::violations(status);
        Self::Refused {
            peer,
            kind: kind(status),
            reason,
            message: status.message().to_owned(),
            violations: violations
                .into_iter()
                .map(|violation| format!("{}: {}", violation.field, violation.reason))
                .collect(),
        }
    }

    /// What a failure of the consumer's library means.
    pub(crate) fn of_consumer(error: cl_sdk::Error) -> Self {
        let peer = GATEWAY.name;
        let is_retryable = error.is_retryable();
        if let cl_sdk::Error::Refused(refusal) = error {
            return Self::Bundle(refusal);
        }
        match error.code() {
            Some(code) => Self::Refused {
                peer,
                kind: match code {
                    _ if is_retryable => Kind::Later,
                    code if code.ends_with("_NOT_FOUND") => Kind::NotFound,
                    _ => Kind::Final,
                },
                reason: code.to_owned(),
                message: String::new(),
                violations: Vec::new(),
            },
            None if is_retryable => Self::Unreachable { peer },
            None => Self::Answer { peer },
        }
    }

    /// The exit code; `--help` lists them.
    pub(crate) const fn exit_code(&self) -> u8 {
        match self {
            Self::HomeNotEmpty { .. }
            | Self::FolderExists { .. }
            | Self::NoHome { .. }
            | Self::File(_)
            | Self::Unreadable { .. }
            | Self::Write { .. }
            | Self::Malformed { .. }
            | Self::WitnessPolicy { .. }
            | Self::Document { .. }
            | Self::Policies { .. }
            | Self::Cases { .. }
            | Self::CasesFailed { .. }
            | Self::DecisionsChange { .. }
            | Self::Untranslatable { .. }
            | Self::Certificate(_)
            | Self::Tls(_)
            | Self::TlsSetup(_)
            | Self::Randomness(_)
            | Self::Runtime(_)
            | Self::Output(_)
            | Self::Answer { .. }
            | Self::NoProgram { .. }
            | Self::Spawn { .. }
            | Self::Port { .. }
            | Self::AlreadyUp
            | Self::LeftOver { .. }
            | Self::Died { .. }
            | Self::NotReady { .. }
            | Self::Killed { .. }
            | Self::Interrupted
            | Self::WrongPeer { .. }
            | Self::CertificateRefused { .. }
            | Self::Bundle(_)
            | Self::Refused {
                kind: Kind::Final, ..
            } => 1,
            Self::TrustDomain
            | Self::KeysOfTwoLogs
            | Self::RelyingParty
            | Self::Needs { .. }
            | Self::PortRange { .. } => 2,
            Self::NotUp
            | Self::NotStarted(_)
            | Self::Unready
            | Self::Unreachable { .. }
            | Self::Refused {
                kind: Kind::Later, ..
            } => 3,
            Self::NoLog { .. }
            | Self::Refused {
                kind: Kind::NotFound,
                ..
            } => 4,
            Self::LogFault { .. }
            | Self::Unverified(_)
            | Self::Approval(_)
            | Self::ReplayUnequal { .. } => 5,
        }
    }

    /// A stable code for machines: a peer's own where it gave one.
    pub(crate) fn code(&self) -> &str {
        match self {
            Self::HomeNotEmpty { .. } => "HOME_NOT_EMPTY",
            Self::NoHome { .. } => "HOME_NOT_FOUND",
            Self::TrustDomain => "TRUST_DOMAIN_INVALID",
            Self::File(_) | Self::Unreadable { .. } => "FILE_NOT_READ",
            Self::RelyingParty => "RELYING_PARTY_INVALID",
            Self::Approval(InvalidArtefact::Malformed) => "APPROVAL_ARTEFACT_MALFORMED",
            Self::Approval(InvalidArtefact::Passkey(invalid)) => invalid.as_str(),
            Self::Write { .. } => "FILE_NOT_WRITTEN",
            Self::Malformed { .. } => "FILE_MALFORMED",
            Self::WitnessPolicy { .. } => "WITNESS_POLICY_MALFORMED",
            Self::Document { refusal, .. } => refusal.code().as_str(),
            Self::Policies { .. } => "INVALID_POLICY",
            Self::Cases { .. } => "INVALID_POLICY_CASES",
            Self::CasesFailed { .. } => "POLICY_CASES_FAILED",
            Self::DecisionsChange { .. } => "POLICY_DECISIONS_CHANGE",
            Self::ReplayUnequal { .. } => "REPLAY_UNEQUAL",
            Self::Untranslatable { .. } => "POLICY_NOT_TRANSLATABLE",
            Self::Certificate(_) => "CERTIFICATE_NOT_MADE",
            Self::Tls(_) | Self::TlsSetup(_) => "CERTIFICATE_NOT_USABLE",
            Self::Randomness(_) => "RANDOMNESS_UNAVAILABLE",
            Self::Runtime(_) => "RUNTIME_UNAVAILABLE",
            Self::Output(_) => "OUTPUT_CLOSED",
            Self::Answer { .. } => "ANSWER_MALFORMED",
            Self::NoProgram { .. } => "PROGRAM_NOT_FOUND",
            Self::Spawn { .. } => "PROCESS_NOT_STARTED",
            Self::Needs { .. } => "PROCESS_NEEDED",
            Self::Port { .. } => "PORT_UNAVAILABLE",
            Self::PortRange { .. } => "PORT_OUT_OF_RANGE",
            Self::AlreadyUp => "ALREADY_UP",
            Self::LeftOver { .. } => "PROCESS_LEFT_OVER",
            Self::Died { .. } => "PROCESS_ENDED",
            Self::NotReady { .. } | Self::Unready => "PROCESS_NOT_READY",
            Self::Killed { .. } => "PROCESS_KILLED",
            Self::Interrupted => "INTERRUPTED",
            Self::NotUp | Self::NotStarted(_) => "NOT_RUNNING",
            Self::Unreachable { .. } => "PEER_UNREACHABLE",
            Self::WrongPeer { .. } => PEER_NOT_VERIFIED,
            Self::CertificateRefused { .. } => OWN_CERTIFICATE_REFUSED,
            Self::Refused { reason, .. } => reason,
            Self::Bundle(refusal) => refusal.code().as_str(),
            Self::LogFault { code, .. } => code,
            Self::Unverified(fault) => fault.why.code(),
            Self::NoLog { .. } => "RECEIPT_LOG_NOT_FOUND",
            Self::KeysOfTwoLogs => "KEYS_OF_TWO_LOGS",
            Self::FolderExists { .. } => "FOLDER_EXISTS",
        }
    }

    /// Where something does not verify: an entry, a file, a line of one.
    pub(crate) fn place(&self) -> Option<String> {
        if let Self::Unverified(fault) = self {
            return Some(fault.place.to_string());
        }
        None
    }

    /// What to do next, where that is known.
    pub(crate) fn next(&self) -> Option<String> {
        let next = match self {
            Self::HomeNotEmpty { path } => format!(
                "name another folder with --home, or remove {} if nothing in it is needed",
                path.display()
            ),
            Self::NoHome { path } => {
                format!("make one with: clctl --home {} init", path.display())
            }
            Self::NoProgram { .. } => {
                "build the programs with: cargo build --workspace --bins; or name their folder with --bin-dir"
                    .to_owned()
            }
            Self::Port { .. } | Self::PortRange { .. } => {
                "choose other ports with --base-port, or free ones with --base-port 0".to_owned()
            }
            Self::AlreadyUp => "clctl status shows them".to_owned(),
            Self::LeftOver { pids, .. } => format!("end them with: kill {}", pids.join(" ")),
            Self::NotUp => "start them with: clctl up".to_owned(),
            Self::NotStarted(process) => format!("start it with: clctl up, without --without {process}"),
            Self::Unready | Self::Unreachable { .. } => {
                "look at clctl status and at the logs of the home".to_owned()
            }
            Self::WrongPeer { .. } | Self::CertificateRefused { .. } | Self::Tls(_) => {
                "renew the certificates with: clctl certificates renew".to_owned()
            }
            Self::Refused { reason, kind, .. } => return next_of(reason, *kind),
            Self::Bundle(refusal) => return next_of(refusal.code().as_str(), Kind::Final),
            Self::LogFault { .. } => {
                "keep the data folder as it is, and find out more with: clctl receipts verify"
                    .to_owned()
            }
            Self::Unverified(fault) => return fault.why.next().map(str::to_owned),
            Self::FolderExists { .. } => "name a folder that does not exist".to_owned(),
            Self::TrustDomain => "use a-z, 0-9 and . - _, at most 255 characters".to_owned(),
            Self::RelyingParty => {
                "name the console's domain, and origins such as https://console.example".to_owned()
            }
            Self::Approval(_) => "do not rely on it; ask for the decision to be shown again".to_owned(),
            Self::Unreadable { .. }
            | Self::File(_)
            | Self::Write { .. }
            | Self::Malformed { .. }
            | Self::WitnessPolicy { .. }
            | Self::Document { .. }
            | Self::Policies { .. }
            | Self::Cases { .. }
            | Self::CasesFailed { .. }
            | Self::DecisionsChange { .. }
            | Self::ReplayUnequal { .. }
            | Self::Untranslatable { .. }
            | Self::Certificate(_)
            | Self::TlsSetup(_)
            | Self::Randomness(_)
            | Self::Runtime(_)
            | Self::Output(_)
            | Self::Answer { .. }
            | Self::Spawn { .. }
            | Self::Needs { .. }
            | Self::Died { .. }
            | Self::NotReady { .. }
            | Self::Killed { .. }
            | Self::NoLog { .. }
            | Self::KeysOfTwoLogs
            | Self::Interrupted => return None,
        };
        Some(next)
    }
}

fn next_of(reason: &str, kind: Kind) -> Option<String> {
    let next = match (reason, kind) {
        ("POLICY_NOT_ACTIVE", _) => "activate a snapshot: clctl policy list, clctl policy activate",
        ("SNAPSHOT_NOT_CURRENT", _) => "somebody was first: look at clctl policy list",
        ("SNAPSHOT_VERSION_CONFLICT", _) => "give the changed snapshot another version",
        ("BUNDLE_REPLAY" | "BUNDLE_EXPIRED", _) => {
            "a bundle is handed out once and for a short while: ask for another with clctl request"
        }
        ("BUNDLE_NOT_FOUND", _) => "name its recipient with --recipient: nobody else is told of it",
        ("CAPABILITY_NOT_GRANTED", _) => "ask for the action in the context request",
        ("SUBJECT_ERASED", _) => "use another name: that of an erased subject is not used again",
        (_, Kind::Later) => "try again; clctl status shows what is missing",
        (_, Kind::Final | Kind::NotFound) => return None,
    };
    Some(next.to_owned())
}

fn kind(status: &Status) -> Kind {
    let is_passing = matches!(
        status.code(),
        Code::Unavailable | Code::ResourceExhausted | Code::DeadlineExceeded
    );
    if status.code() == Code::NotFound {
        Kind::NotFound
    } else if is_passing || cl_wire::status::retry_delay(status).is_some() {
        Kind::Later
    } else {
        Kind::Final
    }
}

/// One line for each mistake, with what exactly is wrong: the reader has the file.
fn findings(invalid: &InvalidPolicies) -> String {
    let findings = invalid.findings.iter().map(|finding| {
        let code = finding.fault.code();
        let detail = finding.detail.replace('\n', " ");
        format!("  {}: {code}: {detail}", finding.place)
    });
    findings.collect::<Vec<_>>().join("\n")
}

fn refusal(peer: &str, reason: &str, message: &str, violations: &[String]) -> String {
    let mut text = format!("{peer} refused: {reason}");
    // The consumer's library passes on codes only.
    if !message.is_empty() {
        text.push_str(": ");
        text.push_str(message);
    }
    for violation in violations {
        text.push_str("\n  ");
        text.push_str(violation);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_peers_keep_their_reason() {
        let status =
            cl_wire::status::status(Code::NotFound, "RECEIPT_NOT_FOUND", "no such receipt");
        let error = Error::of_status("cl-receipt-store", &status);
        assert_eq!((error.exit_code(), error.code()), (4, "RECEIPT_NOT_FOUND"));
        assert_eq!(
            error.to_string(),
            "cl-receipt-store refused: RECEIPT_NOT_FOUND: no such receipt"
        );
        let status = cl_wire::status::status(Code::Unavailable, "SERVICE_UNAVAILABLE", "later");
        assert_eq!(Error::of_status("x", &status).exit_code(), 3);
        let status = Status::unavailable("no connection");
        let error = Error::of_status("x", &status);
        assert_eq!((error.exit_code(), error.code()), (3, "PEER_UNREACHABLE"));
        let status = Status::unimplemented("no such method");
        let error = Error::of_status("x", &status);
        assert_eq!((error.exit_code(), error.code()), (1, "ANSWER_MALFORMED"));
    }

    #[test]
    fn a_conflict_is_worth_a_repeat_only_if_the_peer_says_so() {
        use std::time::Duration;

        let conflict = |reason: &str| {
            cl_wire::status::StatusBuilder::new(Code::Aborted, reason, "another was first")
        };
        let status = conflict("SNAPSHOT_NOT_CURRENT").build();
        assert_eq!(Error::of_status("x", &status).exit_code(), 1);
        let status = conflict("REQUEST_IN_PROGRESS").retry_delay(Duration::from_secs(1));
        assert_eq!(Error::of_status("x", &status.build()).exit_code(), 3);
    }

    #[test]
    fn a_fault_of_the_log_has_its_own_exit_code() {
        let fault = Error::LogFault {
            sequence: 7,
            code: "RECEIPT_LOG_CHAIN_MISMATCH".to_owned(),
        };
        assert_eq!(fault.exit_code(), 5);
        assert_eq!(fault.code(), "RECEIPT_LOG_CHAIN_MISMATCH");
    }

    #[test]
    fn a_foreign_peer_is_no_unreachable_one() {
        for (reason, code) in [
            (PEER_NOT_VERIFIED, "PEER_NOT_VERIFIED"),
            (OWN_CERTIFICATE_REFUSED, "OWN_CERTIFICATE_REFUSED"),
        ] {
            let status = cl_wire::status::status(Code::Unavailable, reason, "no");
            let error = Error::of_status("x", &status);
            assert_eq!((error.exit_code(), error.code()), (1, code));
            assert!(error.next().is_some());
        }
    }
}
