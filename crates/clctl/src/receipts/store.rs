//! A tenant's log as the receipt store serves it.

use std::collections::VecDeque;

use cl_host::client::PeerChannel;
use cl_wire::receipt::v1::{ListReceiptsRequest, RecordedReceipt};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use tonic::body::Body;
use tower::ServiceExt;

use super::fault::{Place, Why};
use super::kept::Kept;
use super::source::{Given, MAX_FILE_BYTES};
use crate::error::Error;
use crate::peers::{self, Receipts};
use crate::processes::RECEIPT_STORE;
use crate::session::Session;

const PAGE_SIZE: u32 = 1000;

/// Pages of receipts that match a request.
#[derive(Debug)]
pub(crate) struct Pages {
    client: Receipts,
    request: ListReceiptsRequest,
    is_last: bool,
    /// How many match on all pages, as the last page said.
    pub(crate) total: u64,
}

impl Pages {
    pub(crate) fn new(client: Receipts, request: ListReceiptsRequest) -> Self {
        Self {
            client,
            request: ListReceiptsRequest {
                page_size: PAGE_SIZE,
                ..request
            },
            is_last: false,
            total: 0,
        }
    }

    /// The next page; none behind the last one.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<RecordedReceipt>>, Error> {
        if self.is_last {
            return Ok(None);
        }
        let page = self.client.list_receipts(self.request.clone()).await;
        let page = page.map_err(|status| Error::of_status(RECEIPT_STORE.name, &status))?;
        let page = page.into_inner();
        self.is_last = page.next_page_token.is_empty();
        self.request.page_token = page.next_page_token;
        self.total = page.total_size;
        Ok(Some(page.receipts))
    }
}

/// The log of a tenant: its files over HTTP, its receipts in pages.
#[derive(Debug)]
pub(crate) struct StoreLog {
    channel: PeerChannel,
    tenant: String,
    pages: Pages,
    /// Receipts that came with a page and were not asked for yet; the first has this sequence.
    pending: VecDeque<RecordedReceipt>,
    next_sequence: u64,
}

impl StoreLog {
    pub(crate) fn open(session: &Session, tenant: &str) -> Result<Self, Error> {
        let channel = peers::receipt_store(session)?;
        let request = ListReceiptsRequest {
            tenant: tenant.to_owned(),
            ..ListReceiptsRequest::default()
        };
        Ok(Self {
            pages: Pages::new(Receipts::new(channel.clone()), request),
            channel,
            tenant: tenant.to_owned(),
            pending: VecDeque::new(),
            next_sequence: 1,
        })
    }

    /// A file of the log by its path.
    pub(crate) async fn file(&self, path: &str) -> Result<Option<Vec<u8>>, Error> {
        let peer = RECEIPT_STORE.name;
        let request = Request::get(format!("/tlog/{}/{path}", self.tenant));
        let request = request
            .body(Body::empty())
            .map_err(|_| Error::Answer { peer })?;
        let answer = self.channel.clone().oneshot(request).await;
        let answer = answer.map_err(|status| Error::of_status(peer, &status))?;
        match answer.status() {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND => return Ok(None),
            StatusCode::SERVICE_UNAVAILABLE => return Err(Error::Unreachable { peer }),
            _ => return Err(Error::Answer { peer }),
        }
        let body = Limited::new(answer.into_body(), MAX_FILE_BYTES);
        let body = body.collect().await.map_err(|_| Error::Answer { peer })?;
        Ok(Some(body.to_bytes().to_vec()))
    }

    pub(crate) async fn receipts(&mut self, count: usize) -> Result<Vec<Given>, Error> {
        while self.pending.len() < count {
            match self.pages.next().await? {
                Some(page) => self.pending.extend(page),
                None => break,
            }
        }
        let count = count.min(self.pending.len());
        let mut given = Vec::new();
        for recorded in self.pending.drain(..count) {
            let place = Place::Entry(self.next_sequence);
            let recorded = Kept::of_store(recorded);
            given.push((recorded.ok_or_else(|| place.is(Why::LineMalformed))?, None));
            self.next_sequence += 1;
        }
        Ok(given)
    }
}
