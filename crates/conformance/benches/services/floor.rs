//! The primitives that operations are compared with, and engines that count and delay.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use cl_host::accept::{Acceptor, ConnectionLimits, Ending};
use cl_host::client::PeerChannel;
use cl_host::tls::Credentials;
use cl_kv::{Batch, Engine, Entry, Error, RocksEngine, Scan, Stored, Version, Write};
use cl_wire::policy::v1::policy_service_client::PolicyServiceClient;
use cl_wire::policy::v1::policy_service_server::{PolicyService, PolicyServiceServer};
use cl_wire::policy::v1::{
    GetRequestRequest, GetRequestResponse, RequestStatus, SubmitRequestRequest,
    SubmitRequestResponse, WatchRequestRequest, WatchRequestResponse,
};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tonic::service::Routes;
use tonic::{Request, Response, Status};

use crate::report::start;

/// The primitives of one operation.
pub(crate) trait Once: Clone + Send + 'static {
    /// Does them once, one after the other.
    fn once(&mut self) -> impl Future<Output = ()> + Send;
}

/// The times of this many clients, each of which does the primitives so often.
pub(crate) async fn turn(floor: &impl Once, clients: usize, times: usize) -> Vec<Duration> {
    let mut running = JoinSet::new();
    for _ in 0..clients {
        let mut floor = floor.clone();
        running.spawn(async move {
            let mut taken = Vec::with_capacity(times);
            for _ in 0..times {
                let start = start();
                floor.once().await;
                taken.push(start.elapsed());
            }
            taken
        });
    }
    running.join_all().await.concat()
}

/// A value of this many bytes that does not compress.
pub(crate) fn stored(bytes: usize) -> Stored {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let words = std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as u8
    });
    Stored {
        version: Version::new([1; 16]),
        value: words.take(bytes).collect(),
    }
}

/// RocksDB on a disk that takes longer for each sync.
pub(crate) struct Delayed {
    engine: RocksEngine,
    delay: Duration,
    /// Dropped behind the engine.
    open: Arc<Open>,
}

/// An engine that is open, for those who wait for its end.
pub(crate) struct Open;

impl Delayed {
    pub(crate) fn new(engine: RocksEngine, delay: Duration) -> Self {
        Self {
            engine,
            delay,
            open: Arc::new(Open),
        }
    }

    /// Nothing any more once the engine has let go of its folder.
    pub(crate) fn open(&self) -> Weak<Open> {
        Arc::downgrade(&self.open)
    }
}

impl Engine for Delayed {
    fn get(&self, key: &[u8]) -> Result<Option<Stored>, Error> {
        self.engine.get(key)
    }

    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Stored>>, Error> {
        self.engine.get_many(keys)
    }

    fn scan(&self, scan: &Scan) -> Result<Vec<Entry>, Error> {
        self.engine.scan(scan)
    }

    fn apply(&self, batch: Batch) -> Result<(), Error> {
        self.apply_many(vec![batch]).into_iter().collect()
    }

    fn apply_many(&self, batches: Vec<Batch>) -> Vec<Result<(), Error>> {
        let is_synced = batches.iter().any(Batch::is_synced);
        let results = self.engine.apply_many(batches);
        if is_synced && !self.delay.is_zero() {
            thread::sleep(self.delay);
        }
        results
    }

    fn purge(&self) -> Result<(), Error> {
        self.engine.purge()
    }
}

/// Synced batches, and the bytes in them.
#[derive(Debug, Default)]
pub(crate) struct Count {
    batches: AtomicU64,
    bytes: AtomicU64,
}

impl Count {
    /// How many batches there were since the last call, and their mean size.
    pub(crate) fn take(&self) -> (u64, usize) {
        let batches = self.batches.swap(0, Ordering::Relaxed);
        let bytes = self.bytes.swap(0, Ordering::Relaxed);
        let mean = bytes.checked_div(batches).unwrap_or_default();
        (batches, usize::try_from(mean).expect("small"))
    }
}

/// RocksDB that counts its synced batches.
pub(crate) struct Counted {
    engine: RocksEngine,
    count: Arc<Count>,
}

impl Counted {
    pub(crate) fn new(engine: RocksEngine, count: Arc<Count>) -> Self {
        Self { engine, count }
    }
}

impl Engine for Counted {
    fn get(&self, key: &[u8]) -> Result<Option<Stored>, Error> {
        self.engine.get(key)
    }

    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Stored>>, Error> {
        self.engine.get_many(keys)
    }

    fn scan(&self, scan: &Scan) -> Result<Vec<Entry>, Error> {
        self.engine.scan(scan)
    }

    fn apply(&self, batch: Batch) -> Result<(), Error> {
        self.apply_many(vec![batch]).into_iter().collect()
    }

