//! The language-neutral adapter: one operation a process, so that a harness in any language can
//! ask this implementation what it does.
//!
//! Always one line out and exit code 0; a refusal is `{"ok":false,"error":{"code":..}}`.

mod exchange;
mod receipts;

use std::io::{self, BufRead, Read, Write};

use cl_model::digest::Digest;
use cl_model::json::read::FromJson;
use cl_model::json::{self, Limits};
use cl_model::object::{
    ContextRequest, MemoryUpdateProposal, PolicyDecision, Receipt, ScopedContextBundle,
};
use cl_model::policy::{
    ApprovalRule, Asked, Evaluation, ListPolicy, Preflight, PresentedApproval, VerifierOutcome,
};
use cl_model::purpose::PurposeCode;
use cl_model::record::{self, Record};
use cl_model::refusal::{Code, Refusal};
use cl_model::time::UnixTime;
use cl_model::{canonical, memory};
use serde_json::{Value, json};

const ADAPTER_VERSION: &str = "context-layer-conformance-adapter/1";

/// The longest input line: well over the largest bundle that any operation takes.
const MAX_INPUT_BYTES: usize = 16 * 1024 * 1024;

/// Why an operation has no result, as a code.
#[derive(Debug)]
enum Failure {
    /// The model refused.
    Refused(Refusal),
    /// The call itself is wrong, or its circumstances failed.
    Adapter(&'static str),
}

impl Failure {
    const INPUT: Self = Self::Adapter("INVALID_ADAPTER_INPUT");

    fn code(&self) -> &'static str {
        match self {
            Self::Refused(refusal) => refusal.code().as_str(),
            Self::Adapter(code) => code,
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Code> for Failure {
    fn from(code: Code) -> Self {
        Self::Refused(code.into())
    }
}

type Answer = Result<Value, Failure>;

/// Answers the operation on the first line of standard input.
///
/// The answer is in canonical form, so that numbers are written as the digests cover them.
pub(crate) fn run() -> io::Result<()> {
    let mut input = io::stdin().lock();
    let mut line = Vec::new();
    let limit = MAX_INPUT_BYTES as u64 + 1;
    input.by_ref().take(limit).read_until(b'\n', &mut line)?;
    if line.len() > MAX_INPUT_BYTES && !line.ends_with(b"\n") {
        // A harness that is still writing must not find the pipe closed.
        input.skip_until(b'\n')?;
    }
    let answer = match answer(&line) {
        Ok(result) => json!({"ok": true, "result": result}),
        Err(failure) => json!({"ok": false, "error": {"code": failure.code()}}),
    };
    writeln!(io::stdout().lock(), "{}", canonical::to_text(&answer))
}

fn answer(bytes: &[u8]) -> Answer {
    // The input object is one level around documents that may each be as deep as the limit.
    let limits = Limits::profile(MAX_INPUT_BYTES).wrapped(1);
    let input = Input(json::parse(bytes, limits)?);
    if input.0["adapter_version"] != ADAPTER_VERSION {
        return Err(Failure::Adapter("UNSUPPORTED_ADAPTER_VERSION"));
    }
    match input.text("operation").unwrap_or_default() {
        "validate_schema" => validate_schema(&input),
        "canonicalize" => canonicalize(&input),
        "finalize_record" => finalize_record(&input),
        "purpose_code" => Ok(json!({"valid": PurposeCode::from_json(input.any("value")).is_ok()})),
        "evaluate_policy" => Ok(evaluate_policy(&input)?.into_value()),
        "issue_bundle" => exchange::issue_bundle(&input),
        "verify_envelope" => exchange::verify_envelope(&input),
        "replay" => exchange::replay(&input),
        "memory_proposal" => exchange::memory_proposal(&input),
        "validate_proposal" => {
            memory::check(input.any("proposal"))?;
            Ok(json!({"valid": true}))
        }
        "receipt_log" => receipts::receipt_log(&input),
        _ => Err(Failure::Adapter("UNSUPPORTED_OPERATION")),
    }
}

/// The members of one input.
struct Input(Value);

impl Input {
    /// A member; null if it is absent.
    fn any(&self, name: &str) -> &Value {
        &self.0[name]
    }

    fn text(&self, name: &str) -> Result<&str, Failure> {
        self.any(name).as_str().ok_or(Failure::INPUT)
    }

    fn clock(&self) -> Result<UnixTime, Failure> {
        let clock = self.any("clock").as_str().and_then(UnixTime::parse);
        clock.ok_or_else(|| Code::InvalidClock.into())
    }
}

fn validate_schema(input: &Input) -> Answer {
    fn fits<T: FromJson>(value: &Value) -> bool {
        T::from_json(value).is_ok()
    }
    let fits = match input.text("schema_name")? {
        "context-request" => fits::<ContextRequest>,
        "policy-decision" => fits::<PolicyDecision>,
        "scoped-context-bundle" => fits::<ScopedContextBundle>,
        "receipt" => fits::<Receipt>,
        "memory-update-proposal" => fits::<MemoryUpdateProposal>,
        _ => return Err(Failure::Adapter("UNSUPPORTED_SCHEMA")),
    };
    let value = input.0.get("value").ok_or(Failure::INPUT)?;
    Ok(json!({"valid": fits(value)}))
}

fn canonicalize(input: &Input) -> Answer {
    let value = input.0.get("value").ok_or(Code::NonJsonValue)?;
    let text = canonical::to_text(value);
    let digest = Digest::of_bytes(text.as_bytes());
    Ok(json!({"canonical_json": text, "digest": digest.to_string()}))
}

fn finalize_record(input: &Input) -> Answer {
    let prefix = input
        .any("id_prefix")
        .as_str()
        .ok_or(Code::InvalidIdPrefix)?;
    Ok(record::finalize(input.any("unsigned").clone(), prefix)?.into_value())
}

fn evaluate_policy(input: &Input) -> Result<Record, Failure> {
    let verifier = match input.any("approval_verifier").as_str() {
        Some("authenticated") => VerifierOutcome::Authenticated,
        Some("absent") => VerifierOutcome::Absent,
        None if input.any("approval_verifier").is_null() => VerifierOutcome::Absent,
        // Whatever else a verifier says, it did not accept.
        Some(_) | None => VerifierOutcome::Rejected,
    };
    let preflight = match input.any("receipt_preflight").as_str() {
        Some("available") => Preflight::Available,
        Some("absent") => Preflight::Absent,
        None if input.any("receipt_preflight").is_null() => Preflight::Absent,
        Some(_) | None => Preflight::Unavailable,
    };
    evaluate(
        input,
        &PresentedApproval::read(input.any("approval"), ApprovalRule::AllOrNothing),
        verifier,
        preflight,
    )
}

/// Evaluates the input's request under its policy, as the local profile does.
fn evaluate(
    input: &Input,
    approval: &PresentedApproval,
    verifier: VerifierOutcome,
    preflight: Preflight,
) -> Result<Record, Failure> {
    let now = input.clock()?;
    let request = Asked::read(input.any("request"))?;
    let policy = ListPolicy::read(input.any("policy"))?;
    let evaluation = Evaluation {
        request: &request,
        policy: &policy,
        approval,
        approval_rule: ApprovalRule::AllOrNothing,
        verifier,
        preflight,
        now,
    };
    Ok(evaluation.evaluate()?)
}
