//! What operators have set, on ordered keys and preconditioned batches.
//!
//! ```text
//! tenant  anomaly  private(requester)  -> anomaly state
//! tenant  delegation private(subject) private(delegate) -> what is delegated
//! tenant  shadow                       -> snapshot that is evaluated beside the active one
//! process in-force public(tenant)      -> times of the active snapshot
//! ```

use cl_kv::{Changes, Key, Kind, Precondition, Range, Tenant, Version};
use cl_model::digest::Digest;
use cl_model::purpose::PurposeCode;
use cl_model::scalar::{Name, Reference};
use cl_model::time::UnixTime;
use prost::Message;

use super::kv::{KvStore, as_read, key};
use super::people::Stored;
use super::records::{self, DelegatedRecord};
use super::settings::{ActiveTenant, Anomaly, Delegation, InForce, Settings, Shadow};
use super::{OutboxEntry, Place, StoreError, Use};
use crate::core::operation::{OperationId, TenantName};

const ANOMALY: Kind = Kind::new("anomaly");
const DELEGATION: Kind = Kind::new("delegation");
const SHADOW: Kind = Kind::new("shadow");
const IN_FORCE: Kind = Kind::new("in-force");

impl Settings for KvStore {
    fn anomaly(
        &self,
        tenant: &TenantName,
        requester: &Reference,
    ) -> Result<Option<Stored<Anomaly>>, StoreError> {
        self.setting(anomaly_key(tenant, requester)?, AnomalyRecord::read)
    }

    fn anomalies(
        &self,
        tenant: &TenantName,
        after: Option<&Reference>,
        limit: usize,
    ) -> Result<Vec<Anomaly>, StoreError> {
        let mut range = Range::of(key(tenant, ANOMALY)?, limit);
        if let Some(requester) = after {
            range = range.after(anomaly_key(tenant, requester)?);
        }
        let found = self.sealed.scan(&range)?;
        found
            .iter()
            .map(|entry| decode(&entry.opened.value, AnomalyRecord::read))
            .collect()
    }

    fn set_anomaly(
        &self,
        read: Option<Version>,
        anomaly: &Anomaly,
        operation: Use,
        entry: &OutboxEntry,
    ) -> Result<(), StoreError> {
        let target = anomaly_key(&entry.tenant, &anomaly.requester)?;
        let value = AnomalyRecord::of(anomaly).encode_to_vec();
        self.set(target, read, value, operation, entry)
    }

    fn clear_anomaly(
        &self,
        read: &Stored<Anomaly>,
        operation: Use,
        entry: &OutboxEntry,
    ) -> Result<(), StoreError> {
        let target = anomaly_key(&entry.tenant, &read.value.requester)?;
        self.clear(target, read.version, operation, entry)
    }

    fn delegation(
        &self,
        tenant: &TenantName,
        subject: &Reference,
        delegate: &Reference,
    ) -> Result<Option<Stored<Delegation>>, StoreError> {
        let target = delegation_key(tenant, subject, delegate)?;
        self.setting(target, DelegationRecord::read)
    }

    fn delegations(
        &self,
        tenant: &TenantName,
        after: Option<(&Reference, &Reference)>,
        limit: usize,
    ) -> Result<Vec<Delegation>, StoreError> {
        let mut range = Range::of(key(tenant, DELEGATION)?, limit);
        if let Some((subject, delegate)) = after {
            range = range.after(delegation_key(tenant, subject, delegate)?);
        }
        let found = self.sealed.scan(&range)?;
        found
            .iter()
            .map(|entry| decode(&entry.opened.value, DelegationRecord::read))
            .collect()
    }

    fn set_delegation(
        &self,
        read: Option<Version>,
        delegation: &Delegation,
        operation: Use,
        entry: &OutboxEntry,
    ) -> Result<(), StoreError> {
        let target = delegation_key(&entry.tenant, &delegation.subject, &delegation.delegate)?;
        let value = DelegationRecord::of(delegation).encode_to_vec();
        self.set(target, read, value, operation, entry)
    }

