//! How everything is.

use cl_model::time::UnixTime;
use cl_wire::receipt::v1::VerifyLogRequest;
use cl_wire::receipt::v1::verify_log_response::Result as Verdict;
use serde_json::{Value, json};

use crate::endpoints::{Endpoint, Endpoints};
use crate::error::Error;
use crate::http::is_ready;
use crate::output;
use crate::peers;
use crate::policy;
use crate::processes::RECEIPT_STORE;
use crate::session::Session;

/// The tenant whose policy is shown.
const TENANT: &str = "default";

pub(crate) async fn run(session: &Session) -> Result<(), Error> {
    let endpoints = Endpoints::running(&session.home)?;
    let mut rows = Vec::new();
    for endpoint in &endpoints.processes {
        rows.push((endpoint, is_ready(endpoint.admin_addr).await));
    }
    let policy = active_policy(session).await;
    let log = verified_log(session).await;
    let document = json!({
        "gateway_url": endpoints.gateway_url,
        "console_url": endpoints.console_url,
        "ready_at": endpoints.ready_at,
        "processes": rows.iter().map(|(endpoint, ready)| row_json(endpoint, *ready)).collect::<Vec<_>>(),
        "active_policy": fact_json(&policy),
        "receipt_log": fact_json(&log),
    });
    session.output.answer(&document, || {
        let table = output::table(
            ["PROCESS", "READY", "ADDRESS", "ADMIN", "PID"],
            &rows.iter().map(row).collect::<Vec<_>>(),
        );
        let fields = output::fields(&[
            ("up for", up_for(&endpoints.ready_at, session.now())),
            ("gateway", url(endpoints.gateway_url.as_ref())),
            ("console", url(endpoints.console_url.as_ref())),
            ("active policy", fact_text(&policy)),
            ("receipt log", fact_text(&log)),
        ]);
        format!("{table}\n{fields}")
    })?;
    if let Some((endpoint, _)) = rows.iter().find(|(_, ready)| !ready) {
        session
            .output
            .note(&format!("{} is not ready", endpoint.name));
        return Err(Error::Unready);
    }
    policy?;
    log.map(|_| ())
}

fn url(url: Option<&String>) -> String {
    url.map_or("-".to_owned(), Clone::clone)
}

/// Something that a process says, in words and for machines.
#[derive(Debug)]
struct Fact {
    text: String,
    document: Value,
}

async fn active_policy(session: &Session) -> Result<Fact, Error> {
    let mut admin = peers::policy_admin(session)?;
    let active = policy::active(&mut admin, TENANT).await?;
    Ok(match active {
        Some(info) => Fact {
            text: format!("{} {}", info.version, info.digest),
            document: json!({"version": info.version, "digest": info.digest}),
        },
        None => Fact {
            text: "none: every request is refused".to_owned(),
            document: Value::Null,
        },
    })
}

/// What the receipt store's own check of its log says.
async fn verified_log(session: &Session) -> Result<Fact, Error> {
    let peer = RECEIPT_STORE.name;
    let request = VerifyLogRequest {
        tenant: TENANT.to_owned(),
    };
    let answer = peers::receipts(session)?.verify_log(request).await;
    let answer = answer.map_err(|status| Error::of_status(peer, &status))?;
    let answer = answer.into_inner();
    let entries = answer.checked_entries;
    match answer.result.ok_or(Error::Answer { peer })? {
        Verdict::Checkpoint(checkpoint) => Ok(Fact {
            text: format!("{entries} entries, verified"),
            document: json!({"entries": entries, "checkpoint": checkpoint, "verified": true}),
        }),
        Verdict::Fault(fault) => Err(Error::LogFault {
            sequence: fault.sequence,
            code: fault.code,
        }),
    }
}

fn fact_text(fact: &Result<Fact, Error>) -> String {
    match fact {
        Ok(fact) => fact.text.clone(),
        Err(error) => error.to_string(),
    }
}

fn fact_json(fact: &Result<Fact, Error>) -> Value {
    match fact {
        Ok(fact) => fact.document.clone(),
        Err(error) => json!({"error": error.code()}),
    }
}

fn row((endpoint, ready): &(&Endpoint, bool)) -> [String; 5] {
    [
        endpoint.name.clone(),
        if *ready { "yes" } else { "no" }.to_owned(),
        endpoint.addr.to_string(),
        endpoint.admin_addr.to_string(),
        endpoint.pid.to_string(),
    ]
}

fn row_json(endpoint: &Endpoint, ready: bool) -> Value {
    json!({
        "name": endpoint.name,
        "ready": ready,
        "addr": endpoint.addr.to_string(),
        "admin_addr": endpoint.admin_addr.to_string(),
        "pid": endpoint.pid,
    })
}

fn up_for(ready_at: &str, now: UnixTime) -> String {
    let Some(ready_at) = UnixTime::parse(ready_at) else {
        return "-".to_owned();
    };
    let seconds = (now.milliseconds() - ready_at.milliseconds()).max(0) / 1000;
    let (minutes, seconds) = (seconds / 60, seconds % 60);
    let (hours, minutes) = (minutes / 60, minutes % 60);
    format!("{hours}h {minutes:02}m {seconds:02}s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_in_hours_minutes_and_seconds() {
        let now = UnixTime::parse("2030-01-02T01:02:03Z").unwrap();
        assert_eq!(up_for("2030-01-01T00:00:00.000Z", now), "25h 02m 03s");
        assert_eq!(up_for("2031-01-01T00:00:00.000Z", now), "0h 00m 00s");
        assert_eq!(up_for("yesterday", now), "-");
    }
}
