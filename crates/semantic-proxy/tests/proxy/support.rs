//! A deployment around one semantic proxy.

use std::sync::Arc;

use cl_host::client::PeerChannel;
use cl_host::clock::ManualClock;
use cl_host::ids::SystemIds;
use cl_host::life::{Shutdown, Tasks};
use cl_host::telemetry::Telemetry;
use cl_host::trust::Trust;
use cl_model::key::Seed;
use cl_model::vocabulary::Vocabulary;
use cl_semantic_proxy::Deps;
use cl_semantic_proxy::core::names::Names;
use cl_semantic_proxy::receipts::GrpcReceipts;
use cl_semantic_proxy::vault::GrpcVault;
use cl_testbed::{Authority, Serving, telemetry, within};
use cl_wire::policy::v1::Grant;
use cl_wire::receipt::v1::receipt_service_server::ReceiptServiceServer;
use cl_wire::semantic::v1::semantic_proxy_service_client::SemanticProxyServiceClient;
use cl_wire::semantic::v1::{ProjectClaimsRequest, ProjectClaimsResponse};
use cl_wire::vault::v1::vault_service_server::VaultServiceServer;
use tonic::Status;
use tonic::service::Routes;

use crate::exchange::{self, Exchange, NOW_MS, TENANT, bytes, operation};
use crate::fakes::{FakeReceipts, FakeVault};

const PROXY: &str = "exchange/cl-semantic-proxy";

pub(crate) struct World {
    pub(crate) authority: Authority,
    pub(crate) clock: ManualClock,
    pub(crate) vault: FakeVault,
    pub(crate) receipts: FakeReceipts,
    pub(crate) vault_server: Serving,
    pub(crate) receipt_server: Serving,
}

impl World {
    pub(crate) async fn new() -> Self {
        cl_testbed::subscribe("trace");
        let authority = Authority::new();
        let clock = ManualClock::new(NOW_MS);
        let vault = FakeVault::new(clock.clone());
        let receipts = FakeReceipts::new(clock.clone());
        let vault_server = Serving::peer(
            &authority,
            "vault/cl-vault",
            Routes::new(VaultServiceServer::new(vault.clone())),
            &["/contextlayer.vault.v1.VaultService/ResolveClaims"],
            PROXY,
        );
        let vault_server = vault_server.await;
        let receipt_server = Serving::peer(
            &authority,
            "exchange/cl-receipt-store",
            Routes::new(ReceiptServiceServer::new(receipts.clone())),
            &[
                "/contextlayer.receipt.v1.ReceiptService/Begin",
                "/contextlayer.receipt.v1.ReceiptService/Complete",
                "/contextlayer.receipt.v1.ReceiptService/ListOpen",
            ],
            PROXY,
        );
        let receipt_server = receipt_server.await;
        Self {
            authority,
            clock,
            vault,
            receipts,
            vault_server,
            receipt_server,
        }
    }

    pub(crate) async fn start(&self) -> Running {
        let credentials = self.authority.credentials(PROXY);
        let folder = tempfile::tempdir().unwrap();
        let trust = folder.path().join("trust.json");
        std::fs::write(&trust, exchange::trust_json()).unwrap();
        let shutdown = Shutdown::default();
        let tasks = Tasks::new(shutdown.clone());
        let telemetry = telemetry();
        let vault = self.vault_server.channel(Arc::clone(&credentials));
        let receipts = self.receipt_server.channel(Arc::clone(&credentials));
        let app = cl_semantic_proxy::app(Deps {
            vault: Arc::new(GrpcVault::new(vault)),
            receipts: Arc::new(GrpcReceipts::new(receipts)),
            trust: Trust::load(trust).unwrap(),
            vocabulary: Vocabulary::published().unwrap(),
            names: Names::new(&Seed::new(&[3; 32]).unwrap()),
            clock: Arc::new(self.clock.clone()),
            ids: Arc::new(SystemIds::new(Arc::new(self.clock.clone()))),
            own: credentials.own().id,
            meter: telemetry.meter(),
            shutdown: shutdown.clone(),
            tasks: tasks.clone(),
        });
        let serving = Serving::start(
            app.unwrap(),
            credentials,
            shutdown,
            tasks,
            telemetry.clone(),
        );
        let serving = serving.await;
        let issuer = self.authority.credentials("exchange/cl-bundle-issuer");
        Running {
            proxy: SemanticProxyServiceClient::new(serving.channel(issuer)),
            serving,
            telemetry,
        }
    }
}

pub(crate) struct Running {
    pub(crate) proxy: SemanticProxyServiceClient<PeerChannel>,
    pub(crate) serving: Serving,
    pub(crate) telemetry: Telemetry,
}

impl Running {
    pub(crate) async fn project(
        &self,
        exchange: &Exchange,
    ) -> Result<ProjectClaimsResponse, Status> {
        self.send(message(exchange, exchange.grant())).await
    }

    pub(crate) async fn send(
        &self,
        message: ProjectClaimsRequest,
    ) -> Result<ProjectClaimsResponse, Status> {
        let mut proxy = self.proxy.clone();
        let answer = within("a projection", proxy.project_claims(message)).await?;
        Ok(answer.into_inner())
    }
}

pub(crate) fn message(exchange: &Exchange, grant: Grant) -> ProjectClaimsRequest {
    ProjectClaimsRequest {
        tenant: TENANT.to_owned(),
        request: bytes(&exchange.request),
        grant: Some(grant),
        operation_id: operation(1),
    }
}
