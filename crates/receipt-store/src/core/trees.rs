//! The Merkle tree of each tenant's log: what a group adds to it, its checkpoint, and proofs.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use cl_model::key::{KEY_BYTES, PublicKey, SigningKey};
use cl_model::leaf;
use cl_tlog::{
    Appended, Checkpoint, Edge, Entry, Error as TreeError, Hash, KeyName, ProofFile, Prover,
    ReadError, SignedCheckpoint, Signer, Tile, TileReader, Verifier, VerifierKey, Witnesses,
};
use prost::Message;

use super::kept::Kept;
use super::records::{self, EntryRecord, LogRecord};
use super::routing::Tenant;
use crate::error::Error;
use crate::store::{Slot, Store};

/// Signs the checkpoints of all logs; each log has its own origin, and so its own key name and id.
///
/// Keys that it has replaced verify what they signed, and sign no more.
pub struct LogKey {
    key: SigningKey,
    replaced: Vec<[u8; KEY_BYTES]>,
    trust_domain: String,
}

impl LogKey {
    /// The key of a deployment's receipts.
    pub fn new(key: SigningKey, trust_domain: &str) -> Self {
        Self {
            key,
            replaced: Vec::new(),
            trust_domain: trust_domain.to_owned(),
        }
    }

    /// Accepts checkpoints of these keys too, which it has replaced.
    #[must_use]
    pub fn replacing(mut self, keys: impl IntoIterator<Item = PublicKey>) -> Self {
        let keys = keys.into_iter().map(|key| *key.as_bytes());
        self.replaced.extend(keys);
        self
    }

    /// The origin of a tenant's log.
    pub fn origin(&self, tenant: &Tenant) -> String {
        leaf::origin(&self.trust_domain, tenant.as_str())
    }

    /// The tenant whose log has this origin; none if it is of another deployment.
    pub fn tenant(&self, origin: &str) -> Option<Tenant> {
        let tenant = Tenant::parse(origin.rsplit('/').next()?)?;
        (self.origin(&tenant) == origin).then_some(tenant)
    }

    fn verifier(&self, tenant: &Tenant) -> Result<VerifierKey, Error> {
        self.verifier_of(*self.key.public_key().as_bytes(), tenant)
    }

    fn verifier_of(&self, key: [u8; KEY_BYTES], tenant: &Tenant) -> Result<VerifierKey, Error> {
        let name = KeyName::new(&self.origin(tenant)).ok_or(NO_NAME)?;
        Ok(VerifierKey::new(name, cl_tlog::Algorithm::Ed25519, key))
    }

    /// Signs the size and root of a tenant's tree.
    fn sign(&self, tenant: &Tenant, edge: &Edge) -> Result<SignedCheckpoint, Error> {
        let checkpoint = Checkpoint::new(&self.origin(tenant), edge.size(), edge.root());
        let signer = TenantKey {
            verifier: self.verifier(tenant)?,
            key: &self.key,
        };
        let signed = checkpoint.and_then(|it| SignedCheckpoint::sign(it, &[&signer]));
        signed.map_err(|_| Error::Internal("a checkpoint cannot be signed"))
    }

    /// Reads a checkpoint of a tenant's log; none if neither this key signed it nor one before it.
    pub fn read(&self, tenant: &Tenant, text: &str) -> Result<Option<SignedCheckpoint>, Error> {
        let own = *self.key.public_key().as_bytes();
        let keys = self.replaced.iter().filter(|key| **key != own);
        let keys = [&own].into_iter().chain(keys);
        let keys = keys.map(|key| self.verifier_of(*key, tenant));
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        let keys: Vec<&dyn Verifier> = keys.iter().map(|key| key as &dyn Verifier).collect();
        let (origin, nobody) = (self.origin(tenant), Witnesses::default());
        let signed = SignedCheckpoint::parse(text.as_bytes()).ok();
        Ok(signed.filter(|signed| signed.verify(&origin, &keys, &nobody).is_ok()))
    }
}

impl fmt::Debug for LogKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("LogKey(..)")
    }
}

const NO_NAME: Error = Error::Internal("the trust domain makes no key name");

/// The key under the name of one log.
struct TenantKey<'a> {
    verifier: VerifierKey,
    key: &'a SigningKey,
}

impl Signer for TenantKey<'_> {
    fn name(&self) -> &KeyName {
        Verifier::name(&self.verifier)
    }

    fn id(&self) -> cl_tlog::KeyId {
        Verifier::id(&self.verifier)
    }

    fn sign(&self, text: &str) -> Result<Vec<u8>, TreeError> {
        Ok(self.key.sign(text.as_bytes()).as_bytes().to_vec())
    }
}

/// A tree as its checkpoint states it.
#[derive(Clone, Debug)]
pub struct Tree {
    edge: Arc<Edge>,
    /// What this tree has that the stored one has not yet.
    appended: Option<Appended>,
    /// The signed checkpoint, and the cosignatures that were asked for.
    checkpoint: SignedCheckpoint,
    is_cosigned: bool,
    was_pinned: bool,
    /// The checkpoint that this process has grown it from.
    grown_from: Option<String>,
    text: String,
}

