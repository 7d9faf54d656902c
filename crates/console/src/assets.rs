//! What pages load beside themselves, under names that change with the content.

use std::sync::LazyLock;

use axum::body::Body;
use axum::response::Response;
use cl_model::digest::Digest;
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};

/// Where they are.
pub(crate) const FOLDER: &str = "/assets/";

/// Under another content is another name.
const KEEP: &str = "public, max-age=31536000, immutable";

const HASH_CHARS: usize = 16;

/// A file that the program carries.
pub(crate) struct Asset {
    path: String,
    media_type: &'static str,
    bytes: &'static [u8],
}

/// The one stylesheet.
pub(crate) static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    let text = include_str!("assets/console.css");
    Asset::new("console", "css", "text/css; charset=utf-8", text)
});

/// The one script.
pub(crate) static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    let text = include_str!("assets/console.js");
    Asset::new("console", "js", "text/javascript; charset=utf-8", text)
});

/// The icon in tabs.
pub(crate) static ICON: LazyLock<Asset> = LazyLock::new(|| {
    let text = include_str!("assets/icon.svg");
    Asset::new("icon", "svg", "image/svg+xml", text)
});

impl Asset {
    fn new(name: &str, ending: &str, media_type: &'static str, text: &'static str) -> Self {
        let digest = Digest::of_bytes(text.as_bytes()).to_hex();
        let hash = digest.get(..HASH_CHARS).unwrap_or_default();
        Self {
            path: format!("{FOLDER}{name}-{hash}.{ending}"),
            media_type,
            bytes: text.as_bytes(),
        }
    }

    /// Its address.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The asset at a path.
    pub(crate) fn find(path: &str) -> Option<&'static Self> {
        let all: [&'static Self; 3] = [&STYLE, &SCRIPT, &ICON];
        all.into_iter().find(|asset| asset.path == path)
    }

    pub(crate) fn answer(&self) -> Response {
        let mut response = Response::new(Body::from(self.bytes));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.media_type));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(KEEP));
        response
    }
}
