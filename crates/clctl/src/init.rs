//! Makes a home that everything else works with.

mod documents;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use cl_host::identity::SpiffeId;
use cl_model::key::SigningKey;
use cl_pki::Authority;
use serde_json::{Value, json};

use self::documents::Parties;
use crate::certificates;
use crate::error::Error;
use crate::home::{self, Access, Home, write_error};
use crate::keys::{self, Purpose};
use crate::output;
use crate::processes::PROCESSES;
use crate::session::Session;

/// What a home consists of, in the order in which it appears. Of two that make the same home at
/// once, only one gets past the first entry; without the last it is no home.
const ENTRIES: [&str; 13] = [
    "keys",
    "policy",
    "examples",
    "data",
    "pins",
    "logs",
    "run",
    "trust.json",
    "jwks.json",
    "token-issuer.json",
    "receipt-writers.json",
    "receipt-readers.json",
    "pki",
];

/// Settings of `clctl init`.
#[derive(Debug, clap::Args)]
pub(crate) struct InitArgs {
    /// SPIFFE trust domain of all identities.
    #[arg(long, default_value = "context-layer.local")]
    trust_domain: String,
}

pub(crate) fn run(args: &InitArgs, session: &Session) -> Result<(), Error> {
    let trust_domain = &args.trust_domain;
    let probe: Result<SpiffeId, _> = format!("spiffe://{trust_domain}/operator/clctl").parse();
    if !probe.is_ok_and(|id| id.trust_domain() == trust_domain) {
        return Err(Error::TrustDomain);
    }
    let root = session.home.root();
    claim(root)?;
    let staging = tempfile::Builder::new()
        .prefix(".init-")
        .tempdir_in(root)
        .map_err(write_error(root))?;
    let staged = Home::new(staging.path().to_owned());
    fill(&staged, trust_domain, session)?;
    for entry in ENTRIES {
        let path = root.join(entry);
        fs::rename(staged.root().join(entry), &path).map_err(write_error(&path))?;
    }
    answer(trust_domain, session)
}

/// Takes an empty folder, or makes one.
fn claim(root: &Path) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt;

    home::make_folder(root)?;
    let mut entries = fs::read_dir(root).map_err(write_error(root))?;
    if entries.next().is_some() {
        return Err(Error::HomeNotEmpty {
            path: root.to_owned(),
        });
    }
    fs::set_permissions(root, fs::Permissions::from_mode(0o700)).map_err(write_error(root))
}

fn fill(home: &Home, trust_domain: &str, session: &Session) -> Result<(), Error> {
    for folder in ENTRIES.iter().filter(|entry| !entry.ends_with(".json")) {
        home::make_folder(&home.root().join(folder))?;
    }
    make_certificates(home, trust_domain, session)?;
    let mut signing = Vec::new();
    for purpose in [
        Purpose::Decision,
        Purpose::Bundle,
        Purpose::Notes,
        Purpose::Receipts,
        Purpose::PolicySnapshot,
    ] {
        signing.push((purpose, make_key(home, purpose)?));
    }
    let token = make_key(home, Purpose::Token)?;
    // One that several processes share is made once.
    let random: BTreeSet<_> = PROCESSES
        .iter()
        .flat_map(|process| process.random_keys)
        .collect();
    for name in random {
        let key = keys::random(&*session.ids)?;
        home::write(&home.key(name), &*key, Access::Secret)?;
    }

    let parties = Parties::of(trust_domain);
    let now = session.now();
    let documents = [
        (home.trust(), documents::trust(&signing, now)),
        (home.jwks(), documents::jwks(&token)),
        (home.token_issuer(), documents::token_issuer(trust_domain)),
        (
            home.receipt_writers(),
            documents::receipt_writers(trust_domain),
        ),
        (
            home.receipt_readers(),
            documents::receipt_readers(trust_domain),
        ),
        (home.default_policy(), documents::snapshot(&parties)),
        (
            home.example("request"),
            documents::request(&parties.agent, now),
        ),
        (
            home.example("request-mtls"),
            documents::request(&parties.client, now),
        ),
    ];
    for (path, document) in documents {
        home::write(&path, text(&document).as_bytes(), Access::Public)?;
    }
    Ok(())
}

fn make_certificates(home: &Home, trust_domain: &str, session: &Session) -> Result<(), Error> {
    // Of its own for each home, so that a certificate of another home is told from a broken one.
    let name = format!("Context Layer {trust_domain} {}", session.ids.uuid()?);
    let authority = Authority::new(&name, certificates::validity(session))?;
    home::write(
        &home.authority(),
        authority.pem().as_bytes(),
        Access::Public,
    )?;
    let key = authority.key_pem();
    home::write(&home.authority_key(), key.as_bytes(), Access::Secret)?;
    certificates::write_all(home, &authority, trust_domain, session)?;
    Ok(())
}

fn make_key(home: &Home, purpose: Purpose) -> Result<SigningKey, Error> {
    let made = keys::make(purpose)?;
    let path = home.key(&purpose.file());
    home::write(&path, made.pem.as_bytes(), Access::Secret)?;
    Ok(made.key)
}

fn text(document: &Value) -> String {
    format!("{document:#}\n")
}

fn answer(trust_domain: &str, session: &Session) -> Result<(), Error> {
    let home = &session.home;
    let shown = |path: std::path::PathBuf| path.display().to_string();
    let document = json!({
        "home": shown(home.root().to_owned()),
        "trust_domain": trust_domain,
        "policy": shown(home.default_policy()),
        "example_request": shown(home.example("request")),
    });
    session.output.answer(&document, || {
        let fields = output::fields(&[
            ("home", shown(home.root().to_owned())),
            ("trust domain", trust_domain.to_owned()),
            ("policy", shown(home.default_policy())),
            ("example", shown(home.example("request"))),
        ]);
        format!("{fields}\nStart it with: clctl up\n")
    })
}
