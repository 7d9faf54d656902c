//! What the vault holds, as its owner.

mod explain;

use cl_model::json::{self, Limits};
use cl_wire::vault::v1::{
    ClaimEntry, EraseSubjectRequest, EventEntry, ListClaimsRequest, ListEventsRequest,
};
use clap::Subcommand;
use serde_json::{Value, json};

pub(crate) use self::explain::{ExplainArgs, explain};
use crate::error::Error;
use crate::output;
use crate::peers;
use crate::policy::time;
use crate::processes::VAULT;
use crate::session::Session;
use crate::token::reference;

/// Whose context it is, unless a command says otherwise.
pub(crate) const SUBJECT: &str = "vault://subjects/primary";

/// The tenant of the owner's certificate.
const TENANT: &str = "default";

const PAGE_SIZE: usize = 1000;

/// An event has at most 262,144 bytes, and a claim fewer.
const MAX_DOCUMENT_BYTES: usize = 512 * 1024;

/// What was captured.
#[derive(Debug, Subcommand)]
pub(crate) enum EventsCommand {
    /// Lists the events of a subject, latest first.
    List(EventsArgs),
}

/// What was read out of events.
#[derive(Debug, Subcommand)]
pub(crate) enum ClaimsCommand {
    /// Lists the claims about a subject, newest first.
    List(ClaimsArgs),
    /// Shows which words a claim came from, and by which rule.
    Explain(ExplainArgs),
}

/// A subject of the vault.
#[derive(Debug, Subcommand)]
pub(crate) enum SubjectCommand {
    /// Erases all that the vault holds of a subject, for good.
    Erase(EraseArgs),
}

/// Settings of `clctl events list`.
#[derive(Debug, clap::Args)]
pub(crate) struct EventsArgs {
    #[command(flatten)]
    listing: ListingArgs,
}

/// Settings of `clctl claims list`.
#[derive(Debug, clap::Args)]
pub(crate) struct ClaimsArgs {
    #[command(flatten)]
    listing: ListingArgs,

    /// Only claims of this predicate, such as requested_delivery_date.
    #[arg(long)]
    predicate: Option<String>,
}

#[derive(Debug, clap::Args)]
struct ListingArgs {
    /// Whose context it is.
    #[arg(long, default_value = SUBJECT, value_parser = reference)]
    subject: String,

    /// At most so many.
    #[arg(long, default_value_t = 100)]
    limit: usize,
}

/// Settings of `clctl subject erase`.
#[derive(Debug, clap::Args)]
pub(crate) struct EraseArgs {
    /// Whose context it is.
    #[arg(value_parser = reference)]
    subject: String,

    /// Says that it is meant: an erasure cannot be undone, and the name is not used again.
    #[arg(long, required = true)]
    yes: bool,
}

const MALFORMED: Error = Error::Answer { peer: VAULT.name };

pub(crate) async fn events(args: &EventsArgs, session: &Session) -> Result<(), Error> {
    let ListingArgs { subject, limit } = &args.listing;
    let mut owner = peers::owner(session)?;
    let mut listing = Listing::new(*limit);
    loop {
        let request = ListEventsRequest {
            tenant: TENANT.to_owned(),
            subject_ref: subject.clone(),
            page_size: listing.page_size(),
            page_token: listing.page_token.clone(),
        };
        let page = owner.list_events(request).await;
        let page = page.map_err(|status| Error::of_status(VAULT.name, &status))?;
        let page = page.into_inner();
        let shown = page.events.iter().map(Event::of);
        listing.add(shown, page.total_size, page.next_page_token)?;
        if listing.is_complete() {
            break;
        }
    }
    let events: Vec<_> = listing.entries.iter().map(Event::to_json).collect();
    let document = json!({"events": events, "total": listing.total});
    session.output.answer(&document, || {
        let rows: Vec<_> = listing.entries.iter().map(Event::row).collect();
        let header = ["OCCURRED", "ADAPTER", "BYTES", "CLAIMS", "MARKS", "EVENT"];
        format!("{}{}", output::table(header, &rows), listing.count())
    })
}

pub(crate) async fn claims(args: &ClaimsArgs, session: &Session) -> Result<(), Error> {
    let ListingArgs { subject, limit } = &args.listing;
    let mut owner = peers::owner(session)?;
    let mut listing = Listing::new(*limit);
    loop {
        let request = ListClaimsRequest {
            tenant: TENANT.to_owned(),
            subject_ref: subject.clone(),
            predicate: args.predicate.clone(),
            page_size: listing.page_size(),
            page_token: listing.page_token.clone(),
        };
        let page = owner.list_claims(request).await;
        let page = page.map_err(|status| Error::of_status(VAULT.name, &status))?;
        let page = page.into_inner();
        let shown = page.claims.iter().map(Claim::of);
        listing.add(shown, page.total_size, page.next_page_token)?;
        if listing.is_complete() {
            break;
        }
    }
    let claims: Vec<_> = listing.entries.iter().map(Claim::to_json).collect();
    let document = json!({"claims": claims, "total": listing.total});
    session.output.answer(&document, || {
        let rows: Vec<_> = listing.entries.iter().map(Claim::row).collect();
        let header = [
            "PREDICATE",
            "VALUE",
            "CONFIDENCE",
            "STATUS",
            "TRUST",
            "LABEL",
            "MARKS",
            "CLAIM",
        ];
        format!("{}{}", output::table(header, &rows), listing.count())
    })
}

