//! Settings that every process has.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{CommandFactory, FromArgMatches, Parser};

use super::{Process, Timings};
use crate::tls::TlsFiles;

/// Settings that every process has; each is a flag and an environment variable.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
pub struct HostArgs {
    /// Folder with `pki/`, `keys/` and `data/`.
    #[arg(long, env = "CL_HOME", default_value = "./.context-layer")]
    pub home: PathBuf,

    /// Address to serve on, with mutual TLS.
    #[arg(long, env = "CL_LISTEN_ADDR")]
    pub listen_addr: SocketAddr,

    /// Plain-text address of health and metrics; loopback or the pod's address only.
    #[arg(long, env = "CL_ADMIN_ADDR")]
    pub admin_addr: SocketAddr,

    /// Own certificate chain, PEM [default: pki/{process}.pem in the home folder].
    #[arg(long, env = "CL_TLS_CHAIN")]
    pub tls_chain: Option<PathBuf>,

    /// Private key, PEM, mode 0600 [default: pki/{process}.key in the home folder].
    #[arg(long, env = "CL_TLS_KEY")]
    pub tls_key: Option<PathBuf>,

    /// Authorities of peers, PEM [default: pki/ca.pem in the home folder].
    #[arg(long, env = "CL_TLS_CA")]
    pub tls_ca: Option<PathBuf>,

    /// Which logs are written, for example `info,cl_vault=debug`.
    #[arg(long, env = "CL_LOG_FILTER", default_value = "info")]
    pub log_filter: String,

    /// OTLP collector for traces and metrics, `http://..`; off when not set.
    #[arg(long, env = "CL_OTLP_ENDPOINT")]
    pub otlp_endpoint: Option<String>,

    /// Longest time for one call.
    #[arg(long, env = "CL_MAX_CALL_MS", default_value_t = 30_000)]
    pub max_call_ms: u64,

    /// Time between telling probes and refusing connections.
    #[arg(long, env = "CL_LAME_DUCK_MS", default_value_t = 2_000)]
    pub lame_duck_ms: u64,

    /// Time for running calls to end before they are cut off.
    #[arg(long, env = "CL_DRAIN_DEADLINE_MS", default_value_t = 20_000)]
    pub drain_deadline_ms: u64,
}

impl HostArgs {
    /// The key material of `process`.
    pub fn tls_files(&self, process: &str) -> TlsFiles {
        let pki = self.home.join("pki");
        let or_default =
            |path: &Option<PathBuf>, name: String| path.clone().unwrap_or_else(|| pki.join(name));
        TlsFiles {
            chain: or_default(&self.tls_chain, format!("{process}.pem")),
            key: or_default(&self.tls_key, format!("{process}.key")),
            trust: or_default(&self.tls_ca, "ca.pem".to_owned()),
        }
    }

    pub(super) fn timings(&self) -> Timings {
        Timings {
            max_call: Duration::from_millis(self.max_call_ms),
            lame_duck: Duration::from_millis(self.lame_duck_ms),
            drain_deadline: Duration::from_millis(self.drain_deadline_ms),
            ..Timings::default()
        }
    }
}

/// The whole command line of a process.
#[derive(Debug, Parser)]
pub(super) struct Cli<C: clap::Args> {
    #[command(flatten)]
    pub(super) host: HostArgs,
    #[command(flatten)]
    pub(super) service: C,
}

impl<C: clap::Args> Cli<C> {
    /// Prints usage and exits if the command line is wrong.
    pub(super) fn parse_for(process: &Process) -> Self {
        let command = Self::command().name(process.name).version(process.version);
        let parsed = Self::from_arg_matches(&command.get_matches());
        parsed.unwrap_or_else(|error| error.exit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, clap::Args)]
    struct NoSettings {}

    fn parse(args: &[&str]) -> Result<HostArgs, clap::Error> {
        let all = ["process"].iter().chain(args);
        Cli::<NoSettings>::try_parse_from(all).map(|cli| cli.host)
    }

    #[test]
    fn files_follow_home_unless_named() {
        let args = parse(&[
            "--listen-addr=127.0.0.1:1",
            "--admin-addr=127.0.0.1:2",
            "--home=/h",
            "--tls-ca=/other/ca.pem",
        ])
        .unwrap();
        let files = args.tls_files("cl-vault");
        assert_eq!(files.chain, PathBuf::from("/h/pki/cl-vault.pem"));
        assert_eq!(files.key, PathBuf::from("/h/pki/cl-vault.key"));
        assert_eq!(files.trust, PathBuf::from("/other/ca.pem"));
    }

    #[test]
    fn every_setting_is_a_flag_and_an_environment_variable() {
        let command = Cli::<NoSettings>::command();
        let settings: Vec<_> = command.get_arguments().collect();
        assert!(settings.len() <= 15);
        for setting in settings {
            let flag = setting.get_long().unwrap();
            let expected = match flag {
                "home" => "CL_HOME".to_owned(),
                other => format!("CL_{}", other.replace('-', "_").to_uppercase()),
            };
            assert_eq!(setting.get_env().unwrap(), expected.as_str());
        }
    }

    #[test]
    fn refuses_a_missing_address() {
        assert!(parse(&["--listen-addr=127.0.0.1:1"]).is_err());
        assert!(parse(&["--listen-addr=localhost", "--admin-addr=127.0.0.1:2"]).is_err());
    }
}
