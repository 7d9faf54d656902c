//! What is going to be started, checked before anything is.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use tokio::process::Command;

use super::UpArgs;
use super::log::Log;
use crate::error::Error;
use crate::home::{Home, make_folder};
use crate::processes::{PROCESSES, Process, Wiring};
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
        let bin_dir = match &args.bin_dir {
            Some(folder) => folder.clone(),
            None => own_folder()?,
        };
        let mut bound = Vec::new();
        for process in selected(&args.without)? {
            let program = find_program(&bin_dir, process)?;
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
            let data = home.data(process.name);
            make_folder(&data)?;
            let mut command = Command::new(program);
            command
                // What the processes are told is on their command lines, so that a setting in
                // the environment, meant for one of them, cannot reach all.
                .env_clear()
                .arg("--home")
                .arg(home.root())
                .arg("--data-dir")
                .arg(data)
                .arg(format!("--listen-addr={}", addrs.main))
                .arg(format!("--admin-addr={}", addrs.admin))
                .arg(format!("--log-filter={}", args.log_filter))
                .arg(format!("--drain-deadline-ms={}", args.drain_deadline_ms))
                // Nobody balances load over a local deployment.
                .arg("--lame-duck-ms=0");
            if let Some(endpoint) = &args.otlp_endpoint {
                command.arg(format!("--otlp-endpoint={endpoint}"));
            }
            for (flag, value) in (process.settings)(&wiring) {
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

fn own_folder() -> Result<PathBuf, Error> {
    let own = std::env::current_exe().map_err(Error::Runtime)?;
    Ok(own.parent().unwrap_or(Path::new(".")).to_owned())
}

fn find_program(bin_dir: &Path, process: &Process) -> Result<PathBuf, Error> {
    let path = bin_dir.join(process.name);
    if path.is_file() {
        return Ok(path);
    }
    Err(Error::NoProgram { path })
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
    use crate::processes::{GATEWAY, POLICY_ENGINE, RECEIPT_STORE};

    fn names(without: &[&str]) -> Result<Vec<&'static str>, Error> {
        let without: Vec<_> = without.iter().map(|name| (*name).to_owned()).collect();
        let selected = selected(&without)?;
        Ok(selected.iter().map(|process| process.name).collect())
    }

    #[test]
    fn a_process_is_left_out_only_if_nobody_needs_it() {
        assert_eq!(
            names(&[GATEWAY.name]).unwrap(),
            [RECEIPT_STORE.name, POLICY_ENGINE.name]
        );
        assert_eq!(names(&[]).unwrap().len(), PROCESSES.len());
        assert!(matches!(
            names(&[RECEIPT_STORE.name]),
            Err(Error::Needs { .. })
        ));
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
