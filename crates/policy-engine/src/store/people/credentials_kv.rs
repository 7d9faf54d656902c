//! What lets people in, on ordered keys and preconditioned batches.
//!
//! ```text
//! process spent      private(id)                              -> how a challenge was used up
//! process session    private(digest of the token)             -> session
//! process link       private(digest of the token)             -> one-time link
//! process passkey    private(credential id)                   -> tenant and name of the credential
//! tenant  credential public(name)                             -> credential
//! tenant  holder     private(principal) public(name)          -> nothing more
//! ```

use cl_kv::{Changes, Durability, Key, Kind, Precondition, Range, Tenant};
use cl_model::digest::Digest;
use cl_model::scalar::Reference;
use cl_model::time::UnixTime;
use cl_model::urn::CredentialId;

use super::records;
use super::{
    Credential, CredentialState, Credentials, Enrolment, Link, Session, SignIn, Spent, Stored,
};
use crate::core::challenge::{CeremonyId, Challenge};
use crate::core::operation::TenantName;
use crate::store::kept::{Kept, What};
use crate::store::kv::{KvStore, key};
use crate::store::{OutboxEntry, StoreError, Use};

const SPENT: Kind = Kind::new("spent");
const SESSION: Kind = Kind::new("session");
const LINK: Kind = Kind::new("link");
const PASSKEY: Kind = Kind::new("passkey");
const CREDENTIAL: Kind = Kind::new("credential");
const HOLDER: Kind = Kind::new("holder");

impl Credentials for KvStore {
    fn spent(&self, id: &CeremonyId) -> Result<Option<Spent>, StoreError> {
        let found = self.read(spent_key(id), records::decode_spent)?;
        Ok(found.map(|stored| stored.value))
    }

    fn refuse_sign_in(
        &self,
        challenge: &Challenge,
        operation: Use,
        entry: &OutboxEntry,
    ) -> Result<(), StoreError> {
        let changes = spent(Changes::new(), challenge, &Spent::Unnamed);
        self.apply(&Self::with_operation(changes, operation, entry)?)
    }

    fn sign_in(&self, sign_in: &SignIn) -> Result<(), StoreError> {
        let session = session_key(sign_in.token);
        let kept = Kept {
            what: What::Session(sign_in.token),
            until: sign_in.session.expires_at,
        };
        let changes = spent(Changes::new(), &sign_in.challenge, &Spent::Unnamed)
            .require(&session, Precondition::Absent)
            .put(session, records::encode_session(&sign_in.session));
        let changes = counted(changes, &sign_in.credential, sign_in.counter)?;
        self.apply(&kept.index(changes))
    }

    fn session(&self, token: Digest) -> Result<Option<Stored<Session>>, StoreError> {
        self.read(session_key(token), records::decode_session)
    }

    fn touch(
        &self,
        token: Digest,
        read: &Stored<Session>,
        used_at: UnixTime,
    ) -> Result<(), StoreError> {
        let target = session_key(token);
        let session = Session {
            used_at,
            ..read.value.clone()
        };
        let changes = Changes::new()
            .require(&target, Precondition::Unchanged(read.version))
            .put(target, records::encode_session(&session));
        self.apply(&changes.durability(Durability::Relaxed))
    }

    fn end_session(&self, token: Digest) -> Result<(), StoreError> {
        self.apply(&Changes::new().delete(session_key(token)))
    }

    fn open_link(
        &self,
        token: Digest,
        link: &Link,
        operation: Use,
        entry: &OutboxEntry,
    ) -> Result<(), StoreError> {
        let target = link_key(token);
        let kept = Kept {
            what: What::Link(token),
            until: link.expires_at,
        };
        let changes = Changes::new()
            .require(&target, Precondition::Absent)
            .put(target, records::encode_link(link));
        self.apply(&Self::with_operation(
            kept.index(changes),
            operation,
            entry,
        )?)
    }

    fn link(&self, token: Digest) -> Result<Option<Stored<Link>>, StoreError> {
        self.read(link_key(token), records::decode_link)
    }