pub(crate) async fn erase(args: &EraseArgs, session: &Session) -> Result<(), Error> {
    let mut owner = peers::owner(session)?;
    let request = EraseSubjectRequest {
        tenant: TENANT.to_owned(),
        subject_ref: args.subject.clone(),
        operation_id: session.operation_id()?,
    };
    let answer = owner.erase_subject(request).await;
    let answer = answer.map_err(|status| Error::of_status(VAULT.name, &status))?;
    let erased = answer.into_inner();
    let document = json!({
        "subject": args.subject,
        "events": erased.events,
        "claims": erased.claims,
        "erased": true,
    });
    session.output.answer(&document, || {
        output::fields(&[
            ("subject", args.subject.clone()),
            ("events", erased.events.to_string()),
            ("claims", erased.claims.to_string()),
            ("erased", "yes".to_owned()),
        ])
    })
}

/// What came of the pages so far.
struct Listing<T> {
    entries: Vec<T>,
    total: u64,
    page_token: String,
    limit: usize,
}

impl<T> Listing<T> {
    const fn new(limit: usize) -> Self {
        Self {
            entries: Vec::new(),
            total: 0,
            page_token: String::new(),
            limit,
        }
    }

    fn page_size(&self) -> u32 {
        let missing = self.limit.saturating_sub(self.entries.len());
        // 0 would leave the size to the vault.
        let size = missing.clamp(1, PAGE_SIZE);
        u32::try_from(size).unwrap_or(u32::MAX)
    }

    fn add(
        &mut self,
        page: impl Iterator<Item = Result<T, Error>>,
        total: u64,
        next_page_token: String,
    ) -> Result<(), Error> {
        let missing = self.limit.saturating_sub(self.entries.len());
        for entry in page.take(missing) {
            self.entries.push(entry?);
        }
        self.total = total;
        self.page_token = next_page_token;
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.page_token.is_empty() || self.entries.len() >= self.limit
    }

    fn count(&self) -> String {
        format!("{} of {}\n", self.entries.len(), self.total)
    }
}

/// An event, parsed.
struct Event {
    event: Value,
    marks: Vec<String>,
    claims: u32,
}

impl Event {
    fn of(entry: &EventEntry) -> Result<Self, Error> {
        Ok(Self {
            event: document(&entry.event)?,
            marks: entry.marks.clone(),
            claims: entry.claims,
        })
    }

    fn to_json(&self) -> Value {
        json!({"event": self.event, "marks": self.marks, "claims": self.claims})
    }

    fn row(&self) -> [String; 6] {
        [
            text(&self.event["occurred_at"]),
            text(&self.event["source"]["adapter"]),
            text(&self.event["payload_ref"]["byte_length"]),
            self.claims.to_string(),
            output::joined(&self.marks),
            text(&self.event["id"]),
        ]
    }
}

/// A claim, parsed.
struct Claim {
    claim: Value,
    marks: Vec<String>,
    derived_at: Option<String>,
}

impl Claim {
    fn of(entry: &ClaimEntry) -> Result<Self, Error> {
        Ok(Self {
            claim: document(&entry.claim)?,
            marks: entry.marks.clone(),
            derived_at: time(entry.derived_at.as_ref()),
        })
    }

    fn to_json(&self) -> Value {
        json!({"claim": self.claim, "marks": self.marks, "derived_at": self.derived_at})
    }

    fn row(&self) -> [String; 8] {
        [
            text(&self.claim["predicate"]),
            text(&self.claim["object"]["value"]),
            text(&self.claim["confidence"]),
            text(&self.claim["status"]),
            text(&self.claim["trust"]),
            text(&self.claim["label"]),
            output::joined(&self.marks),
            text(&self.claim["id"]),
        ]
    }
}

fn document(bytes: &[u8]) -> Result<Value, Error> {
    json::parse(bytes, Limits::network(MAX_DOCUMENT_BYTES)).map_err(|_| MALFORMED)
}

/// A value in one cell: a text without its quotation marks, everything else as JSON.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_ends_at_its_limit() {
        let mut listing = Listing::new(3);
        assert_eq!(listing.page_size(), 3);
        let page = |numbers: [u32; 2]| numbers.into_iter().map(Ok);
        listing.add(page([1, 2]), 9, "more".to_owned()).unwrap();
        assert!(!listing.is_complete());
        assert_eq!(listing.page_size(), 1);
        listing.add(page([3, 4]), 9, "more".to_owned()).unwrap();
        assert!(listing.is_complete());
        assert_eq!(
            (listing.entries.as_slice(), listing.total),
            (&[1, 2, 3][..], 9)
        );
    }

    #[test]
    fn a_listing_ends_with_its_last_page() {
        let mut listing = Listing::<u32>::new(usize::MAX);
        assert_eq!(listing.page_size(), 1000);
        listing.add(std::iter::empty(), 0, String::new()).unwrap();
        assert!(listing.is_complete());
        assert_eq!(listing.count(), "0 of 0\n");
    }
}
