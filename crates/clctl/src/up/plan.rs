//! What is going to be started, checked before anything is.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use tokio::process::Command;

use super::UpArgs;
use super::log::Log;
use crate::error::Error;
use crate::home::{Home, make_folder};
use crate::processes::{POLICY_ENGINE, PROCESSES, Process, Wiring};
use crate::programs::Programs;
use crate::token::TokenIssuer;

/// The processes to start, in order.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) processes: Vec<Planned>,
}

/// A process to start.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) process: &'static Process,
    pub(super) command: Command,
    pub(super) addrs: Addrs,
    pub(super) log: Log,
    /// Keeps others from its ports until it is started.
    pub(super) ports: Ports,
}

/// Where a process will be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addrs {
    pub(super) main: SocketAddr,
    pub(super) admin: SocketAddr,
}

/// Bound ports.
#[derive(Debug)]
pub(super) struct Ports {
    main: TcpListener,
    admin: TcpListener,
}

impl Plan {
    pub(super) fn of(args: &UpArgs, home: &Home) -> Result<Self, Error> {
        let programs = Programs::of(args.bin_dir.as_deref())?;
        let mut bound = Vec::new();
        for process in selected(&args.without)? {
            let program = programs.find(process.name)?;
            let ports = Ports::bind(process, args.base_port)?;
            bound.push((process, program, ports.addrs()?, ports));
        }
        let addrs: Vec<_> = bound
            .iter()
            .map(|(process, _, addrs, _)| (process.name, addrs.main))
            .collect();
        let tokens = TokenIssuer::load(home)?;
        let wiring = Wiring {
            addrs: &addrs,
            token_issuer: &tokens.issuer,
            token_audience: &tokens.audience,
        };
        let planned = bound.into_iter().map(|(process, program, addrs, ports)| {
            let mut command = Command::new(program);
            command
                // What the processes are told is on their command lines, so that a setting in
                // the environment, meant for one of them, cannot reach all.
                .env_clear()
                .arg("--home")
                .arg(home.root())
                .arg(format!("--listen-addr={}", addrs.main))
                .arg(format!("--admin-addr={}", addrs.admin))
                .arg(format!("--log-filter={}", args.log_filter))
                .arg(format!("--drain-deadline-ms={}", args.drain_deadline_ms))
                // Nobody balances load over a local deployment.
                .arg("--lame-duck-ms=0");
            if let Some(endpoint) = &args.otlp_endpoint {
                command.arg(format!("--otlp-endpoint={endpoint}"));
            }
            if args.require_signed_snapshots && process.name == POLICY_ENGINE.name {
                command.arg("--require-signed-snapshots");
            }
            if process.keeps_data {
                let data = home.data(process.name);
                make_folder(&data)?;
                command.arg("--data-dir").arg(data);
            }
            for (flag, value) in process.settings(&wiring) {
                command.arg(format!("{flag}={value}"));
            }
            Ok(Planned {
                process,
                command,
                addrs,
                log: Log::open(home.log(process.name))?,
                ports,
            })
        });
        Ok(Self {
            processes: planned.collect::<Result<_, Error>>()?,
        })
    }
}

fn selected(without: &[String]) -> Result<Vec<&'static Process>, Error> {
    let is_left_out = |name: &str| without.iter().any(|other| other == name);
    let selected: Vec<_> = PROCESSES
        .into_iter()
        .filter(|process| !is_left_out(process.name))
        .collect();
    for process in &selected {
        if let Some(needed) = process.needs.iter().find(|other| is_left_out(other.name)) {
            return Err(Error::Needs {
                process: process.name,
                needed: needed.name,
            });
        }
    }
    Ok(selected)
}

impl Ports {
    fn bind(process: &Process, base_port: u16) -> Result<Self, Error> {
        let [main, admin] = match base_port {
            0 => [0, 0],
            _ => process
                .ports(base_port)
                .ok_or(Error::PortRange { base_port })?,
        };
        let bind = |port| {
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|source| Error::Port {
                port,
                process: process.name,
                source,
            })
        };
        Ok(Self {
            main: bind(main)?,
            admin: bind(admin)?,
        })
    }

    fn addrs(&self) -> Result<Addrs, Error> {
        let addr = |listener: &TcpListener| listener.local_addr().map_err(Error::Runtime);
        Ok(Addrs {
            main: addr(&self.main)?,
            admin: addr(&self.admin)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::{
        BUNDLE_ISSUER, CONSOLE, GATEWAY, POLICY_ENGINE, RECEIPT_STORE, SEMANTIC_PROXY, VAULT,
    };

    fn names(without: &[&str]) -> Result<Vec<&'static str>, Error> {
        let without: Vec<_> = without.iter().map(|name| (*name).to_owned()).collect();
        let selected = selected(&without)?;
        Ok(selected.iter().map(|process| process.name).collect())
    }

    #[test]
    fn a_process_is_left_out_only_if_nobody_needs_it() {
        let left_out = [VAULT.name, SEMANTIC_PROXY.name, BUNDLE_ISSUER.name];
        assert_eq!(
            names(&left_out).unwrap(),
            [
                RECEIPT_STORE.name,
                POLICY_ENGINE.name,
                GATEWAY.name,
                CONSOLE.name
            ]
        );
        assert_eq!(names(&[]).unwrap().len(), PROCESSES.len());
        for needed in [RECEIPT_STORE.name, VAULT.name, POLICY_ENGINE.name] {
            assert!(matches!(names(&[needed]), Err(Error::Needs { .. })));
        }
    }

    #[test]
    fn a_port_in_use_is_named() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        let error = Ports::bind(&GATEWAY, port).unwrap_err();
        assert!(matches!(error, Error::Port { .. }), "{error}");
        assert!(error.to_string().contains(&port.to_string()));
    }
}