    fn enrol(&self, enrolment: &Enrolment) -> Result<(), StoreError> {
        let (token, link) = &enrolment.link;
        let credential = &enrolment.credential;
        let by = Spent::By(enrolment.entry.operation_id.clone());
        let link_target = link_key(*token);
        let passkey = passkey_key(&credential.id);
        let target = credential_key(&credential.tenant, &credential.reference)?;
        let holder = key(&credential.tenant, HOLDER)?
            .private(credential.principal.as_str())
            .public(credential.reference.as_str());
        let changes = spent(Changes::new(), &enrolment.challenge, &by)
            .require(&link_target, Precondition::Unchanged(link.version))
            .delete(link_target)
            .require(&passkey, Precondition::Absent)
            .put(passkey, records::encode_named(credential))
            .require(&target, Precondition::Absent)
            .put(target, records::encode_credential(credential))
            .put(holder, records::encode_named(credential));
        self.apply(&Self::with_operation(
            changes,
            enrolment.operation,
            &enrolment.entry,
        )?)
    }

    fn credential(
        &self,
        tenant: &TenantName,
        reference: &CredentialId,
    ) -> Result<Option<Stored<Credential>>, StoreError> {
        self.read(
            credential_key(tenant, reference)?,
            records::decode_credential,
        )
    }

    fn credential_by_id(&self, id: &[u8]) -> Result<Option<Stored<Credential>>, StoreError> {
        let Some(named) = self.read(passkey_key(id), records::decode_named)? else {
            return Ok(None);
        };
        let (tenant, reference) = named.value;
        let found = self.credential(&tenant, &reference)?;
        found.ok_or(StoreError::Corrupt).map(Some)
    }

    fn credentials(
        &self,
        tenant: &TenantName,
        after: Option<&CredentialId>,
        limit: usize,
    ) -> Result<Vec<Credential>, StoreError> {
        let all = key(tenant, CREDENTIAL)?;
        let mut range = Range::of(all.clone(), limit);
        if let Some(reference) = after {
            range = range.after(all.public(reference.as_str()));
        }
        self.list(&range, records::decode_credential)
    }

    fn credentials_of(
        &self,
        tenant: &TenantName,
        principal: &Reference,
        limit: usize,
    ) -> Result<Vec<Credential>, StoreError> {
        let of = key(tenant, HOLDER)?.private(principal.as_str());
        let named = self.list(&Range::of(of, limit), records::decode_named)?;
        let mut credentials = Vec::with_capacity(named.len());
        for (tenant, reference) in named {
            let found = self.credential(&tenant, &reference)?;
            credentials.push(found.ok_or(StoreError::Corrupt)?.value);
        }
        Ok(credentials)
    }

    fn turn_credential(
        &self,
        read: &Stored<Credential>,
        state: CredentialState,
        operation: Use,
        entry: &OutboxEntry,
    ) -> Result<(), StoreError> {
        let next = Credential {
            state,
            ..read.value.clone()
        };
        let changes = rewritten(Changes::new(), read, &next)?;
        self.apply(&Self::with_operation(changes, operation, entry)?)
    }
}

/// Uses a challenge up that has no record until then.
fn spent(changes: Changes, challenge: &Challenge, by: &Spent) -> Changes {
    let target = spent_key(&challenge.id);
    let kept = Kept {
        what: What::Spent(challenge.id),
        until: challenge.expires_at,
    };
    let changes = changes
        .require(&target, Precondition::Absent)
        .put(target, records::encode_spent(by));
    kept.index(changes)
}

/// Stores a credential's counter, which is never lowered: the batch does not apply to another writing
/// than the one that the counter was judged by.
pub(super) fn counted(
    changes: Changes,
    read: &Stored<Credential>,
    counter: u32,
) -> Result<Changes, StoreError> {
    let next = Credential {
        counter,
        ..read.value.clone()
    };
    rewritten(changes, read, &next)
}

fn rewritten(
    changes: Changes,
    read: &Stored<Credential>,
    next: &Credential,
) -> Result<Changes, StoreError> {
    let target = credential_key(&next.tenant, &next.reference)?;
    Ok(changes
        .require(&target, Precondition::Unchanged(read.version))
        .put(target, records::encode_credential(next)))
}

pub(in crate::store) fn spent_key(id: &CeremonyId) -> Key {
    Tenant::process().key(SPENT).private(id)
}

pub(in crate::store) fn session_key(token: Digest) -> Key {
    Tenant::process().key(SESSION).private(token.as_bytes())
}

pub(in crate::store) fn link_key(token: Digest) -> Key {
    Tenant::process().key(LINK).private(token.as_bytes())
}

fn passkey_key(id: &[u8]) -> Key {
    Tenant::process().key(PASSKEY).private(id)
}

fn credential_key(tenant: &TenantName, reference: &CredentialId) -> Result<Key, StoreError> {
    Ok(key(tenant, CREDENTIAL)?.public(reference.as_str()))
}
