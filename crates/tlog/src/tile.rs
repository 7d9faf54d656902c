//! Tiles: where they are in a tree, and their paths (c2sp.org/tlog-tiles).

use std::fmt;

/// Hashes of a full tile, and entries of a full bundle.
pub const TILE_WIDTH: u16 = 256;

/// The height of a tile: the binary levels of the tree that one level of tiles spans.
pub(crate) const TILE_HEIGHT: u32 = 8;

const MAX_LEVEL: u8 = 63;

/// One tile: its level, its index in the level, and how many hashes it holds. The entry bundle
/// beside a tile of level 0 has the same index and width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tile {
    level: u8,
    index: u64,
    width: u16,
}

impl Tile {
    /// A tile of level 0..=63, index below 2^56 and width 1..=256.
    pub fn new(level: u8, index: u64, width: u16) -> Option<Self> {
        let fits = level <= MAX_LEVEL
            && index >> (u64::BITS - TILE_HEIGHT) == 0
            && (1..=TILE_WIDTH).contains(&width);
        fits.then_some(Self {
            level,
            index,
            width,
        })
    }

    /// The tile of this level and index in a tree of `size` leaves, as wide as it is there.
    pub fn in_tree(size: u64, level: u8, index: u64) -> Option<Self> {
        let hashes =
            hashes_of_level(size, level).checked_sub(index.checked_mul(TILE_WIDTH.into())?)?;
        let width = hashes.min(TILE_WIDTH.into());
        Self::new(level, index, u16::try_from(width).ok()?)
    }

    /// Every tile of a tree of `size` leaves: by level, then by index.
    pub fn all_of(size: u64) -> impl Iterator<Item = Self> {
        (0..=MAX_LEVEL).flat_map(move |level| {
            let tiles = hashes_of_level(size, level).div_ceil(TILE_WIDTH.into());
            (0..tiles).filter_map(move |index| Self::in_tree(size, level, index))
        })
    }

    /// The partial tiles of a tree of `size` leaves, by level: its right edge.
    pub fn edge_of(size: u64) -> impl Iterator<Item = Self> {
        (0..=MAX_LEVEL).filter_map(move |level| Self::in_tree(size, level, full_tiles(size, level)))
    }

    /// The level; level 0 holds leaf hashes.
    pub const fn level(self) -> u8 {
        self.level
    }

    /// The index in the level.
    pub const fn index(self) -> u64 {
        self.index
    }

    /// How many hashes it holds.
    pub const fn width(self) -> u16 {
        self.width
    }

    /// Whether it holds 256 hashes.
    pub const fn is_full(self) -> bool {
        self.width == TILE_WIDTH
    }

    /// The same tile once it is full.
    #[must_use]
    pub const fn full(self) -> Self {
        Self {
            width: TILE_WIDTH,
            ..self
        }
    }
}

impl fmt::Display for Tile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&TilePath::Hashes(*self), formatter)
    }
}

/// How many hashes a level of tiles has in a tree of `size` leaves.
fn hashes_of_level(size: u64, level: u8) -> u64 {
    size.checked_shr(TILE_HEIGHT * u32::from(level))
        .unwrap_or(0)
}

/// How many tiles of a level are full in a tree of `size` leaves: the index of the partial one.
pub(crate) fn full_tiles(size: u64, level: u8) -> u64 {
    hashes_of_level(size, level) / u64::from(TILE_WIDTH)
}

/// The path of a tile or of an entry bundle below the prefix of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TilePath {
    /// `tile/<L>/<N>[.p/<W>]`
    Hashes(Tile),
    /// `tile/entries/<N>[.p/<W>]`: the entries of a tile of level 0.
    Entries(Tile),
}

impl TilePath {
    /// Parses a path. Each has one spelling.
    pub fn parse(path: &str) -> Option<Self> {
        let (level, rest) = path.strip_prefix("tile/")?.split_once('/')?;
        let (index, width) = match rest.split_once(".p/") {
            Some((index, width)) => (index, width.parse().ok()?),
            None => (rest, TILE_WIDTH),
        };
        let mut number = 0_u64;
        for digits in index.split('/') {
            let digits: u64 = digits.strip_prefix('x').unwrap_or(digits).parse().ok()?;
            number = number.checked_mul(1000)?.checked_add(digits)?;
        }
        let parsed = if level == "entries" {
            Self::Entries(Tile::new(0, number, width)?)
        } else {
            Self::Hashes(Tile::new(level.parse().ok()?, number, width)?)
        };
        (parsed.to_string() == path).then_some(parsed)
    }
}

impl fmt::Display for TilePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tile = match self {
            Self::Hashes(tile) => {
                write!(formatter, "tile/{}/", tile.level)?;
                tile
            }
            Self::Entries(tile) => {
                formatter.write_str("tile/entries/")?;
                tile
            }
        };
        // An index below 2^56 has at most six groups of three digits.
        for group in (1..6).rev().map(|power| 1000_u64.pow(power)) {
            if tile.index >= group {
                write!(formatter, "x{:03}/", tile.index / group % 1000)?;
            }
        }
        write!(formatter, "{:03}", tile.index % 1000)?;
        if tile.is_full() {
            Ok(())
        } else {
            write!(formatter, ".p/{}", tile.width)
        }
    }
}
