//! Where the running processes are: `run/endpoints.json`.

use std::fs;
use std::io;
use std::net::SocketAddr;

use cl_host::files::FileError;
use serde_json::{Map, Value, json};

use crate::error::Error;
use crate::home::{self, Access, Home, read_json, write_error};
use crate::processes::{PROCESSES, Process};

/// A running process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) name: String,
    pub(crate) addr: SocketAddr,
    pub(crate) admin_addr: SocketAddr,
    pub(crate) pid: i32,
}

/// All running processes of a home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoints {
    /// When all were ready, RFC 3339.
    pub(crate) ready_at: String,
    pub(crate) processes: Vec<Endpoint>,
    pub(crate) gateway_url: Option<String>,
    pub(crate) console_url: Option<String>,
}

impl Endpoints {
    /// What the file says; `None` if it is not there.
    pub(crate) fn load(home: &Home) -> Result<Option<Self>, Error> {
        let path = home.endpoints();
        let document = match read_json(&path) {
            Ok(document) => document,
            Err(Error::File(FileError::Io { source, .. }))
                if source.kind() == io::ErrorKind::NotFound =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        Self::of_json(&document).map(Some).ok_or(Error::Malformed {
            path,
            expected: "a list of endpoints",
        })
    }

    /// The processes that run, or why none is known.
    pub(crate) fn running(home: &Home) -> Result<Self, Error> {
        home.check()?;
        Self::load(home)?.ok_or(Error::NotUp)
    }

    pub(crate) fn find(&self, process: &Process) -> Result<&Endpoint, Error> {
        let mut running = self.processes.iter();
        let found = running.find(|endpoint| endpoint.name == process.name);
        found.ok_or(Error::NotStarted(process.name))
    }

    pub(crate) fn write(&self, home: &Home) -> Result<(), Error> {
        let text = format!("{:#}\n", self.to_json());
        home::write(&home.endpoints(), text.as_bytes(), Access::Public)
    }

    pub(crate) fn remove(home: &Home) -> Result<(), Error> {
        let path = home.endpoints();
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(write_error(&path)(error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        let processes: Map<String, Value> = self
            .processes
            .iter()
            .map(|process| {
                let endpoint = json!({
                    "addr": process.addr.to_string(),
                    "admin_addr": process.admin_addr.to_string(),
                    "pid": process.pid,
                });
                (process.name.clone(), endpoint)
            })
            .collect();
        json!({
            "endpoints_version": 1,
            "ready_at": self.ready_at,
            "gateway_url": self.gateway_url,
            "console_url": self.console_url,
            "processes": processes,
        })
    }

    fn of_json(document: &Value) -> Option<Self> {
        if document["endpoints_version"] != 1 {
            return None;
        }
        let processes = document["processes"].as_object()?;
        let processes = processes.iter().map(|(name, endpoint)| {
            let addr = |member: &str| endpoint[member].as_str()?.parse().ok();
            Some(Endpoint {
                name: name.clone(),
                addr: addr("addr")?,
                admin_addr: addr("admin_addr")?,
                pid: endpoint["pid"].as_i64()?.try_into().ok()?,
            })
        });
        let mut processes = processes.collect::<Option<Vec<_>>>()?;
        // The members of an object have no order of their own.
        let started =
            |process: &Endpoint| PROCESSES.iter().position(|row| row.name == process.name);
        processes.sort_by_key(started);
        Some(Self {
            ready_at: document["ready_at"].as_str()?.to_owned(),
            gateway_url: document["gateway_url"].as_str().map(str::to_owned),
            console_url: document["console_url"].as_str().map(str::to_owned),
            processes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().to_owned());
        home::make_folder(&folder.path().join("run")).unwrap();
        assert_eq!(Endpoints::load(&home).unwrap(), None);
        let written = Endpoints {
            ready_at: "2030-01-01T00:00:00.000Z".to_owned(),
            gateway_url: None,
            console_url: Some("https://localhost:7406".to_owned()),
            processes: vec![Endpoint {
                name: "cl-receipt-store".to_owned(),
                addr: "127.0.0.1:1".parse().unwrap(),
                admin_addr: "127.0.0.1:2".parse().unwrap(),
                pid: 3,
            }],
        };
        written.write(&home).unwrap();
        assert_eq!(Endpoints::load(&home).unwrap(), Some(written));
        Endpoints::remove(&home).unwrap();
        Endpoints::remove(&home).unwrap();
        fs::write(home.endpoints(), "{}").unwrap();
        let error = Endpoints::load(&home).unwrap_err();
        assert!(matches!(error, Error::Malformed { .. }), "{error}");
    }
}
