//! Who may read which receipts: a table of its own, apart from every other access, deny by default
//! (spec 11.8, 13.5).
//!
//! ```json
//! {
//!   "readers_version": 1,
//!   "readers": {
//!     "spiffe://example.org/auditor/ann": [{"role": "auditor", "tenant": "*"}],
//!     "spiffe://example.org/owner/ben": [
//!       {"role": "subject", "tenant": "acme", "subject_tag": "<43 characters>"}
//!     ],
//!     "spiffe://example.org/exchange/cl-policy-engine": [{"role": "writer", "tenant": "*"}],
//!     "spiffe://example.org/edge/cl-gateway": [{"role": "requester", "tenant": "*"}]
//!   }
//! }
//! ```
//!
//! A reader has at most one role for a tenant; the row that names the tenant goes before `*`. What
//! the role does not cover does not exist for the reader.

use std::collections::BTreeMap;

use cl_host::identity::SpiffeId;
use cl_model::json::{self, Limits};
use serde_json::Value;

use super::records::EntryRecord;
use super::routing::{SubjectTag, Tenant};

/// Size limit of the table's file.
pub const MAX_TABLE_BYTES: usize = 1024 * 1024;

/// Who may read what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readers {
    rows: BTreeMap<SpiffeId, Roles>,
}

/// A reader's roles by tenant; none stands for all tenants that are not named.
type Roles = BTreeMap<Option<Tenant>, View>;

/// What a reader sees of a tenant's receipts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// None.
    Nothing,
    /// All, their tombstones, and the log itself.
    Auditor,
    /// Those of one subject.
    Subject(SubjectTag),
    /// Those that it wrote.
    Writer(SpiffeId),
    /// Single ones, whose actor it names.
    Requester,
}

impl Readers {
    /// Reads the table, strictly: no unknown, repeated or missing member.
    pub fn parse(bytes: &[u8]) -> Result<Self, InvalidReaders> {
        let table = json::parse(bytes, Limits::network(MAX_TABLE_BYTES))
            .map_err(|_| InvalidReaders::Json)?;
        check_members(&table, &["readers_version", "readers"], "the table")?;
        if table["readers_version"] != 1 {
            return Err(InvalidReaders::Version);
        }
        let rows = table["readers"]
            .as_object()
            .ok_or(InvalidReaders::Shape("readers"))?;
        let rows = rows.iter().map(|(id, roles)| {
            let id: SpiffeId = id
                .parse()
                .map_err(|_| InvalidReaders::Shape("a reader's id"))?;
            let roles = parse_roles(&id, roles)?;
            Ok((id, roles))
        });
        Ok(Self {
            rows: rows.collect::<Result<_, InvalidReaders>>()?,
        })
    }

    /// The readers.
    pub fn ids(&self) -> impl Iterator<Item = &SpiffeId> {
        self.rows.keys()
    }

    /// What a reader sees of a tenant; none if it is no reader at all.
    pub fn view(&self, reader: &SpiffeId, tenant: &Tenant) -> Option<View> {
        let roles = self.rows.get(reader)?;
        let role = roles
            .get(&Some(tenant.clone()))
            .or_else(|| roles.get(&None));
        Some(role.cloned().unwrap_or(View::Nothing))
    }

    /// Whether somebody is a reader at all.
    pub fn has(&self, reader: &SpiffeId) -> bool {
        self.rows.contains_key(reader)
    }
}

impl View {
    /// Whether a receipt exists for the reader, who asks for one with this actor or with any.
    pub fn shows(&self, entry: &EntryRecord, actor: Option<&str>) -> bool {
        let is_actors = || actor.is_none_or(|actor| entry.actor().as_deref() == Some(actor));
        let is_shown = match self {
            Self::Nothing => false,
            Self::Auditor => return entry.tombstone.is_some() || is_actors(),
            Self::Subject(tag) => entry.subject_tag() == Some(tag.as_str()),
            Self::Writer(writer) => entry.writer == writer.as_str(),
            Self::Requester => actor.is_some(),
        };
        entry.tombstone.is_none() && is_shown && is_actors()
    }

    /// Whether the log itself exists for the reader: its checkpoint, its tiles, its check.
    pub fn shows_log(&self) -> bool {
        *self == Self::Auditor
    }
}

fn parse_roles(id: &SpiffeId, roles: &Value) -> Result<Roles, InvalidReaders> {
    let list = roles
        .as_array()
        .ok_or(InvalidReaders::Shape("a reader's roles"))?;
    let mut roles = Roles::new();
    for row in list {
        let tenant = match row["tenant"].as_str() {
            Some("*") => None,
            Some(name) => Some(Tenant::parse(name).ok_or(InvalidReaders::Shape("tenant"))?),
            None => return Err(InvalidReaders::Shape("tenant")),
        };
        let view = parse_role(id, row, tenant.is_some())?;
        if roles.insert(tenant, view).is_some() {
            return Err(InvalidReaders::Repeated);
        }
    }
    Ok(roles)
}

fn parse_role(id: &SpiffeId, row: &Value, names_tenant: bool) -> Result<View, InvalidReaders> {
    let plain = |view| {
        check_members(row, &["role", "tenant"], "a role")?;
        Ok(view)
    };
    match row["role"].as_str() {
        Some("auditor") => plain(View::Auditor),
        Some("writer") => plain(View::Writer(id.clone())),
        Some("requester") => plain(View::Requester),
        Some("subject") => {
            check_members(row, &["role", "tenant", "subject_tag"], "a role")?;
            // A tag is made for one tenant.
            let tag = row["subject_tag"].as_str().and_then(SubjectTag::parse);
            let tag = tag.filter(|_| names_tenant);
            let tag = tag.ok_or(InvalidReaders::Shape("subject_tag"))?;
            Ok(View::Subject(tag))
        }
        Some(_) | None => Err(InvalidReaders::Shape("role")),
    }
}