impl Tree {
    /// The tree of a tenant as it is stored; none if it has no log.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] when the checkpoint is not signed by the log's key, or the stored tiles do
    /// not lead to its root.
    pub fn load(store: &dyn Store, key: &LogKey, tenant: &Tenant) -> Result<Option<Self>, Error> {
        let Some(record) = log_record(store, tenant)? else {
            return Ok(None);
        };
        Ok(Some(Self {
            was_pinned: record.was_pinned,
            ..Self::at(record.checkpoint, store, key, tenant)?
        }))
    }

    /// The tree of a checkpoint, from the stored tiles, which may have grown since.
    pub fn at(
        text: String,
        store: &dyn Store,
        key: &LogKey,
        tenant: &Tenant,
    ) -> Result<Self, Error> {
        let signed = key.read(tenant, &text)?;
        let signed = signed.ok_or(Error::Corrupt("a checkpoint is not the log's"))?;
        let checkpoint = signed.checkpoint();
        let tiles = Tiles {
            store,
            tenant: tenant.clone(),
        };
        let edge = Edge::load(checkpoint.size(), checkpoint.root(), &tiles).map_err(unread)?;
        Ok(Self {
            edge: Arc::new(edge),
            appended: None,
            checkpoint: signed,
            is_cosigned: false,
            was_pinned: true,
            grown_from: None,
            text,
        })
    }

    /// Whether it begins with the tree of an older checkpoint; proven from the stored tiles.
    pub fn extends(
        &self,
        old: &Checkpoint,
        store: &dyn Store,
        tenant: &Tenant,
    ) -> Result<bool, Error> {
        let proof = self.consistency(old.size(), store, tenant)?;
        let checkpoint = self.checkpoint.checkpoint();
        Ok(checkpoint.verify_consistency(old, &proof).is_ok())
    }

    /// The proof that it begins with the tree of an older size.
    pub fn consistency(
        &self,
        old_size: u64,
        store: &dyn Store,
        tenant: &Tenant,
    ) -> Result<Vec<Hash>, Error> {
        let proof = self.proofs(store, tenant).prover.consistency(old_size);
        proof.map_err(unread)
    }

    /// The tree, without what only the group that grew it needs.
    pub(crate) fn settled(&self) -> Self {
        Self {
            edge: Arc::clone(&self.edge),
            appended: None,
            checkpoint: self.checkpoint.clone(),
            is_cosigned: self.is_cosigned,
            was_pinned: self.was_pinned,
            grown_from: self.grown_from.clone(),
            text: self.text.clone(),
        }
    }

    /// How many entries it has.
    pub fn size(&self) -> u64 {
        self.edge.size()
    }

    /// The signed checkpoint over them, without cosignatures.
    pub fn checkpoint(&self) -> &str {
        &self.text
    }

    /// The signed checkpoint as it is shown, with the cosignatures that it has.
    pub fn published(&self) -> &SignedCheckpoint {
        &self.checkpoint
    }

    /// Whether the published checkpoint has the cosignatures of a quorum.
    pub fn is_cosigned(&self) -> bool {
        self.is_cosigned
    }

    /// Whether a tree of this log was pinned before this one was stored.
    pub fn was_pinned(&self) -> bool {
        self.was_pinned
    }

    /// The checkpoint that this process has grown it from, which was pinned then.
    pub(super) fn grown_from(&self) -> Option<&str> {
        self.grown_from.as_deref()
    }

    /// Publishes the checkpoint with the cosignatures of a quorum.
    pub(super) fn publish(&mut self, cosigned: SignedCheckpoint) {
        self.checkpoint = cosigned;
        self.is_cosigned = true;
    }

    /// Takes over what the same tree was given when it was pinned and cosigned, or the newer one.
    pub(crate) fn cover(&mut self, covered: Self) {
        if covered.text == self.text {
            self.checkpoint = covered.checkpoint;
            self.is_cosigned = covered.is_cosigned;
        } else {
            *self = covered;
        }
    }

    /// The edge, to go on from.
    pub fn edge(&self) -> &Edge {
        &self.edge
    }

