//! Which crate may depend on which: the crate graph is the architecture.

#![allow(clippy::expect_used, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet, HashMap};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, PackageId};

/// The workspace crates that each may depend on. A crate that is missing here fails the test.
const MAY_DEPEND_ON: &[(&str, &[&str])] = &[
    ("cl-authenticator", &[]),
    ("cl-browser", &[]),
    ("cl-console", &["cl-host", "cl-model", "cl-tlog", "cl-wire"]),
    ("cl-model", &[]),
    ("cl-kv", &[]),
    ("cl-pki", &[]),
    ("cl-tlog", &[]),
    ("cl-capture", &["cl-host", "cl-model", "cl-wire"]),
    ("cl-extract", &["cl-model"]),
    ("cl-wire", &["cl-model"]),
    ("cl-host", &["cl-model"]),
    (
        "cl-bundle-issuer",
        &["cl-host", "cl-kv", "cl-model", "cl-wire"],
    ),
    ("cl-policy-cedar", &["cl-model"]),
    (
        "cl-policy-engine",
        &["cl-host", "cl-kv", "cl-model", "cl-policy-cedar", "cl-wire"],
    ),
    ("cl-gateway", &["cl-host", "cl-kv", "cl-model", "cl-wire"]),
    (
        "cl-receipt-store",
        &["cl-host", "cl-kv", "cl-model", "cl-tlog", "cl-wire"],
    ),
    (
        "cl-clctl",
        &[
            "cl-host",
            "cl-model",
            "cl-pki",
            "cl-policy-cedar",
            "cl-sdk",
            "cl-tlog",
            "cl-wire",
        ],
    ),
    ("cl-sdk", &["cl-model", "cl-wire"]),
    ("cl-testbed", &["cl-host", "cl-model", "cl-pki", "cl-wire"]),
    ("cl-semantic-proxy", &["cl-host", "cl-model", "cl-wire"]),
    (
        "cl-vault",
        &["cl-extract", "cl-host", "cl-kv", "cl-model", "cl-wire"],
    ),
    ("cl-conformance", &["cl-model"]),
];

/// Packages that must not be in the graph at all: `ring` is the one provider of cryptography.
const BANNED: &[&str] = &[
    "aws-lc-rs",
    "aws-lc-sys",
    "native-tls",
    "openssl",
    "openssl-sys",
];

/// Libraries without a runtime, clock or network.
const PURE: &[&str] = &["cl-extract", "cl-model", "cl-policy-cedar", "cl-tlog"];

/// Packages that a pure library must not reach, however indirectly.
const IMPURE: &[&str] = &["hyper", "mio", "prost", "tokio", "tonic", "tracing"];

/// The platform of `deny.toml`.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// Heavy libraries, and the one crate that each may be used by.
const WRAPPED: &[(&str, &str)] = &[("cedar-policy", "cl-policy-cedar"), ("rocksdb", "cl-kv")];

fn metadata() -> Metadata {
    MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .other_options(["--locked", "--offline", "--filter-platform", PLATFORM].map(str::to_owned))
        .exec()
        .expect("cargo metadata")
}

/// The normal and build dependencies of every package in the resolved graph.
fn graph(metadata: &Metadata) -> HashMap<&PackageId, Vec<&PackageId>> {
    let nodes = &metadata.resolve.as_ref().expect("a resolved graph").nodes;
    nodes
        .iter()
        .map(|node| {
            let shipped = node.deps.iter().filter(|dependency| {
                let kinds = dependency.dep_kinds.iter();
                kinds
                    .map(|kind| kind.kind)
                    .any(|kind| kind != DependencyKind::Development)
            });
            (
                &node.id,
                shipped.map(|dependency| &dependency.pkg).collect(),
            )
        })
        .collect()
}

#[test]
fn workspace_crates_depend_only_downwards() {
    let metadata = metadata();
    let graph = graph(&metadata);
    let members: BTreeMap<_, _> = metadata
        .workspace_packages()
        .into_iter()
        .map(|package| (package.name.as_str(), &package.id))
        .collect();
    let allowed: BTreeMap<_, _> = MAY_DEPEND_ON.iter().copied().collect();
    assert_eq!(
        members.keys().collect::<Vec<_>>(),
        allowed.keys().collect::<Vec<_>>(),
        "every crate has its row"
    );
    for (name, id) in &members {
        for (other, other_id) in &members {
            let depends = graph[id].contains(other_id);
            assert!(
                !depends || allowed[name].contains(other),
                "{name} must not depend on {other}"
            );
        }
    }
}

#[test]
fn heavy_libraries_have_one_user() {
    let metadata = metadata();
    for (library, user) in WRAPPED {
        let users = metadata.workspace_packages().into_iter().filter(|package| {
            let mut dependencies = package.dependencies.iter();
            dependencies.any(|dependency| dependency.name == *library)
        });
        let users: Vec<&str> = users.map(|package| package.name.as_str()).collect();
        assert_eq!(users, [*user], "{library}");
    }
}

#[test]
fn no_second_cryptography_provider_comes_in() {
    let metadata = metadata();
    let names: BTreeSet<_> = metadata
        .packages
        .iter()
        .map(|package| package.name.as_str())
        .collect();
    for banned in BANNED {
        assert!(!names.contains(banned), "{banned} is in the graph");
    }
    assert!(names.contains("ring"));
}

#[test]
fn pure_crates_reach_no_runtime() {
    let metadata = metadata();
    let graph = graph(&metadata);
    let names: HashMap<_, _> = metadata
        .packages
        .iter()
        .map(|package| (&package.id, package.name.as_str()))
        .collect();
    for pure in PURE {
        let package = metadata
            .workspace_packages()
            .into_iter()
            .find(|package| package.name.as_str() == *pure)
            .expect("a pure crate");
        let mut reached = BTreeSet::new();
        let mut open = vec![&package.id];
        while let Some(id) = open.pop() {
            if reached.insert(names[id]) {
                open.extend(graph[id].iter().copied());
            }
        }
        assert!(reached.contains("ring"));
        for impure in IMPURE {
            assert!(!reached.contains(impure), "{pure} reaches {impure}");
        }
    }
}
