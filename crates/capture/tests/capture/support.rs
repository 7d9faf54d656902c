//! A vault on a free port, and runs against it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cl_capture::config::vault_channel;
use cl_capture::error::Error;
use cl_capture::job::Job;
use cl_capture::pipeline::{self, Deps};
use cl_capture::report::Report;
use cl_capture::source::{Adapter, Seen};
use cl_capture::vault::Vault;
use cl_host::clock::ManualClock;
use cl_host::ids::SeededIds;
use cl_testbed::{Authority, HANG, Serving};
use cl_wire::vault::v1::capture_service_server::CaptureServiceServer;
use tonic::service::Routes;

use crate::vault::FakeVault;

/// The instant of every run: 1 December 2026, weeks after the fixtures.
const NOW_MS: i64 = 1_796_083_200_000;

pub(crate) const SUBJECT: &str = "vault://subjects/primary";

pub(crate) const OWNER: &str = "mira@solberg.example";

/// A vault that serves, and the authority of its deployment.
pub(crate) struct World {
    pub(crate) authority: Authority,
    pub(crate) vault: FakeVault,
    pub(crate) addr: SocketAddr,
    _serving: Serving,
}

impl World {
    pub(crate) async fn new() -> Self {
        let authority = Authority::new();
        let vault = FakeVault::default();
        let service = CaptureServiceServer::new(vault.clone()).max_decoding_message_size(4 << 20);
        let serving = Serving::peer(
            &authority,
            "vault/cl-vault",
            Routes::new(service),
            &[
                "/contextlayer.vault.v1.CaptureService/CaptureEvents",
                "/contextlayer.vault.v1.CaptureService/StorePayload",
            ],
            "vault/cl-capture",
        );
        let serving = serving.await;
        Self {
            authority,
            vault,
            addr: serving.addr,
            _serving: serving,
        }
    }

    pub(crate) async fn run(&self, path: &Path) -> Result<Report, Error> {
        self.run_as(path, "vault/cl-capture", HANG).await
    }

    pub(crate) async fn run_calendar(&self, path: &Path) -> Result<Report, Error> {
        let adapter = Adapter::Calendar;
        self.run_adapter(path, adapter, "vault/cl-capture", HANG)
            .await
    }

    pub(crate) async fn run_as(
        &self,
        path: &Path,
        who: &str,
        patience: Duration,
    ) -> Result<Report, Error> {
        self.run_adapter(path, Adapter::Mail, who, patience).await
    }

    async fn run_adapter(
        &self,
        path: &Path,
        adapter: Adapter,
        who: &str,
        patience: Duration,
    ) -> Result<Report, Error> {
        let channel =
            vault_channel(self.addr.to_string(), self.authority.credentials(who)).unwrap();
        let clock = Arc::new(ManualClock::new(NOW_MS));
        let ids = Arc::new(SeededIds::new(7, clock.clone()));
        let deps = Deps {
            vault: Vault::new(channel, ids.clone(), patience),
            clock,
            ids,
        };
        let job = Job {
            path: path.to_owned(),
            adapter,
            tenant: "acme".to_owned(),
            subject_ref: SUBJECT.to_owned(),
            owner_addresses: vec![OWNER.to_owned()],
            max_message_bytes: 4 << 20,
        };
        let mut silent = |_: &Report| {};
        let seen = Arc::new(Mutex::new(Seen::nothing()));
        let run = pipeline::run(&job, &deps, &seen, &mut silent);
        tokio::time::timeout(HANG, run).await.expect("hangs: a run")
    }
}

/// The folder of the committed messages.
pub(crate) fn fixtures() -> PathBuf {
    fixtures_of("mail")
}

/// The folder of the fixtures of an adapter.
pub(crate) fn fixtures_of(adapter: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../conformance/fixtures")
        .join(adapter)
}
