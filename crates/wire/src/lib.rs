//! The gRPC contract of Context Layer: messages, clients and servers made from `proto/`, and the
//! one form that errors have on the wire.
//!
//! The code in `src/gen` is committed, so that a build needs neither protoc nor a build script;
//! `scripts/generate` remakes it. Nothing here decides anything: signed documents are bytes, and
//! names, times and digests are text until the receiver parses them.
//!
//! Messages that carry documents or signatures show only their length in `Debug`; those of the vault
//! and of the semantic proxy, and those about people who approve, show no text at all.

pub mod field_path;
pub mod grant;
pub mod status;
pub mod time;
pub mod unconfirmed;

/// Declares version 1 of a package from its generated file.
macro_rules! package_v1 {
    ($package:literal) => {
        #[doc = concat!("Package `", $package, "`.")]
        #[allow(
            unused_qualifications,
            clippy::all,
            clippy::allow_attributes_without_reason,
            reason = "generated code, in the style of its generators"
        )]
        pub mod v1 {
            include!(concat!("gen/", $package, ".rs"));
        }
    };
}

/// Bundles: served by the bundle issuer.
pub mod bundle {
    package_v1!("contextlayer.bundle.v1");
}

/// The exchange, for requesters outside: served by the gateway.
pub mod exchange {
    package_v1!("contextlayer.exchange.v1");
}

/// Decisions, policy snapshots, grants and people's approvals: served by the policy engine.
pub mod policy {
    package_v1!("contextlayer.policy.v1");
}

/// Evidence: served by the receipt store.
pub mod receipt {
    package_v1!("contextlayer.receipt.v1");
}

/// Least-context projection: served by the semantic proxy.
pub mod semantic {
    package_v1!("contextlayer.semantic.v1");
}

/// Private sources and claims: served by the vault.
pub mod vault {
    package_v1!("contextlayer.vault.v1");
}

/// All packages and what they import, as an encoded `google.protobuf.FileDescriptorSet`: what
/// server reflection answers from.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("gen/descriptor.bin");

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use prost_types::FileDescriptorSet;

    use super::*;

    #[test]
    fn descriptor_set_names_every_service() {
        let files = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).unwrap();
        let mut described: Vec<String> = files
            .file
            .iter()
            .flat_map(|file| {
                let services = file.service.iter();
                services.map(|service| format!("{}.{}", file.package(), service.name()))
            })
            .collect();
        described.sort();

        let served = [
            bundle::v1::bundle_service_server::SERVICE_NAME,
            exchange::v1::exchange_service_server::SERVICE_NAME,
            policy::v1::approval_service_server::SERVICE_NAME,
            policy::v1::approver_admin_service_server::SERVICE_NAME,
            policy::v1::policy_admin_service_server::SERVICE_NAME,
            policy::v1::policy_service_server::SERVICE_NAME,
            receipt::v1::receipt_admin_service_server::SERVICE_NAME,
            receipt::v1::receipt_service_server::SERVICE_NAME,
            semantic::v1::semantic_proxy_service_server::SERVICE_NAME,
            vault::v1::capture_service_server::SERVICE_NAME,
            vault::v1::memory_service_server::SERVICE_NAME,
            vault::v1::owner_service_server::SERVICE_NAME,
            vault::v1::vault_service_server::SERVICE_NAME,
        ];
        assert_eq!(described, served);
    }

    #[test]
    fn descriptor_set_holds_its_imports() {
        let files = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).unwrap();
        let names: Vec<&str> = files.file.iter().map(|file| file.name()).collect();
        for dependency in files.file.iter().flat_map(|file| &file.dependency) {
            assert!(
                names.contains(&dependency.as_str()),
                "{dependency} is missing"
            );
        }
    }

    #[test]
    fn debug_hides_documents() {
        let document = b"{\"secret\":1}".to_vec();
        let shown = [
            format!(
                "{:?}",
                policy::v1::SubmitRequestRequest {
                    request: document.clone(),
                    ..Default::default()
                }
            ),
            format!(
                "{:?}",
                receipt::v1::AppendRequest {
                    body: Some(receipt::v1::append_request::Body::Members(document.clone())),
                    ..Default::default()
                }
            ),
            format!(
                "{:?}",
                policy::v1::SubmitRequestResponse {
                    status: Some(policy::v1::RequestStatus {
                        decision: document.clone(),
                        ..Default::default()
                    }),
                }
            ),
        ];
        let mail = format!(
            "{:?}",
            vault::v1::CapturedItem {
                event: document.clone(),
                content: Some(vault::v1::captured_item::Content::Mail(
                    vault::v1::MailContent {
                        subject_line: "a secret".to_owned(),
                        ..Default::default()
                    }
                )),
                ..Default::default()
            }
        );
        assert!(
            mail.contains("8 bytes") && !mail.contains("secret"),
            "{mail}"
        );
        for shown in shown {
            assert!(shown.contains("12 bytes"), "{shown}");
            assert!(!shown.contains(&format!("{document:?}")), "{shown}");
            assert!(!shown.contains("secret"), "{shown}");
        }
    }

    #[test]
    fn unknown_enum_values_are_kept_apart_from_known_ones() {
        let status = exchange::v1::RequestStatus {
            state: 99,
            ..Default::default()
        };
        let read = exchange::v1::RequestStatus::decode(&*status.encode_to_vec()).unwrap();
        assert_eq!(read.state, 99);
        assert!(exchange::v1::RequestState::try_from(read.state).is_err());
    }
}
