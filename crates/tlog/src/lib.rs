//! A transparency log as a pure library.
//!
//! # Role
//!
//! An append-only list of entries that anyone can check: a Merkle tree (RFC 9162 section 2.1), served
//! as tiles (c2sp.org/tlog-tiles), whose size and root are signed in checkpoints
//! (c2sp.org/tlog-checkpoint) as notes (c2sp.org/signed-note) that witnesses can cosign
//! (c2sp.org/tlog-cosignature, c2sp.org/tlog-witness), as a policy asks (c2sp.org/tlog-policy). [`Edge`] appends, [`Prover`] proves from tiles,
//! [`ProofFile`] is verified offline (c2sp.org/tlog-proof). The crate has no clock, no I/O and no idea
//! of what an entry is.
//!
//! A log that appends: [`Edge::load`] at the start, which holds the stored tiles to the stored root;
//! then, for each commit, [`Edge::append`], [`Appended::tiles`] and the entries stored together with
//! the [`SignedCheckpoint`], and [`Appended::prover`] for the answers.
//!
//! # Holds
//!
//! Nothing. [`Ed25519Signer`] and [`Cosigner`] hold a private key for their owner; other keys come in
//! behind [`Signer`].
//!
//! # Trusts
//!
//! SHA-256 and the keys that a caller names. Not the tiles: what comes out of a [`Prover`] is proven to
//! be in the tree of its root. Not texts: each form has one spelling, a limit, and is refused otherwise.
//! A log that shows different trees to different people is noticed by comparing checkpoints, or by the
//! [`Witnesses`] that are asked for.
//!
//! # A compromise yields
//!
//! With the log's key: checkpoints of other trees, which contradict those that were signed before and
//! lack the cosignatures of honest witnesses.

#![warn(missing_docs)]

mod checkpoint;
mod cosignature;
mod edge;
mod entry;
mod error;
mod hash;
mod key;
mod merkle;
mod note;
mod policy;
mod proof;
mod prover;
mod reader;
mod subtree;
mod text;
mod tile;
mod witness;

pub use checkpoint::{Checkpoint, SignedCheckpoint, VerifiedCheckpoint};
pub use cosignature::{Cosignature, Cosigner, Witnesses};
pub use edge::{Appended, Edge};
pub use entry::{Entry, MAX_ENTRY_BYTES};
pub use error::{Error, Form, ReadError};
pub use hash::{HASH_BYTES, Hash};
pub use key::{Algorithm, Ed25519Signer, KeyId, KeyName, Signer, Verifier, VerifierKey};
pub use merkle::{verify_consistency, verify_inclusion};
pub use note::{MAX_NOTE_BYTES, MAX_SIGNATURES, Note, Signature};
pub use policy::{MAX_POLICY_BYTES, NamedWitness, Policy};
pub use proof::{MAX_PROOF_FILE_BYTES, ProofFile};
pub use prover::Prover;
pub use reader::TileReader;
pub use tile::{TILE_WIDTH, Tile, TilePath};
pub use witness::{AddCheckpoint, MAX_ADD_CHECKPOINT_BYTES, MAX_ANSWER_BYTES, WitnessAnswer};