    fn revoke_delegation(
        &self,
        read: &Stored<Delegation>,
        operation: Use,
        entry: &OutboxEntry,
    ) -> Result<(), StoreError> {
        let Delegation {
            subject, delegate, ..
        } = &read.value;
        let target = delegation_key(&entry.tenant, subject, delegate)?;
        self.clear(target, read.version, operation, entry)
    }

    fn shadow(&self, tenant: &TenantName) -> Result<Option<Stored<Shadow>>, StoreError> {
        self.setting(key(tenant, SHADOW)?, ShadowRecord::read)
    }

    fn set_shadow(
        &self,
        read: Option<Version>,
        shadow: &Shadow,
        operation: Use,
        entry: &OutboxEntry,
    ) -> Result<(), StoreError> {
        let target = key(&entry.tenant, SHADOW)?;
        let value = ShadowRecord::of(shadow).encode_to_vec();
        self.set(target, read, value, operation, entry)
    }

    fn clear_shadow(
        &self,
        read: &Stored<Shadow>,
        operation: Use,
        entry: &OutboxEntry,
    ) -> Result<(), StoreError> {
        let target = key(&entry.tenant, SHADOW)?;
        self.clear(target, read.version, operation, entry)
    }

    fn activations(
        &self,
        after: Option<Place>,
        limit: usize,
    ) -> Result<(Vec<ActiveTenant>, Option<Place>), StoreError> {
        let mut range = Range::of(Tenant::process().key(IN_FORCE), limit);
        if let Some(place) = after {
            range = range.after(place);
        }
        let found = self.sealed.scan(&range)?;
        let activations = found
            .iter()
            .map(|entry| decode(&entry.opened.value, InForceRecord::read))
            .collect::<Result<Vec<_>, _>>()?;
        let last = found.into_iter().last().map(|entry| entry.key);
        let next = last.filter(|_| activations.len() == limit);
        Ok((activations, next))
    }
}

impl KvStore {
    fn setting<R: Message + Default, T>(
        &self,
        target: Key,
        read: fn(R) -> Option<T>,
    ) -> Result<Option<Stored<T>>, StoreError> {
        let found = self.sealed.get(target)?;
        found
            .map(|opened| {
                Ok(Stored {
                    value: decode(&opened.value, read)?,
                    version: opened.version,
                })
            })
            .transpose()
    }

    fn set(
        &self,
        target: Key,
        read: Option<Version>,
        value: Vec<u8>,
        operation: Use,
        entry: &OutboxEntry,
    ) -> Result<(), StoreError> {
        let changes = Changes::new()
            .require(&target, as_read(read))
            .put(target, value);
        self.apply(&Self::with_operation(changes, operation, entry)?)
    }

    fn clear(
        &self,
        target: Key,
        read: Version,
        operation: Use,
        entry: &OutboxEntry,
    ) -> Result<(), StoreError> {
        let changes = Changes::new()
            .require(&target, Precondition::Unchanged(read))
            .delete(target);
        self.apply(&Self::with_operation(changes, operation, entry)?)
    }
}

/// Notes the times of a snapshot that becomes active.
pub(super) fn in_force(changes: Changes, tenant: &TenantName, times: InForce) -> Changes {
    let target = Tenant::process().key(IN_FORCE).public(tenant.as_str());
    changes.put(target, InForceRecord::of(tenant, times).encode_to_vec())
}

pub(super) fn anomaly_key(tenant: &TenantName, requester: &Reference) -> Result<Key, StoreError> {
    Ok(key(tenant, ANOMALY)?.private(requester.as_str()))
}

pub(super) fn delegation_key(
    tenant: &TenantName,
    subject: &Reference,
    delegate: &Reference,
) -> Result<Key, StoreError> {
    Ok(key(tenant, DELEGATION)?
        .private(subject.as_str())
        .private(delegate.as_str()))
}

