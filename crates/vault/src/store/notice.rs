//! Notices of deletions that somebody has to act on.
//!
//! ```text
//! process notice  public(party) public(id) -> notice to deliver
//! ```

use cl_kv::{Changes, Key, Kind, Range, Tenant};
use cl_model::operation::TenantName;
use cl_model::urn::{Alias, DecisionId, ProvenanceRef};
use prost::Message;

use super::operation::{Place, next_place};
use super::records::decode;
use super::{Draft, Store, StoreError};

const NOTICE: Kind = Kind::new("notice");

/// Whom a notice of a deletion is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    /// Ends bundles.
    BundleIssuer,
    /// Ends requests and decisions.
    PolicyEngine,
    /// Drops match features and probe families.
    DiscoveryProxy,
    /// Applies the retention of receipts.
    ReceiptStore,
}

impl Party {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::BundleIssuer,
        Self::PolicyEngine,
        Self::DiscoveryProxy,
        Self::ReceiptStore,
    ];

    /// The party's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BundleIssuer => "bundle_issuer",
            Self::PolicyEngine => "policy_engine",
            Self::DiscoveryProxy => "discovery_proxy",
            Self::ReceiptStore => "receipt_store",
        }
    }
}

/// What a notice refers to: names that say nothing by themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Everything under one decision.
    Decision(DecisionId),
    /// Everything under one alias of a subject.
    Alias(Alias),
    /// Everything that rests on one source of one exchange.
    Provenance(ProvenanceRef),
    /// Everything under the tag of a subject.
    SubjectTag(String),
}

impl Target {
    fn parts(&self) -> (&'static str, &str) {
        match self {
            Self::Decision(id) => ("decision", id.as_str()),
            Self::Alias(alias) => ("alias", alias.as_str()),
            Self::Provenance(reference) => ("provenance", reference.as_str()),
            Self::SubjectTag(tag) => ("subject_tag", tag),
        }
    }

    fn read(kind: &str, text: &str) -> Option<Self> {
        match kind {
            "decision" => DecisionId::parse(text).map(Self::Decision),
            "alias" => Alias::parse(text).map(Self::Alias),
            "provenance" => ProvenanceRef::parse(text).map(Self::Provenance),
            "subject_tag" => Some(Self::SubjectTag(text.to_owned())),
            _ => None,
        }
    }
}

/// Why a notice was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The subject was erased.
    SubjectErased,
    /// One source was erased.
    EventErased,
}

impl Reason {
    /// The reason's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SubjectErased => "subject.erased",
            Self::EventErased => "event.erased",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::SubjectErased, Self::EventErased]
            .into_iter()
            .find(|reason| reason.as_str() == text)
    }
}

/// A notice that something was deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Its id: a UUID, also of the operation at the party.
    pub id: String,
    /// Whom it is for.
    pub party: Party,
    /// The tenant.
    pub tenant: TenantName,
    /// What it refers to.
    pub target: Target,
    /// Why.
    pub reason: Reason,
}

/// One page of notices.
pub struct NoticePage {
    /// The notices.
    pub notices: Vec<Notice>,
    /// Where to go on; none at the end.
    pub next: Option<Place>,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
struct NoticeRecord {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(string, tag = "2")]
    tenant: String,
    #[prost(string, tag = "3")]
    kind: String,
    #[prost(string, tag = "4")]
    text: String,
    #[prost(string, tag = "5")]
    reason: String,
}

impl Store {
    /// At most `limit` notices for a party, after a place.
    pub fn notices(
        &self,
        party: Party,
        after: Option<Place>,
        limit: usize,
    ) -> Result<NoticePage, StoreError> {
        let prefix = Tenant::process().key(NOTICE).public(party.as_str());
        let mut range = Range::of(prefix, limit);
        if let Some(place) = after {
            range = range.after(place);
        }
        let found = self.data.scan(&range)?;
        let notices = found.iter().map(|entry| {
            let record: NoticeRecord = decode(&entry.opened.value)?;
            record.read(party).ok_or(StoreError::Corrupt)
        });
        let notices = notices.collect::<Result<Vec<_>, _>>()?;
        Ok(NoticePage {
            next: next_place(found, limit),
            notices,
        })
    }

    /// Forgets a notice that its party acknowledged. Forgetting twice is fine.
    pub fn acknowledge(&self, notice: &Notice) -> Result<(), StoreError> {
        self.data.apply(&Changes::new().delete(notice.key()))?;
        Ok(())
    }
}

impl Draft<'_> {
    /// Adds a notice.
    pub fn notify(&mut self, notice: &Notice) -> Result<(), StoreError> {
        self.change(|changes| Ok(changes.put(notice.key(), notice.encode())))
    }
}

impl Notice {
    fn key(&self) -> Key {
        Tenant::process()
            .key(NOTICE)
            .public(self.party.as_str())
            .public(&self.id)
    }

    fn encode(&self) -> Vec<u8> {
        let (kind, text) = self.target.parts();
        let record = NoticeRecord {
            id: self.id.clone(),
            tenant: self.tenant.as_str().to_owned(),
            kind: kind.to_owned(),
            text: text.to_owned(),
            reason: self.reason.as_str().to_owned(),
        };
        record.encode_to_vec()
    }
}

impl NoticeRecord {
    fn read(self, party: Party) -> Option<Notice> {
        Some(Notice {
            id: self.id,
            party,
            tenant: TenantName::parse(&self.tenant)?,
            target: Target::read(&self.kind, &self.text)?,
            reason: Reason::parse(&self.reason)?,
        })
    }
}
