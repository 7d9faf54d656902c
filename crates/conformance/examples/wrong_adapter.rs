//! An adapter that is wrong on purpose, for the test that the runner notices.
//!
//! `wrong_adapter FAULT CMD [ARGS..]` asks the adapter `CMD`, bends what it answered, and then gives
//! the object a new id, digest and signature, so that only a comparison of the whole object tells.

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use ring::signature::Ed25519KeyPair;
use serde_json::{Value, json};

const ADDED_SECONDS: u64 = 3600;

fn main() -> anyhow::Result<()> {
    let mut arguments = env::args_os().skip(1);
    let fault = Fault::parse(&arguments.next().context("no fault named")?)?;
    let real = RealAdapter {
        command: arguments.collect(),
    };

    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    let request: Value = serde_json::from_str(&line)?;
    let mut answer = real.ask(&request)?;
    if let Some(result) = answer.get_mut("result") {
        bend(fault, &request, result, &real)?;
    }
    writeln!(io::stdout(), "{answer}")?;
    Ok(())
}

#[derive(Clone, Copy)]
enum Fault {
    /// Bends nothing: shows that being asked through this program is no fault.
    None,
    ExtraScope,
    UnknownMember,
    WrongApprovalDigest,
    LongerRetention,
}

impl Fault {
    fn parse(name: &OsString) -> anyhow::Result<Self> {
        match name.to_str() {
            Some("none") => Ok(Self::None),
            Some("extra-scope") => Ok(Self::ExtraScope),
            Some("unknown-member") => Ok(Self::UnknownMember),
            Some("wrong-approval-digest") => Ok(Self::WrongApprovalDigest),
            Some("longer-retention") => Ok(Self::LongerRetention),
            _ => bail!("unknown fault {}", name.display()),
        }
    }

    fn apply(self, record: &mut Value) {
        match self {
            Self::None => {}
            Self::ExtraScope => {
                let selector = json!({"predicate": "synthetic.extra"});
                append_to_grant(record, "/granted_selectors", selector);
                append_to_grant(record, "/granted_actions", "synthetic.extra".into());
                append_to_grant(record, "/capabilities", "synthetic.extra".into());
            }
            Self::UnknownMember => {
                if let Some(members) = record.as_object_mut() {
                    members.insert("synthetic_unknown".into(), true.into());
                }
            }
            Self::WrongApprovalDigest => {
                if let Some(digest) = record.pointer_mut("/approval_binding/request_digest") {
                    *digest = format!("sha256:{}", "0".repeat(64)).into();
                }
            }
            Self::LongerRetention => {
                lengthen(record, "/retention/max_seconds");
                lengthen(record, "/restrictions/retention_seconds");
            }
        }
    }
}

/// Leaves an empty grant empty, so that a refusal stays one.
fn append_to_grant(record: &mut Value, pointer: &str, item: Value) {
    match record.pointer_mut(pointer).and_then(Value::as_array_mut) {
        Some(items) if !items.is_empty() => items.push(item),
        Some(_) | None => {}
    }
}

fn lengthen(record: &mut Value, pointer: &str) {
    match record.pointer(pointer).and_then(Value::as_u64) {
        Some(seconds) if seconds > 0 => {
            if let Some(value) = record.pointer_mut(pointer) {
                *value = (seconds + ADDED_SECONDS).into();
            }
        }
        Some(_) | None => {}
    }
}

fn bend(
    fault: Fault,
    request: &Value,
    result: &mut Value,
    real: &RealAdapter,
) -> anyhow::Result<()> {
    match request["operation"].as_str() {
        Some("evaluate_policy") => bend_record(fault, result, "urn:cl:decision:", real)?,
        Some("memory_proposal") => bend_record(fault, result, "urn:cl:proposal:", real)?,
        Some("issue_bundle") => {
            bend_record(fault, &mut result["bundle"], "urn:cl:bundle:", real)?;
            let signature = sign(&result["bundle"], &request["synthetic_seed_hex"], real)?;
            result["authentication"]["sig"] = signature.into();
        }
        _ => {}
    }
    Ok(())
}

fn bend_record(
    fault: Fault,
    record: &mut Value,
    id_prefix: &str,
    real: &RealAdapter,
) -> anyhow::Result<()> {
    fault.apply(record);
    let mut unsigned = record.clone();
    let members = unsigned.as_object_mut().context("no record")?;
    members.remove("id");
    members.remove("integrity");
    *record = real.result(json!({
        "operation": "finalize_record",
        "unsigned": unsigned,
        "id_prefix": id_prefix,
    }))?;
    Ok(())
}

fn sign(bundle: &Value, seed_hex: &Value, real: &RealAdapter) -> anyhow::Result<String> {
    let canonical = real.result(json!({"operation": "canonicalize", "value": bundle}))?;
    let text = canonical["canonical_json"].as_str().context("no text")?;
    let seed = HEXLOWER.decode(seed_hex.as_str().context("no seed")?.as_bytes())?;
    let key = Ed25519KeyPair::from_seed_unchecked(&seed)
        .ok()
        .context("not a seed")?;
    Ok(BASE64URL_NOPAD.encode(key.sign(text.as_bytes()).as_ref()))
}

struct RealAdapter {
    command: Vec<OsString>,
}

impl RealAdapter {
    fn result(&self, mut request: Value) -> anyhow::Result<Value> {
        request["adapter_version"] = "context-layer-conformance-adapter/1".into();
        let mut answer = self.ask(&request)?;
        ensure!(answer["ok"] == true, "refused: {answer}");
        Ok(answer["result"].take())
    }

    fn ask(&self, request: &Value) -> anyhow::Result<Value> {
        let (program, arguments) = self.command.split_first().context("no adapter named")?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut stdin = child.stdin.take().context("no input")?;
        writeln!(stdin, "{request}")?;
        drop(stdin);
        let output = child.wait_with_output()?;
        ensure!(output.status.success(), "ended with {}", output.status);
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}
