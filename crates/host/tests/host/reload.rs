//! Certificates and authorities are replaced while calls go on.

use std::fs;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cl_host::accept::ConnectionLimits;
use cl_host::client::{PeerChannel, Retry, RetryBudget};
use cl_host::clock::SystemClock;
use cl_host::identity::PeerId;
use cl_host::ids::SystemIds;
use cl_host::status;
use cl_host::tls::{Credentials, Reloaded};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tonic::Status;
use tonic_health::pb::health_client::HealthClient;

use crate::peers::connect;
use crate::pki::{Authority, Folder, Issued};
use crate::support::{CLIENT, HANG, Running, SERVER, SERVER_ID, Start, asking, eventually, within};

/// Callers that never pause.
struct Load {
    workers: JoinSet<()>,
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    failed: Arc<Mutex<Vec<Status>>>,
}

impl Load {
    fn start(channel: &PeerChannel) -> Self {
        let mut load = Self {
            workers: JoinSet::new(),
            stop: Arc::default(),
            answered: Arc::default(),
            failed: Arc::default(),
        };
        for _ in 0..4 {
            let client = HealthClient::new(channel.clone());
            let (stop, answered) = (Arc::clone(&load.stop), Arc::clone(&load.answered));
            let failed = Arc::clone(&load.failed);
            load.workers.spawn(async move {
                let (retry, budget) = (Retry::default(), RetryBudget::default());
                let ids = SystemIds::new(Arc::new(SystemClock));
                while !stop.load(Ordering::SeqCst) {
                    let deadline = Instant::now() + HANG;
                    let call = retry.run(deadline, &budget, &ids, |_| {
                        let mut client = client.clone();
                        async move { client.check(asking("")).await }
                    });
                    match call.await {
                        Ok(_) => drop(answered.fetch_add(1, Ordering::SeqCst)),
                        Err(status) => failed.lock().unwrap().push(status),
                    }
                }
            });
        }
        load
    }

    /// Waits for many more answers.
    async fn goes_on(&self) {
        let enough = self.answered.load(Ordering::SeqCst) + 100;
        eventually("calls to go on", || {
            self.answered.load(Ordering::SeqCst) >= enough
        })
        .await;
    }

    async fn end(mut self) -> Vec<Status> {
        self.stop.store(true, Ordering::SeqCst);
        while let Some(worker) = within("a worker's end", self.workers.join_next()).await {
            worker.unwrap();
        }
        std::mem::take(&mut *self.failed.lock().unwrap())
    }
}

async fn serial_shown(addr: SocketAddr, own: &Credentials) -> String {
    let stream = connect(addr, own.client_config()).await.unwrap();
    let chain = stream.get_ref().1.peer_certificates().unwrap();
    PeerId::from_certificate(&chain[0]).unwrap().serial
}

/// Swaps the files of one process and waits until calls go on with them.
async fn swap(load: &Load, folder: &Folder, credentials: &Credentials, issued: &Issued) {
    folder.write(issued);
    assert_eq!(credentials.reload().unwrap(), Reloaded::Swapped);
    assert_eq!(credentials.own().serial, issued.serial);
    load.goes_on().await;
}

async fn trust(load: &Load, nodes: [(&Folder, &Credentials); 2], bundle: &str) {
    for (folder, credentials) in nodes {
        folder.write_trust(bundle);
        assert_eq!(credentials.reload().unwrap(), Reloaded::Swapped);
        load.goes_on().await;
    }
}

