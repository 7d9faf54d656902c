//! The rpc is closed to all but the bundle issuer.

use cl_testbed::{refusal, refused};
use cl_wire::semantic::v1::ProjectClaimsRequest;
use cl_wire::semantic::v1::semantic_proxy_service_client::SemanticProxyServiceClient;
use tonic::Code;

use crate::support::World;

#[tokio::test]
async fn refuses_the_wrong_caller() {
    let world = World::new().await;
    let running = world.start().await;
    for (path, expected) in [
        ("exchange/cl-bundle-issuer", "INVALID_FIELD"),
        ("exchange/cl-policy-engine", "CALLER_NOT_ALLOWED"),
        ("exchange/cl-semantic-proxy", "CALLER_NOT_ALLOWED"),
        ("edge/cl-gateway", "CALLER_NOT_ALLOWED"),
        ("edge/cl-bundle-issuer", "CALLER_NOT_ALLOWED"),
        ("vault/cl-vault", "CALLER_NOT_ALLOWED"),
        ("operator/ann", "CALLER_NOT_ALLOWED"),
        ("owner/acme", "CALLER_NOT_ALLOWED"),
        ("client/acme/agent", "CALLER_NOT_ALLOWED"),
    ] {
        let channel = running.serving.channel(world.authority.credentials(path));
        let mut proxy = SemanticProxyServiceClient::new(channel);
        let answer = proxy.project_claims(ProjectClaimsRequest::default()).await;
        let code = if expected == "INVALID_FIELD" {
            Code::InvalidArgument
        } else {
            Code::PermissionDenied
        };
        assert_eq!(refusal(answer), refused(code, expected), "{path}");
    }
    assert_eq!(world.vault.calls(), 0);
}
