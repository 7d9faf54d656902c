//! A transparency log as a pure library.
#![warn(missing_docs)]

mod edge;
mod entry;
mod error;
mod hash;
mod merkle;
mod prover;
mod reader;
mod subtree;
mod text;
mod tile;

pub use edge::{Appended, Edge};
pub use entry::{Entry, MAX_ENTRY_BYTES};
pub use error::{Error, Form, ReadError};
pub use hash::{HASH_BYTES, Hash};
pub use merkle::{verify_consistency, verify_inclusion};
pub use prover::Prover;
pub use reader::TileReader;
pub use tile::{TILE_WIDTH, Tile, TilePath};
