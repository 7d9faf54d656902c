//! The certificates of a home: one owner each, under the home's own authority.

use std::sync::Arc;

use cl_host::files::{self, MAX_PUBLIC_BYTES, MAX_SECRET_BYTES};
use cl_host::identity::{PeerId, SpiffeId};
use cl_host::ids::Ids;
use cl_host::tls::{Credentials, ServerTls};
use cl_pki::{Authority, Leaf, Validity};
use clap::Subcommand;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::json;

use crate::error::Error;
use crate::home::{self, Access, Home};
use crate::output;
use crate::processes::PROCESSES;
use crate::session::Session;

/// The program that hands native items to the vault.
pub(crate) const CAPTURE: &str = "cl-capture";

pub(crate) const OPERATOR: &str = "operator";
pub(crate) const AUDITOR: &str = "auditor";

/// The path of the auditor's SPIFFE id.
pub(crate) const AUDITOR_PATH: &str = "auditor/clctl";
pub(crate) const CLIENT: &str = "client";
pub(crate) const OWNER: &str = "owner";

const DAY_S: i64 = 24 * 60 * 60;

/// How long the authority and all that it issues are valid.
const LIFETIME_S: i64 = 5 * 365 * DAY_S;

/// Clocks of other machines may be a little late.
const EARLIER_S: i64 = 5 * 60;

/// The certificates of a home.
#[derive(Debug, Subcommand)]
pub(crate) enum CertificatesCommand {
    /// Replaces all certificates but the authority's; running processes take the new ones up.
    Renew,
}

pub(crate) fn run(command: &CertificatesCommand, session: &Session) -> Result<(), Error> {
    match command {
        CertificatesCommand::Renew => renew(session),
    }
}

fn renew(session: &Session) -> Result<(), Error> {
    let home = &session.home;
    home.check()?;
    let authority = load_authority(home)?;
    let trust_domain = trust_domain(session)?;
    let owners = write_all(home, &authority, &trust_domain, session)?;
    let document = json!({"trust_domain": trust_domain, "renewed": owners});
    session.output.answer(&document, || {
        output::fields(&[
            ("trust domain", trust_domain.clone()),
            ("renewed", output::joined(&owners)),
        ])
    })
}

/// The owners of certificates: the name of the files, and the path of the SPIFFE id.
pub(crate) fn owners() -> Vec<(&'static str, String)> {
    let processes = PROCESSES
        .iter()
        .map(|process| (process.name, process.spiffe_path()));
    let others = [
        (CAPTURE, "vault/cl-capture"),
        (OPERATOR, "operator/clctl"),
        (AUDITOR, AUDITOR_PATH),
        (CLIENT, "client/default/demo"),
        (OWNER, "owner/default"),
    ];
    processes
        .chain(others.map(|(name, path)| (name, path.to_owned())))
        .collect()
}

/// How long what is made now is valid.
pub(crate) fn validity(session: &Session) -> Validity {
    let now_s = session.clock.now_unix_ms().div_euclid(1000);
    Validity {
        not_before_unix_s: now_s - EARLIER_S,
        not_after_unix_s: now_s + LIFETIME_S,
    }
}

/// Issues and writes the certificate of every owner.
pub(crate) fn write_all(
    home: &Home,
    authority: &Authority,
    trust_domain: &str,
    session: &Session,
) -> Result<Vec<&'static str>, Error> {
    let owners = owners();
    for (name, path) in &owners {
        let id = format!("spiffe://{trust_domain}/{path}");
        let issued = authority.issue(&Leaf {
            uris: &[&id],
            names: &["localhost", "127.0.0.1"],
            validity: validity(session),
            serial: serial(&*session.ids)?,
        })?;
        let files = home.tls_files(name);
        // A process that looks in between finds a key without its certificate, and keeps both
        // old ones until the next look.
        home::write(&files.key, issued.key_pem.as_bytes(), Access::Secret)?;
        home::write(&files.chain, issued.chain_pem.as_bytes(), Access::Public)?;
    }
    Ok(owners.into_iter().map(|(name, _)| name).collect())
}

/// The credentials of an owner, as a client.
pub(crate) fn credentials(session: &Session, owner: &str) -> Result<Arc<Credentials>, Error> {
    session.home.check()?;
    let files = session.home.tls_files(owner);
    let clock = Arc::clone(&session.clock);
    Ok(Credentials::load(files, ServerTls::INTERNAL, clock)?)
}

/// The trust domain that the home was made for.
pub(crate) fn trust_domain(session: &Session) -> Result<String, Error> {
    let chain = session.home.tls_files(OPERATOR).chain;
    let bytes = files::load_public(&chain, MAX_PUBLIC_BYTES)?;
    let id: Option<SpiffeId> = spiffe_id(&bytes);
    let id = id.ok_or(Error::Malformed {
        path: chain,
        expected: "a certificate with a SPIFFE id",
    })?;
    Ok(id.trust_domain().to_owned())
}

/// The SPIFFE id of a certificate, which may have ended.
fn spiffe_id(pem: &[u8]) -> Option<SpiffeId> {
    let certificate = CertificateDer::from_pem_slice(pem).ok()?;
    Some(PeerId::from_certificate(&certificate).ok()?.id)
}

fn load_authority(home: &Home) -> Result<Authority, Error> {
    let pem = files::load_public(&home.authority(), MAX_PUBLIC_BYTES)?;
    let key = files::load_secret(&home.authority_key(), MAX_SECRET_BYTES)?;
    let malformed = |path| Error::Malformed {
        path,
        expected: "PEM",
    };
    let pem = std::str::from_utf8(&pem).map_err(|_| malformed(home.authority()))?;
    let key = std::str::from_utf8(&key).map_err(|_| malformed(home.authority_key()))?;
    Ok(Authority::load(pem, key)?)
}

/// A random serial number that is never 0.
fn serial(ids: &dyn Ids) -> Result<u128, Error> {
    let mut bytes = [0; 16];
    ids.fill(&mut bytes)?;
    Ok(u128::from_be_bytes(bytes) >> 1 | 1)
}