fn decode<R: Message + Default, T>(
    value: &[u8],
    read: fn(R) -> Option<T>,
) -> Result<T, StoreError> {
    read(records::decode(value)?).ok_or(StoreError::Corrupt)
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
struct AnomalyRecord {
    #[prost(string, tag = "1")]
    requester: String,
    #[prost(string, tag = "2")]
    state: String,
    #[prost(int64, tag = "3")]
    set_at_ms: i64,
    #[prost(string, tag = "4")]
    set_by: String,
}

impl AnomalyRecord {
    fn of(anomaly: &Anomaly) -> Self {
        Self {
            requester: anomaly.requester.as_str().to_owned(),
            state: anomaly.state.as_str().to_owned(),
            set_at_ms: anomaly.set_at.milliseconds(),
            set_by: anomaly.set_by.to_string(),
        }
    }

    fn read(self) -> Option<Anomaly> {
        Some(Anomaly {
            requester: Reference::new(self.requester)?,
            state: Name::new(self.state)?,
            set_at: UnixTime::from_milliseconds(self.set_at_ms),
            set_by: OperationId::parse(&self.set_by)?,
        })
    }
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
struct DelegationRecord {
    #[prost(string, tag = "1")]
    subject: String,
    #[prost(string, tag = "2")]
    delegate: String,
    #[prost(string, repeated, tag = "3")]
    purposes: Vec<String>,
    #[prost(message, required, tag = "4")]
    delegated: DelegatedRecord,
    #[prost(int64, tag = "5")]
    set_at_ms: i64,
    #[prost(string, tag = "6")]
    set_by: String,
}

impl DelegationRecord {
    fn of(delegation: &Delegation) -> Self {
        let purposes = delegation.purposes.iter();
        Self {
            subject: delegation.subject.as_str().to_owned(),
            delegate: delegation.delegate.as_str().to_owned(),
            purposes: purposes.map(|it| it.as_str().to_owned()).collect(),
            delegated: DelegatedRecord::of(&delegation.delegated),
            set_at_ms: delegation.set_at.milliseconds(),
            set_by: delegation.set_by.to_string(),
        }
    }

    fn read(self) -> Option<Delegation> {
        let purposes = self.purposes.iter().map(|code| PurposeCode::new(code));
        Some(Delegation {
            subject: Reference::new(self.subject)?,
            delegate: Reference::new(self.delegate)?,
            purposes: purposes.collect::<Option<_>>()?,
            delegated: self.delegated.read()?,
            set_at: UnixTime::from_milliseconds(self.set_at_ms),
            set_by: OperationId::parse(&self.set_by)?,
        })
    }
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
struct ShadowRecord {
    #[prost(string, tag = "1")]
    digest: String,
    #[prost(int64, tag = "2")]
    set_at_ms: i64,
    #[prost(string, tag = "3")]
    set_by: String,
}

impl ShadowRecord {
    fn of(shadow: &Shadow) -> Self {
        Self {
            digest: shadow.digest.to_string(),
            set_at_ms: shadow.set_at.milliseconds(),
            set_by: shadow.set_by.to_string(),
        }
    }

    fn read(self) -> Option<Shadow> {
        Some(Shadow {
            digest: Digest::parse(&self.digest)?,
            set_at: UnixTime::from_milliseconds(self.set_at_ms),
            set_by: OperationId::parse(&self.set_by)?,
        })
    }
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
struct InForceRecord {
    #[prost(int64, tag = "1")]
    since_ms: i64,
    #[prost(int64, optional, tag = "2")]
    until_ms: Option<i64>,
    #[prost(string, tag = "3")]
    tenant: String,
}

impl InForceRecord {
    fn of(tenant: &TenantName, times: InForce) -> Self {
        Self {
            tenant: tenant.as_str().to_owned(),
            since_ms: times.since.milliseconds(),
            until_ms: times.until.map(UnixTime::milliseconds),
        }
    }

    fn read(self) -> Option<ActiveTenant> {
        let times = InForce {
            since: UnixTime::from_milliseconds(self.since_ms),
            until: self.until_ms.map(UnixTime::from_milliseconds),
        };
        Some(ActiveTenant {
            tenant: TenantName::parse(&self.tenant)?,
            times,
        })
    }
}
