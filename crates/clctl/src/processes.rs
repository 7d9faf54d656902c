//! The processes of a local deployment. A new service is one row here.

use std::net::SocketAddr;

/// The first port of a local deployment.
pub(crate) const DEFAULT_BASE_PORT: u16 = 7400;

/// From a process's port to that of its health and metrics.
const ADMIN_OFFSET: u16 = 50;

/// The key of subject tags, which two processes share.
const SUBJECT_TAG_KEY: &str = "subject-tag.key";

/// How a process is named, found and started.
#[derive(Debug)]
pub(crate) struct Process {
    /// Its program, also the name of its files.
    pub(crate) name: &'static str,
    /// Its zone: the first part of the path of its SPIFFE id.
    zone: &'static str,
    /// Where its port lies after the first one.
    port_offset: u16,
    /// The processes that it cannot work without.
    pub(crate) needs: &'static [&'static Process],
    /// Its secrets of 32 random bytes.
    pub(crate) random_keys: &'static [&'static str],
    /// Whether it has a data folder.
    pub(crate) keeps_data: bool,
    /// The operations whose receipts it may write.
    pub(crate) receipts: &'static [&'static str],
    /// The operations whose receipts, made by consumers, it may pass on.
    pub(crate) consumer_receipts: &'static [&'static str],
    /// Its settings beside those of every process.
    settings: fn(&Wiring<'_>) -> Vec<Option<Setting>>,
}

/// A flag and its value.
pub(crate) type Setting = (&'static str, String);

pub(crate) static RECEIPT_STORE: Process = Process {
    name: "cl-receipt-store",
    zone: "exchange",
    port_offset: 1,
    needs: &[],
    random_keys: &["cl-receipt-store.kek"],
    keeps_data: true,
    receipts: &[],
    consumer_receipts: &[],
    settings: |_| Vec::new(),
};

pub(crate) static VAULT: Process = Process {
    name: "cl-vault",
    zone: "vault",
    port_offset: 3,
    // It tells the issuer of deletions, and keeps what it has to tell until the issuer is there.
    needs: &[&RECEIPT_STORE],
    random_keys: &[
        "cl-vault.kek",
        "cl-vault-data.kek",
        "vault-alias.key",
        SUBJECT_TAG_KEY,
    ],
    keeps_data: true,
    receipts: &[
        "vault.capture",
        "vault.resolve",
        "vault.erase_subject",
        "vault.erase_event",
        "memory.propose",
    ],
    consumer_receipts: &[],
    settings: |wiring| {
        vec![
            wiring.addr("--receipt-store-addr", &RECEIPT_STORE),
            wiring.addr("--bundle-issuer-addr", &BUNDLE_ISSUER),
        ]
    },
};

pub(crate) static SEMANTIC_PROXY: Process = Process {
    name: "cl-semantic-proxy",
    zone: "exchange",
    port_offset: 4,
    needs: &[&RECEIPT_STORE, &VAULT],
    random_keys: &["transform.key"],
    keeps_data: false,
    receipts: &["semantic_proxy.project"],
    consumer_receipts: &[],
    settings: |wiring| {
        vec![
            wiring.addr("--receipt-store-addr", &RECEIPT_STORE),
            wiring.addr("--vault-addr", &VAULT),
        ]
    },
};

pub(crate) static BUNDLE_ISSUER: Process = Process {
    name: "cl-bundle-issuer",
    zone: "exchange",
    port_offset: 5,
    needs: &[&RECEIPT_STORE, &SEMANTIC_PROXY],
    random_keys: &["cl-bundle-issuer.kek"],
    keeps_data: true,
    receipts: &["bundle.issue", "bundle.deliver", "bundle.revoke"],
    // A granted action may have any name, and the issuer compares each with the bundle's contract.
    consumer_receipts: &["*"],
    settings: |wiring| {
        vec![
            wiring.addr("--receipt-store-addr", &RECEIPT_STORE),
            wiring.addr("--semantic-proxy-addr", &SEMANTIC_PROXY),
        ]
    },
};

pub(crate) static POLICY_ENGINE: Process = Process {
    name: "cl-policy-engine",
    zone: "exchange",
    port_offset: 2,
    needs: &[&RECEIPT_STORE],
    random_keys: &["cl-policy-engine.kek", "alias.key", SUBJECT_TAG_KEY],
    keeps_data: true,
    receipts: &[
        "policy.decide",
        "policy.put_snapshot",
        "policy.activate_snapshot",
        "policy.replay",
        "policy.approve",
        "policy.refuse_approval",
        "policy.refuse_sign_in",
        "policy.open_enrolment",
        "policy.enrol_credential",
        "policy.confirm_credential",
        "policy.revoke_credential",
        "policy.revoke_grant",
        "policy.set_anomaly",
        "policy.clear_anomaly",
        "policy.set_shadow",
        "policy.clear_shadow",
        "policy.delegate",
        "policy.revoke_delegation",
    ],
    consumer_receipts: &[],
    settings: |wiring| {
        vec![
            wiring.addr("--receipt-store-addr", &RECEIPT_STORE),
            wiring.addr("--bundle-issuer-addr", &BUNDLE_ISSUER),
            wiring
                .console_origin()
                .map(|origin| ("--passkey-origin", origin)),
        ]
    },
};

pub(crate) static CONSOLE: Process = Process {
    name: "cl-console",
    zone: "edge",
    port_offset: 6,
    needs: &[&POLICY_ENGINE],
    random_keys: &[],
    keeps_data: false,
    receipts: &[],
    consumer_receipts: &[],
    settings: |wiring| {
        vec![
            wiring.addr("--policy-engine-addr", &POLICY_ENGINE),
            wiring.addr("--receipt-store-addr", &RECEIPT_STORE),
            wiring.console_origin().map(|origin| ("--origin", origin)),
        ]
    },
};

pub(crate) static GATEWAY: Process = Process {
    name: "cl-gateway",
    zone: "edge",
    port_offset: 0,
    needs: &[&POLICY_ENGINE],
    random_keys: &["cl-gateway.kek"],
    keeps_data: true,
    receipts: &[],
    consumer_receipts: &[],
    settings: |wiring| {
        let public_url = wiring.addr_of(&GATEWAY);
        vec![
            wiring.addr("--policy-engine-addr", &POLICY_ENGINE),
            wiring.addr("--bundle-issuer-addr", &BUNDLE_ISSUER),
            wiring.addr("--receipt-store-addr", &RECEIPT_STORE),
            wiring.addr("--vault-addr", &VAULT),
            Some(("--token-issuer", wiring.token_issuer.to_owned())),
            Some(("--token-audience", wiring.token_audience.to_owned())),
            public_url.map(|addr| ("--public-url", format!("https://{addr}"))),
        ]
    },
};

/// In the order of their start. Their ends are in the opposite order.
pub(crate) static PROCESSES: [&Process; 7] = [
    &RECEIPT_STORE,
    &VAULT,
    &SEMANTIC_PROXY,
    &BUNDLE_ISSUER,
    &POLICY_ENGINE,
    &GATEWAY,
    &CONSOLE,
];

impl Process {
    /// The path of its SPIFFE id.
    pub(crate) fn spiffe_path(&self) -> String {
        format!("{}/{}", self.zone, self.name)
    }

    /// Its port and its admin port; `None` where a port would not exist.
    pub(crate) fn ports(&self, base_port: u16) -> Option<[u16; 2]> {
        let port = base_port.checked_add(self.port_offset)?;
        Some([port, port.checked_add(ADMIN_OFFSET)?])
    }

    /// Its settings beside those of every process.
    pub(crate) fn settings(&self, wiring: &Wiring<'_>) -> impl Iterator<Item = Setting> {
        (self.settings)(wiring).into_iter().flatten()
    }
}

/// What the processes are told about each other.
#[derive(Debug)]
pub(crate) struct Wiring<'a> {
    /// The address of each process that is to be started.
    pub(crate) addrs: &'a [(&'static str, SocketAddr)],
    pub(crate) token_issuer: &'a str,
    pub(crate) token_audience: &'a str,
}

