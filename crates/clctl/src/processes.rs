//! The processes of a local deployment. A new service is one row here.

use std::net::SocketAddr;

/// The first port of a local deployment.
pub(crate) const DEFAULT_BASE_PORT: u16 = 7400;

/// From a process's port to that of its health and metrics.
const ADMIN_OFFSET: u16 = 50;

/// How a process is named, found and started.
#[derive(Debug)]
pub(crate) struct Process {
    /// Its program, also the name of its files.
    pub(crate) name: &'static str,
    /// Its zone: the first part of the path of its SPIFFE id.
    zone: &'static str,
    /// Where its port lies after the first one.
    port_offset: u16,
    /// The processes that it calls.
    pub(crate) needs: &'static [&'static Process],
    /// The operations whose receipts it may write.
    pub(crate) receipts: &'static [&'static str],
    /// Its settings beside those of every process.
    pub(crate) settings: fn(&Wiring<'_>) -> Vec<(&'static str, String)>,
}

pub(crate) static RECEIPT_STORE: Process = Process {
    name: "cl-receipt-store",
    zone: "exchange",
    port_offset: 1,
    needs: &[],
    receipts: &[],
    settings: |_| Vec::new(),
};

pub(crate) static POLICY_ENGINE: Process = Process {
    name: "cl-policy-engine",
    zone: "exchange",
    port_offset: 2,
    needs: &[&RECEIPT_STORE],
    receipts: &[
        "policy.decide",
        "policy.put_snapshot",
        "policy.activate_snapshot",
        "policy.replay",
    ],
    settings: |wiring| vec![("--receipt-store-addr", wiring.addr_of(&RECEIPT_STORE))],
};

pub(crate) static GATEWAY: Process = Process {
    name: "cl-gateway",
    zone: "edge",
    port_offset: 0,
    needs: &[&POLICY_ENGINE],
    receipts: &[],
    settings: |wiring| {
        vec![
            ("--policy-engine-addr", wiring.addr_of(&POLICY_ENGINE)),
            ("--token-issuer", wiring.token_issuer.to_owned()),
            ("--token-audience", wiring.token_audience.to_owned()),
            (
                "--public-url",
                format!("https://{}", wiring.addr_of(&GATEWAY)),
            ),
        ]
    },
};

/// In the order of their start. Their ends are in the opposite order.
pub(crate) static PROCESSES: [&Process; 3] = [&RECEIPT_STORE, &POLICY_ENGINE, &GATEWAY];

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
    /// The address of a process; of one that is not started, an address where nothing answers.
    fn addr_of(&self, process: &Process) -> String {
        let found = self.addrs.iter().find(|(name, _)| *name == process.name);
        found.map_or_else(|| "127.0.0.1:0".to_owned(), |(_, addr)| addr.to_string())
    }
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
}
