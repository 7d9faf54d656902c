//! The logs over HTTP, as tiles (c2sp.org/tlog-tiles): `GET /tlog/{tenant}/..`, read-only.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use cl_host::identity::PeerId;
use cl_tlog::{Entry, Tile, TilePath, TileReader as _};
use http::{HeaderName, HeaderValue, StatusCode, Uri, header};
use tonic::Status;

use crate::core::records::{self, EntryRecord};
use crate::core::routing::Tenant;
use crate::error::Error;
use crate::reader::Reader;
use crate::readers::ReadersFile;
use crate::store::Slot;

/// What all paths of the logs begin with.
pub const PREFIX: &str = "/tlog/";

const CHECKPOINT: &str = "checkpoint";
const CHECKPOINT_TYPE: &str = "text/plain; charset=utf-8";
const TILE_TYPE: &str = "application/octet-stream";

/// A checkpoint changes; a tile of a size never does.
const CHECKPOINT_CACHE: &str = "no-store";
const TILE_CACHE: &str = "private, max-age=31536000, immutable";

/// The routes of the logs.
pub fn routes(reader: Reader, readers: Arc<ReadersFile>) -> Router {
    Router::new()
        .route("/tlog/{*path}", get(read))
        .with_state(Logs {
            reader: Arc::new(reader),
            readers,
        })
}

/// The logs, and for whom they are there.
#[derive(Clone)]
struct Logs {
    reader: Arc<Reader>,
    readers: Arc<ReadersFile>,
}

/// The path counts as it was sent: another spelling of it names nothing. Nor does one of a tenant
/// whose log does not exist for the caller.
async fn read(
    State(Logs { reader, readers }): State<Logs>,
    peer: Option<Extension<PeerId>>,
    uri: Uri,
) -> Response {
    let readers = readers.current();
    let caller = peer.map(|Extension(peer)| peer.id);
    let Some(caller) = caller.filter(|caller| readers.has(caller)) else {
        // As for a caller that may not read anything at all.
        return Status::from(Error::NotReader).into_http();
    };
    let read = move || {
        let (tenant, path) = uri.path().strip_prefix(PREFIX)?.split_once('/')?;
        let tenant = Tenant::parse(tenant)?;
        let view = readers.view(&caller, &tenant)?;
        let is_shown = view.shows_log();
        is_shown.then(|| reader.file(&tenant, path).transpose())?
    };
    let found = tokio::task::spawn_blocking(move || read().transpose()).await;
    match found.unwrap_or(Err(Error::Internal("a read panicked"))) {
        Ok(Some(file)) => file.into_response(),
        Ok(None) => StatusCode::NOT_FOUND.into_response(),
        Err(error) => {
            error.log();
            let is_temporary = matches!(
                error,
                Error::Busy | Error::Unavailable(_) | Error::Unpinned(_) | Error::Uncosigned(_)
            );
            if is_temporary {
                StatusCode::SERVICE_UNAVAILABLE.into_response()
            } else {
                StatusCode::INTERNAL_SERVER_ERROR.into_response()
            }
        }
    }
}

/// A file of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum File {
    /// The newest checkpoint.
    Checkpoint(String),
    /// A tile, or the entries beside one.
    Tile(Vec<u8>),
}

impl IntoResponse for File {
    fn into_response(self) -> Response {
        let headers = |media_type, cache| -> [(HeaderName, HeaderValue); 2] {
            [
                (header::CONTENT_TYPE, HeaderValue::from_static(media_type)),
                (header::CACHE_CONTROL, HeaderValue::from_static(cache)),
            ]
        };
        match self {
            Self::Checkpoint(text) => {
                (headers(CHECKPOINT_TYPE, CHECKPOINT_CACHE), text).into_response()
            }
            Self::Tile(bytes) => (headers(TILE_TYPE, TILE_CACHE), bytes).into_response(),
        }
    }
}

impl Reader {
    /// A file of a tenant's log, by its path; none for a path in another spelling, a tile that the
    /// tree has not or not yet, and a tenant without a log.
    pub fn file(&self, tenant: &Tenant, path: &str) -> Result<Option<File>, Error> {
        let Some(tree) = self.kept.shown(&*self.store, tenant, 1)? else {
            return Ok(None);
        };
        if path == CHECKPOINT {
            return Ok(Some(File::Checkpoint(tree.published().to_string())));
        }
        let is_in_tree = |tile: Tile| {
            let newest = Tile::in_tree(tree.size(), tile.level(), tile.index());
            newest.is_some_and(|newest| tile.width() <= newest.width())
        };
        match TilePath::parse(path) {
            Some(TilePath::Hashes(tile)) if is_in_tree(tile) => {
                let stored = self.tiles(tenant).read(tile)?;
                let mut bytes = stored.ok_or(Error::Corrupt("a tile is missing"))?;
                bytes.truncate(usize::from(tile.width()) * cl_tlog::HASH_BYTES);
                Ok(Some(File::Tile(bytes)))
            }
            Some(TilePath::Entries(tile)) if is_in_tree(tile) => {
                Ok(Some(File::Tile(self.bundle(tenant, tile)?)))
            }
            Some(TilePath::Hashes(_) | TilePath::Entries(_)) | None => Ok(None),
        }
    }

    /// The entries beside a tile of level 0.
    fn bundle(&self, tenant: &Tenant, tile: Tile) -> Result<Vec<u8>, Error> {
        let first = tile.index() * u64::from(cl_tlog::TILE_WIDTH) + 1;
        let slots: Vec<_> = (first..first + u64::from(tile.width()))
            .map(|sequence| Slot::Entry(tenant.clone(), sequence))
            .collect();
        let stored = self.store.get_many(&slots)?.into_iter();
        let records = stored.map(|stored| {
            let stored = stored.ok_or(Error::Corrupt("an entry is missing"))?;
            records::decode::<EntryRecord>(&stored)
        });
        let records = records.collect::<Result<Vec<_>, _>>()?;
        let entries = records.iter().map(|record| Entry::new(&record.leaf));
        let bundle = entries
            .collect::<Result<Vec<_>, _>>()
            .and_then(|entries| Entry::write_bundle(&entries));
        bundle.map_err(|_| Error::Corrupt("a leaf is too long"))
    }
}
