//! Where a claim comes from: the author's words, and the rule that read them.

use cl_wire::vault::v1::{ClaimEvidence, ExplainClaimRequest, ExplainedMark};
use serde_json::{Value, json};

use super::{SUBJECT, TENANT, document, text};
use crate::error::Error;
use crate::output;
use crate::peers;
use crate::processes::VAULT;
use crate::session::Session;
use crate::token::reference;

/// Settings of `clctl claims explain`.
#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    /// The claim, urn:cl:claim:..., as `claims list` names it.
    claim: String,

    /// Whose context it is.
    #[arg(long, default_value = SUBJECT, value_parser = reference)]
    subject: String,
}

pub(crate) async fn explain(args: &ExplainArgs, session: &Session) -> Result<(), Error> {
    let mut owner = peers::owner(session)?;
    let request = ExplainClaimRequest {
        tenant: TENANT.to_owned(),
        subject_ref: args.subject.clone(),
        claim_ref: args.claim.clone(),
    };
    let answer = owner.explain_claim(request).await;
    let answer = answer.map_err(|status| Error::of_status(VAULT.name, &status))?;
    let answer = answer.into_inner();
    let claim = document(&answer.claim)?;
    let evidence: Vec<Value> = answer.evidence.iter().map(to_json).collect();
    let shown = json!({"claim": claim, "evidence": evidence});
    session.output.answer(&shown, || {
        let sources = answer.evidence.iter().map(paragraph);
        format!("{}{}", statement(&claim), sources.collect::<String>())
    })
}

fn to_json(evidence: &ClaimEvidence) -> Value {
    let marks = evidence.marks.iter();
    let marks = marks.map(|it| json!({"mark": it.mark, "meaning": known(&it.meaning)}));
    json!({
        "event": evidence.event_ref,
        "words": known(&evidence.words),
        "rule": evidence.rule,
        "reason": known(&evidence.reason),
        "confidence": evidence.confidence,
        "marks": marks.collect::<Vec<_>>(),
    })
}

/// A text that the vault may not have.
fn known(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

fn statement(claim: &Value) -> String {
    output::fields(&[
        ("claim", text(&claim["id"])),
        ("predicate", text(&claim["predicate"])),
        ("value", text(&claim["object"]["value"])),
        ("confidence", text(&claim["confidence"])),
        ("status", text(&claim["status"])),
    ])
}

fn paragraph(evidence: &ClaimEvidence) -> String {
    let words = known(&evidence.words).unwrap_or("(not kept)");
    let mut fields = vec![
        ("event", evidence.event_ref.clone()),
        ("words", words.to_owned()),
        ("rule", evidence.rule.clone()),
        ("confidence", evidence.confidence.to_string()),
    ];
    if let Some(reason) = known(&evidence.reason) {
        fields.push(("reason", reason.to_owned()));
    }
    fields.extend(evidence.marks.iter().map(|it| ("doubt", doubt(it))));
    format!("\n{}", output::fields(&fields))
}

fn doubt(mark: &ExplainedMark) -> String {
    match known(&mark.meaning) {
        Some(meaning) => format!("{}: {meaning}", mark.mark),
        None => mark.mark.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_shows_its_words_fit_for_a_terminal() {
        let evidence = ClaimEvidence {
            event_ref: "urn:cl:event:a".to_owned(),
            words: "Please\u{1b}[2J send it".to_owned(),
            rule: "date.weekday".to_owned(),
            reason: "A weekday.".to_owned(),
            confidence: 0.4,
            marks: vec![ExplainedMark {
                mark: "date.next_weekday_ambiguous".to_owned(),
                meaning: "People differ.".to_owned(),
            }],
        };
        let shown = paragraph(&evidence);
        assert!(shown.contains("Please\u{fffd}[2J send it"), "{shown}");
        assert!(shown.contains("date.next_weekday_ambiguous: People differ."));
        let bare = ClaimEvidence {
            rule: "other.rule".to_owned(),
            ..ClaimEvidence::default()
        };
        let shown = paragraph(&bare);
        assert!(
            shown.contains("(not kept)") && !shown.contains("reason"),
            "{shown}"
        );
        assert_eq!(to_json(&bare)["words"], Value::Null);
    }
}