fn check_members(value: &Value, names: &[&str], what: &'static str) -> Result<(), InvalidReaders> {
    let is_exact = value.as_object().is_some_and(|object| {
        object.len() == names.len() && names.iter().all(|name| object.contains_key(*name))
    });
    is_exact.then_some(()).ok_or(InvalidReaders::Shape(what))
}

/// A mistake in the table; a store with one does not start, and a running one keeps the table that
/// it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidReaders {
    /// Not strict JSON.
    #[error("the readers table is not strict JSON")]
    Json,
    /// Another version.
    #[error("readers_version must be 1")]
    Version,
    /// A member is missing, unknown or of another type.
    #[error("the readers table does not fit its schema: {0}")]
    Shape(&'static str),
    /// A reader has two roles for one tenant.
    #[error("a reader has two roles for one tenant")]
    Repeated,
}

#[cfg(test)]
mod tests {
    use super::super::records::{RoutingRecord, TombstoneRecord};
    use super::*;

    const ANN: &str = "spiffe://example.org/auditor/ann";

    fn table(roles: &str) -> String {
        format!(r#"{{"readers_version":1,"readers":{{"{ANN}":{roles}}}}}"#)
    }

    fn view(roles: &str, tenant: &str) -> Option<View> {
        let readers = Readers::parse(table(roles).as_bytes()).unwrap();
        readers.view(&ANN.parse().unwrap(), &Tenant::parse(tenant).unwrap())
    }

    fn tag(byte: u8) -> String {
        data_encoding::BASE64URL_NOPAD.encode(&[byte; 32])
    }

    #[test]
    fn the_row_of_the_tenant_goes_before_that_of_all() {
        let roles = r#"[{"role":"auditor","tenant":"*"},{"role":"writer","tenant":"acme"}]"#;
        let writer = View::Writer(ANN.parse().unwrap());
        assert_eq!(view(roles, "acme"), Some(writer));
        assert_eq!(view(roles, "beta"), Some(View::Auditor));
        assert_eq!(view("[]", "acme"), Some(View::Nothing));
        let one = r#"[{"role":"auditor","tenant":"acme"}]"#;
        assert_eq!(view(one, "beta"), Some(View::Nothing));
        let readers = Readers::parse(table(one).as_bytes()).unwrap();
        let stranger = "spiffe://example.org/auditor/eve".parse().unwrap();
        assert_eq!(
            readers.view(&stranger, &Tenant::parse("acme").unwrap()),
            None
        );
    }

    #[test]
    fn each_role_shows_its_own() {
        let entry = EntryRecord {
            receipt: r#"{"actor":"urn:a:b"}"#.to_owned(),
            writer: ANN.to_owned(),
            routing: Some(RoutingRecord {
                subject_tag: Some(tag(1)),
                ..RoutingRecord::default()
            }),
            ..EntryRecord::default()
        };
        let tombstone = EntryRecord {
            tombstone: Some(TombstoneRecord::default()),
            ..EntryRecord::default()
        };
        let subject = |byte| View::Subject(SubjectTag::parse(&tag(byte)).unwrap());
        let writer =
            |path: &str| View::Writer(format!("spiffe://example.org/{path}").parse().unwrap());
        for (view, shows, shows_actors) in [
            (View::Nothing, false, false),
            (View::Auditor, true, true),
            (subject(1), true, true),
            (subject(2), false, false),
            (writer("auditor/ann"), true, true),
            (writer("auditor/eve"), false, false),
            (View::Requester, false, true),
        ] {
            assert_eq!(view.shows(&entry, None), shows, "{view:?}");
            assert_eq!(
                view.shows(&entry, Some("urn:a:b")),
                shows_actors,
                "{view:?}"
            );
            assert!(!view.shows(&entry, Some("urn:a:c")), "{view:?}");
            let is_auditor = view.shows_log();
            assert_eq!(view.shows(&tombstone, None), is_auditor, "{view:?}");
        }
    }

    #[test]
    fn refuses_what_does_not_fit() {
        let tagged = |tag: &str, tenant: &str| {
            format!(r#"[{{"role":"subject","tenant":"{tenant}","subject_tag":"{tag}"}}]"#)
        };
        assert!(Readers::parse(table(&tagged(&tag(1), "acme")).as_bytes()).is_ok());
        let two = r#"[{"role":"auditor","tenant":"*"},{"role":"writer","tenant":"*"}]"#;
        for bad in [
            table(&tagged(&tag(1), "*")),
            table(&tagged("x", "acme")),
            table(r#"[{"role":"subject","tenant":"acme"}]"#),
            table(r#"[{"role":"auditor","tenant":"acme","subject_tag":"x"}]"#),
            table(r#"[{"role":"king","tenant":"*"}]"#),
            table(r#"[{"role":"auditor","tenant":"A"}]"#),
            table(r#"[{"role":"auditor"}]"#),
            table(r#"{"role":"auditor","tenant":"*"}"#),
            table(two),
            table("[]").replace("spiffe", "http"),
            table("[]").replace(":1", ":2"),
            "{}".to_owned(),
            String::new(),
        ] {
            assert!(Readers::parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