#[tokio::test]
async fn certificates_and_authorities_rotate_without_a_failed_call() {
    let (first, second) = (Authority::new("A"), Authority::new("B"));
    let server_folder = Folder::new(&first.issue(SERVER), &first.pem());
    let client_folder = Folder::new(&first.issue(CLIENT), &first.pem());
    let server_own = server_folder.load().unwrap();
    let client_own = client_folder.load().unwrap();
    let mut start = Start::new(Arc::clone(&server_own));
    start.limits = ConnectionLimits {
        max_age: Duration::from_millis(50),
        ..ConnectionLimits::default()
    };
    let server = start.run().await;
    let outdated = first.issue(CLIENT);
    let load = Load::start(&server.channel(Arc::clone(&client_own), SERVER_ID));
    load.goes_on().await;

    let renewed = first.issue(SERVER);
    swap(&load, &server_folder, &server_own, &renewed).await;
    assert_eq!(serial_shown(server.addr, &client_own).await, renewed.serial);
    let renewed = first.issue(CLIENT);
    swap(&load, &client_folder, &client_own, &renewed).await;
    seen_from(&server, &renewed).await;

    let nodes = [
        (&server_folder, &*server_own),
        (&client_folder, &*client_own),
    ];
    trust(&load, nodes, &(first.pem() + &second.pem())).await;
    let renewed = second.issue(SERVER);
    swap(&load, &server_folder, &server_own, &renewed).await;
    assert_eq!(serial_shown(server.addr, &client_own).await, renewed.serial);
    let renewed = second.issue(CLIENT);
    swap(&load, &client_folder, &client_own, &renewed).await;
    seen_from(&server, &renewed).await;
    trust(&load, nodes, &second.pem()).await;

    let failed = load.end().await;
    assert!(failed.is_empty(), "{failed:?}");

    // The first authority is gone for good.
    let outdated = Folder::new(&outdated, &second.pem()).load().unwrap();
    let status = server.client(outdated).check(asking("")).await.unwrap_err();
    assert_eq!(
        status::reason(&status).as_deref(),
        Some(status::OWN_CERTIFICATE_REFUSED)
    );
}

async fn seen_from(server: &Running, issued: &Issued) {
    eventually("the new certificate at the server", || {
        server.probe.last().peer.unwrap().serial == issued.serial
    })
    .await;
}

#[tokio::test]
async fn a_client_shows_its_new_certificate_with_the_next_call() {
    let authority = Authority::new("A");
    let server_own = crate::pki::credentials(&authority, SERVER);
    let server = Start::new(server_own).run().await;
    let folder = Folder::new(&authority.issue(CLIENT), &authority.pem());
    let own = folder.load().unwrap();
    let mut client = server.client(Arc::clone(&own));
    client.check(asking("")).await.unwrap();
    let mut stream = client.watch(asking("")).await.unwrap().into_inner();
    assert!(stream.message().await.unwrap().is_some());

    let renewed = authority.issue(CLIENT);
    folder.write(&renewed);
    own.reload().unwrap();
    client.check(asking("")).await.unwrap();
    assert_eq!(server.probe.last().peer.unwrap().serial, renewed.serial);
    // What runs on the old connection goes on.
    let quiet = tokio::time::timeout(Duration::from_millis(50), stream.message()).await;
    assert!(quiet.is_err(), "{quiet:?}");
}

#[tokio::test]
async fn broken_files_leave_the_old_certificates_in_use() {
    let authority = Authority::new("A");
    let issued = authority.issue(SERVER);
    let folder = Folder::new(&issued, &authority.pem());
    let own = folder.load().unwrap();
    let server = Start::new(Arc::clone(&own)).run().await;
    let client_own = crate::pki::credentials(&authority, CLIENT);

    let files = folder.files();
    let other_key = authority.issue(SERVER).key;
    let breakages: [&dyn Fn(); 5] = [
        &|| fs::write(&files.chain, "broken").unwrap(),
        &|| fs::write(&files.key, "broken").unwrap(),
        &|| fs::write(&files.key, &other_key).unwrap(),
        &|| folder.write_trust("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
        &|| fs::remove_file(&files.trust).unwrap(),
    ];
    for (done, breakage) in (1..).zip(breakages) {
        breakage();
        assert!(own.reload().is_err(), "breakage {done}");
        assert_eq!(own.failed_reloads(), done);
        assert_eq!(serial_shown(server.addr, &client_own).await, issued.serial);
        let mut client = server.client(Arc::clone(&client_own));
        within("a call", client.check(asking(""))).await.unwrap();
        folder.write(&issued);
        folder.write_trust(&authority.pem());
    }
    assert_eq!(own.reload().unwrap(), Reloaded::Unchanged);
    assert_eq!(own.generation(), 0);
}

#[tokio::test]
async fn the_watcher_notices_new_files_by_itself() {
    let authority = Authority::new("A");
    let folder = Folder::new(&authority.issue(SERVER), &authority.pem());
    let own = folder.load().unwrap();
    let mut start = Start::new(Arc::clone(&own));
    start.timings.reload_interval = Duration::from_millis(5);
    let server = start.run().await;
    let renewed = authority.issue(SERVER);
    folder.write(&renewed);
    eventually("the reload", || own.own().serial == renewed.serial).await;
    server.signals.send();
    server.ended().await.unwrap();
}