impl Wiring<'_> {
    /// The setting with the address of a process, unless that one is not started.
    fn addr(&self, flag: &'static str, process: &Process) -> Option<Setting> {
        Some((flag, self.addr_of(process)?))
    }

    fn addr_of(&self, process: &Process) -> Option<String> {
        Some(self.socket_of(process)?.to_string())
    }

    fn socket_of(&self, process: &Process) -> Option<SocketAddr> {
        let found = self.addrs.iter().find(|(name, _)| *name == process.name);
        found.map(|(_, addr)| *addr)
    }

    /// Where people find the console, if it is started.
    fn console_origin(&self) -> Option<String> {
        self.socket_of(&CONSOLE).map(console_url)
    }
}

/// Where people find a console. Passkeys belong to a name, so an address will not do.
pub(crate) fn console_url(addr: SocketAddr) -> String {
    format!("https://localhost:{}", addr.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_ports_are_distinct() {
        let mut ports: Vec<u16> = PROCESSES
            .iter()
            .flat_map(|process| process.ports(DEFAULT_BASE_PORT).unwrap())
            .collect();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 2 * PROCESSES.len());
        assert!(PROCESSES[0].ports(u16::MAX).is_none());
    }

    #[test]
    fn a_process_starts_after_those_that_it_needs() {
        for (index, process) in PROCESSES.iter().enumerate() {
            for needed in process.needs {
                let earlier = &PROCESSES[..index];
                assert!(earlier.iter().any(|other| other.name == needed.name));
            }
        }
    }

    #[test]
    fn a_process_that_is_not_started_is_told_to_nobody() {
        let addr = "127.0.0.1:1".parse().unwrap();
        let wiring = Wiring {
            addrs: &[(RECEIPT_STORE.name, addr), (POLICY_ENGINE.name, addr)],
            token_issuer: "issuer",
            token_audience: "audience",
        };
        let flags = |process: &Process| {
            let settings = process.settings(&wiring);
            settings.map(|(flag, _)| flag).collect::<Vec<_>>()
        };
        assert_eq!(flags(&POLICY_ENGINE), ["--receipt-store-addr"]);
        assert!(!flags(&CONSOLE).contains(&"--origin"));
        assert!(!flags(&GATEWAY).contains(&"--vault-addr"));
    }
}