    fn apply_many(&self, batches: Vec<Batch>) -> Vec<Result<(), Error>> {
        for batch in batches.iter().filter(|batch| batch.is_synced()) {
            self.count.batches.fetch_add(1, Ordering::Relaxed);
            let bytes = batch.writes().iter().map(written_bytes).sum::<usize>();
            self.count.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        }
        self.engine.apply_many(batches)
    }

    fn purge(&self) -> Result<(), Error> {
        self.engine.purge()
    }
}

fn written_bytes(write: &Write) -> usize {
    match write {
        Write::Put { key, stored } => key.len() + Version::BYTES + stored.value.len(),
        Write::Delete { key } => key.len(),
    }
}

/// The sizes of one call's messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) request: usize,
    pub(crate) answer: usize,
}

/// A call over mutual TLS to a server that does nothing, behind no layer of ours.
#[derive(Clone)]
pub(crate) struct Hop {
    client: PolicyServiceClient<PeerChannel>,
    request: SubmitRequestRequest,
}

impl Hop {
    /// Starts a server that answers with so many bytes, and a client of it.
    pub(crate) async fn start(
        sizes: Sizes,
        server: Arc<Credentials>,
        channel: impl FnOnce(u16) -> PeerChannel,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let service = PolicyServiceServer::new(Nothing {
            answer: vec![7; sizes.answer],
        });
        let acceptor = Acceptor::mutual_tls(server, ConnectionLimits::default(), Ending::default());
        tokio::spawn(acceptor.serve(listener, Routes::new(service).prepare()));
        Self {
            client: PolicyServiceClient::new(channel(port)),
            request: SubmitRequestRequest {
                request: vec![7; sizes.request],
                ..SubmitRequestRequest::default()
            },
        }
    }

    pub(crate) async fn call(&mut self) {
        let answer = self.client.submit_request(self.request.clone()).await;
        answer.expect("an answer");
    }
}

struct Nothing {
    answer: Vec<u8>,
}

#[tonic::async_trait]
impl PolicyService for Nothing {
    async fn submit_request(
        &self,
        _: Request<SubmitRequestRequest>,
    ) -> Result<Response<SubmitRequestResponse>, Status> {
        Ok(Response::new(SubmitRequestResponse {
            status: Some(RequestStatus {
                decision: self.answer.clone(),
                ..RequestStatus::default()
            }),
        }))
    }

    async fn get_request(
        &self,
        _: Request<GetRequestRequest>,
    ) -> Result<Response<GetRequestResponse>, Status> {
        Err(Status::unimplemented("no part of the floor"))
    }

    type WatchRequestStream = tokio_stream::Empty<Result<WatchRequestResponse, Status>>;

    async fn watch_request(
        &self,
        _: Request<WatchRequestRequest>,
    ) -> Result<Response<Self::WatchRequestStream>, Status> {
        Err(Status::unimplemented("no part of the floor"))
    }
}

/// RocksDB, written to without sealing and without preconditions.
#[derive(Clone)]
pub(crate) struct Plain {
    engine: Arc<RocksEngine>,
    writes: usize,
    record: Stored,
    next_key: Arc<AtomicU64>,
}

impl Plain {
    pub(crate) fn open(path: &Path, writes: usize, bytes: usize) -> Self {
        Self {
            engine: Arc::new(RocksEngine::open(path).expect("a store")),
            writes,
            record: stored(bytes),
            next_key: Arc::default(),
        }
    }

    /// The synced writes of one call, each of which may block its thread.
    pub(crate) async fn write(&self) {
        for _ in 0..self.writes {
            let engine = Arc::clone(&self.engine);
            let key = self.next_key.fetch_add(1, Ordering::Relaxed);
            let batch = Batch::new().put(key.to_be_bytes(), self.record.clone());
            let written = tokio::task::spawn_blocking(move || engine.apply(batch));
            written.await.expect("no panic").expect("written");
        }
    }
}

/// A file whose bytes are overwritten where they are.
#[derive(Clone)]
pub(crate) struct Overwritten(Arc<File>);

impl Overwritten {
    const BYTES: [u8; 4096] = [7; 4096];

    pub(crate) fn create(path: &Path) -> Self {
        let file = File::create(path).expect("a file");
        file.write_all_at(&Self::BYTES, 0).expect("written");
        file.sync_all().expect("on the disk");
        Self(Arc::new(file))
    }

    /// One overwriting with its sync, which may block its thread.
    pub(crate) async fn write(&self) {
        let file = Arc::clone(&self.0);
        let written = tokio::task::spawn_blocking(move || {
            file.write_all_at(&Self::BYTES, 0)?;
            file.sync_data()
        });
        written.await.expect("no panic").expect("written");
    }
}