    /// What makes proofs for entries of this tree.
    pub fn proofs<'a>(&self, store: &'a dyn Store, tenant: &Tenant) -> Proofs<'a> {
        let tiles = Tiles {
            store,
            tenant: tenant.clone(),
        };
        Proofs {
            prover: match &self.appended {
                Some(appended) => appended.prover(tiles),
                None => Prover::new(Edge::clone(&self.edge), tiles),
            },
            checkpoint: self.checkpoint.clone(),
        }
    }

    /// The tree with entries behind the others, and its records.
    fn grow(
        stored: Option<Self>,
        leaves: &[[u8; leaf::LEAF_BYTES]],
        key: &LogKey,
        tenant: &Tenant,
        changes: &mut BTreeMap<Slot, Option<Vec<u8>>>,
    ) -> Result<Self, Error> {
        // What is grown was pinned before.
        let (edge, grown_from) = match stored {
            Some(tree) => (tree.edge, Some(tree.text)),
            None => (Arc::default(), None),
        };
        let was_pinned = grown_from.is_some();
        let entries = leaves.iter().map(|leaf| Entry::new(leaf));
        let entries = entries.collect::<Result<Vec<_>, _>>();
        let appended = entries.and_then(|entries| edge.append(&entries));
        let appended = appended.map_err(|_| Error::Internal("the log is full"))?;
        for (tile, bytes) in appended.tiles() {
            changes.insert(tile_slot(tenant, tile), Some(bytes));
        }
        let checkpoint = key.sign(tenant, appended.edge())?;
        let record = LogRecord {
            checkpoint: checkpoint.to_string(),
            was_pinned,
        };
        changes.insert(Slot::Log(tenant.clone()), Some(record.encode_to_vec()));
        Ok(Self {
            edge: Arc::new(appended.edge().clone()),
            appended: Some(appended),
            checkpoint,
            is_cosigned: false,
            was_pinned,
            grown_from,
            text: record.checkpoint,
        })
    }
}

/// Makes proofs for entries of one tree, and reads each tile once for all of them.
pub struct Proofs<'a> {
    prover: Prover<Tiles<'a>>,
    checkpoint: SignedCheckpoint,
}

impl Proofs<'_> {
    /// The proof of an entry: a file of c2sp.org/tlog-proof whose extra data is the salt.
    pub fn prove(&mut self, sequence: u64, entry: &EntryRecord) -> Result<String, Error> {
        let index = sequence.saturating_sub(1);
        let proof = ProofFile {
            extra: entry.salt.clone(),
            index,
            proof: self.prover.inclusion(index).map_err(unread)?,
            checkpoint: self.checkpoint.clone(),
        };
        Ok(proof.to_string())
    }
}

/// The stored tiles of a tenant's tree. A partial one may be wider than asked.
pub struct Tiles<'a> {
    /// What is stored.
    pub store: &'a dyn Store,
    /// Whose tree.
    pub tenant: Tenant,
}

impl TileReader for Tiles<'_> {
    type Error = Error;

    fn read(&self, tile: Tile) -> Result<Option<Vec<u8>>, Error> {
        let found = self.store.get(&tile_slot(&self.tenant, tile))?;
        Ok(found.map(|bytes| bytes.to_vec()))
    }
}

/// The entries that a group adds, by tenant.
#[derive(Default)]
pub struct Growth {
    /// A log that cannot go on is not tried again for the rest of the group.
    logs: BTreeMap<Tenant, Result<Added, Error>>,
}

struct Added {
    stored: Option<Tree>,
    leaves: Vec<[u8; leaf::LEAF_BYTES]>,
}

impl Added {
    fn size(&self) -> u64 {
        self.stored.as_ref().map_or(0, Tree::size) + self.leaves.len() as u64
    }
}

impl Growth {
    /// How many entries a tenant's log has by now.
    ///
    /// The stored ones are pinned first. A store is so never more than one group ahead of a pin, and of
    /// two stores on copies of the same data one stops before it writes.
    pub fn size(&mut self, kept: &Kept, store: &dyn Store, tenant: &Tenant) -> Result<u64, Error> {
        let log = self.logs.entry(tenant.clone()).or_insert_with(|| {
            Ok(Added {
                stored: kept.cover(store, tenant)?,
                leaves: Vec::new(),
            })
        });
        log.as_ref().map(Added::size).map_err(Error::clone)
    }

    /// Adds an entry behind the others; the tenant's size was asked for before.
    pub fn push(&mut self, tenant: &Tenant, leaf: [u8; leaf::LEAF_BYTES]) {
        if let Some(Ok(added)) = self.logs.get_mut(tenant) {
            added.leaves.push(leaf);
        }
    }

    /// The trees with these entries, and their records.
    pub fn grow(
        self,
        key: &LogKey,
        changes: &mut BTreeMap<Slot, Option<Vec<u8>>>,
    ) -> Result<BTreeMap<Tenant, Tree>, Error> {
        let grown = self
            .logs
            .into_iter()
            .filter_map(|(tenant, log)| Some((tenant, log.ok()?)))
            .filter(|(_, added)| !added.leaves.is_empty());
        let trees = grown.map(|(tenant, added)| {
            let tree = Tree::grow(added.stored, &added.leaves, key, &tenant, changes)?;
            Ok((tenant, tree))
        });
        trees.collect()
    }
}

pub(crate) fn log_record(store: &dyn Store, tenant: &Tenant) -> Result<Option<LogRecord>, Error> {
    let record = store.get(&Slot::Log(tenant.clone()))?;
    record.map(|record| records::decode(&record)).transpose()
}

fn tile_slot(tenant: &Tenant, tile: Tile) -> Slot {
    Slot::Tile(tenant.clone(), tile.level(), tile.index())
}

fn unread(error: ReadError<Error>) -> Error {
    match error {
        ReadError::Read(error) => error,
        ReadError::Refused(_) => Error::Corrupt("the tiles do not lead to the checkpoint"),
    }
}
