//! Where tiles are read from.

use crate::error::{Error, ReadError};
use crate::subtree::Subtree;
use crate::tile::Tile;

/// Reads the bytes of tiles from wherever they are. Nothing that it gives is believed. A closure is
/// a reader.
///
/// A caller whose reads are asynchronous answers from the tiles it has fetched so far, fetches the
/// one that [`Error::TileMissing`] names, and asks again.
pub trait TileReader {
    /// Why a read failed.
    type Error;

    /// The hashes of a tile in a row; `None` when it is not there, upon which the full tile is asked
    /// for. A wider tile may be given for a partial one.
    fn read(&self, tile: Tile) -> Result<Option<Vec<u8>>, Self::Error>;
}

impl<F, E> TileReader for F
where
    F: Fn(Tile) -> Result<Option<Vec<u8>>, E>,
{
    type Error = E;

    fn read(&self, tile: Tile) -> Result<Option<Vec<u8>>, E> {
        self(tile)
    }
}

/// Reads a tile, or the beginning of the full one where the partial one is gone.
pub(crate) fn read<R: TileReader>(reader: &R, tile: Tile) -> Result<Subtree, ReadError<R::Error>> {
    let mut bytes = reader.read(tile).map_err(ReadError::Read)?;
    if bytes.is_none() && !tile.is_full() {
        bytes = reader.read(tile.full()).map_err(ReadError::Read)?;
    }
    let bytes = bytes.ok_or(Error::TileMissing(tile))?;
    Ok(Subtree::parse(tile, &bytes)?)
}
