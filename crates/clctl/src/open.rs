//! Taking a bundle as its recipient, and looking at one that was saved.

mod show;

use std::path::{Path, PathBuf};

use cl_host::files::{self, MAX_PUBLIC_BYTES, MAX_SECRET_BYTES};
use cl_model::delivery::MAX_DELIVERY_BYTES;
use cl_model::memory::ProposalDraft;
use cl_model::trust::MAX_TRUST_BYTES;
use cl_model::urn::BundleId;
use cl_sdk::{
    Client, ClientConfig, Credential, Delivery, Fact, Handled, OpenBundle, Proposal, Trust,
    TrustFile,
};
use serde_json::Value;
use zeroize::Zeroizing;

use self::show::{Action, Contents, Opened};
use crate::certificates::{CLIENT, credentials};
use crate::cli::tenant;
use crate::error::Error;
use crate::home::{self, Access, Home, read_json};
use crate::peers::{Gateway, Shows};
use crate::session::Session;
use crate::token::{
    self, CALL_TTL_S, Claims, DEMO_MODEL, DEMO_MODEL_CLIENT, RECIPIENT_SCOPES, reference,
};

/// Settings of `clctl open`.
#[derive(Debug, clap::Args)]
pub(crate) struct OpenArgs {
    /// The bundle's URN, as `clctl request` shows it.
    #[arg(value_parser = bundle_ref, required_unless_present = "file")]
    bundle: Option<String>,

    /// Show a delivery that was saved, after checking it with the home's trust file only.
    #[arg(long, conflicts_with_all = [
        "bundle", "recipient", "client_instance", "tenant", "mtls", "perform", "propose", "save",
    ])]
    file: Option<PathBuf>,

    /// The recipient: the principal of the token that is made for this call.
    #[arg(long, default_value = DEMO_MODEL, value_parser = reference, conflicts_with = "mtls")]
    recipient: String,

    /// The client instance of that token.
    #[arg(long, default_value = DEMO_MODEL_CLIENT, value_parser = reference, conflicts_with = "mtls")]
    client_instance: String,

    /// The tenant of that token.
    #[arg(long, default_value = "default", value_parser = tenant, conflicts_with = "mtls")]
    tenant: String,

    /// Show the home's client certificate, and no token.
    #[arg(long)]
    mtls: bool,

    /// Carry out an action that does nothing, with its receipt; repeatable.
    #[arg(long, value_name = "ACTION")]
    perform: Vec<String>,

    /// Propose a memory update: JSON with `proposed_claims`, `rationale`, and `operation`; it rests
    /// on all sources of the bundle unless `provenance_handles` names some.
    #[arg(long, value_name = "FILE")]
    propose: Option<PathBuf>,

    /// Save what was delivered, for `clctl open --file`; it is private context.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
}

pub(crate) async fn run(args: &OpenArgs, session: &Session) -> Result<(), Error> {
    if let Some(file) = &args.file {
        return inspect(file, session);
    }
    // The command line demands one of the two; there is no bundle without a name.
    let bundle = args.bundle.as_deref().unwrap_or_default();
    open(args, bundle, session).await
}

fn bundle_ref(text: &str) -> Result<String, String> {
    BundleId::parse(text)
        .map(|id| id.as_str().to_owned())
        .ok_or_else(|| "not a bundle's URN: urn:cl:bundle:..".to_owned())
}

/// Verifies a saved delivery without asking anyone.
fn inspect(file: &Path, session: &Session) -> Result<(), Error> {
    session.home.check()?;
    let bytes = files::load_public(file, limit(MAX_DELIVERY_BYTES))?;
    let delivery = Delivery::parse(&bytes).map_err(|refusal| Error::Document {
        path: file.to_owned(),
        refusal,
    })?;
    let trust = TrustFile::parse(&trust(&session.home)?).map_err(|refusal| Error::Document {
        path: session.home.trust(),
        refusal,
    })?;
    let now = session.now();
    let verified = delivery.verify(&Trust::of(&trust, now));
    let verified = verified.map_err(Error::Bundle)?;
    show::verified(&verified, now, session)
}

async fn open(args: &OpenArgs, bundle_ref: &str, session: &Session) -> Result<(), Error> {
    // Looked at first: the bundle can be taken once.
    let proposal = args.propose.as_deref().map(PlannedProposal::read);
    let proposal = proposal.transpose()?;
    let client = connect(args, session).await?;
    let attempt = session.ids.uuid()?.to_string();
    let delivery = client.redeem(bundle_ref, &attempt).await;
    let delivery = delivery.map_err(Error::of_consumer)?;
    // A bundle is handed out once: a file that cannot be written is told after all else is done.
    let text = Zeroizing::new(delivery.delivery().to_text());
    let save = |file: &PathBuf| home::write(file, text.as_bytes(), Access::Secret);
    let saved = args.save.as_ref().map_or(Ok(()), save);
    let bundle = client.open(&delivery).await.map_err(Error::of_consumer)?;
    let mut opened = Opened {
        bundle: bundle.bundle_ref().to_owned(),
        recipient: recipient(args, session)?,
        contents: contents(&bundle).await.map_err(Error::of_consumer)?,
        actions: Vec::new(),
        proposal: None,
        saved: args.save.clone().filter(|_| saved.is_ok()),
    };
    let mut refused = saved.err();
    for action in &args.perform {
        let done = bundle.perform(action, |_| async { Handled::Nothing }).await;
        let failure = done.err().map(Error::of_consumer);
        opened.actions.push(Action::of(action, failure.as_ref()));
        refused = refused.or(failure);
    }
    if let Some(proposal) = proposal {
        let proposed = proposal.of_bundle(&opened.contents.facts)?;
        match bundle.propose(&proposed).await {
            Ok(reference) => opened.proposal = Some(reference),
            Err(error) => refused = refused.or(Some(Error::of_consumer(error))),
        }
    }
    opened.show(session)?;
    refused.map_or(Ok(()), Err)
}

/// The consumer's library, as the recipient.
async fn connect(args: &OpenArgs, session: &Session) -> Result<Client, Error> {
    let home = &session.home;
    let shows = match args.mtls {
        true => Shows::Certificate,
        false => Shows::Token,
    };
    let gateway = Gateway::open(session, shows)?;
    // The library knows the gateway by its address and authority only; that is no reason to hand
    // a token to another process of this home.
    gateway.check().await?;
    let config = ClientConfig {
        gateway: format!("https://{}", gateway.authority()),
        authorities_pem: files::load_public(&home.authority(), MAX_PUBLIC_BYTES)?,
        credential: credential(args, session)?,
        recipient: recipient(args, session)?,
        trust: trust(home)?,
    };
    Client::connect(config).map_err(Error::of_consumer)
}

fn credential(args: &OpenArgs, session: &Session) -> Result<Credential, Error> {
    if args.mtls {
        let files = session.home.tls_files(CLIENT);
        return Ok(Credential::Certificate {
            chain_pem: files::load_public(&files.chain, MAX_PUBLIC_BYTES)?,
            key_pem: Zeroizing::new(files::load_secret(&files.key, MAX_SECRET_BYTES)?.to_vec()),
        });
    }
    let claims = Claims {
        sub: &args.recipient,
        client_instance: &args.client_instance,
        tenant: &args.tenant,
        scope: RECIPIENT_SCOPES,
        ttl_s: CALL_TTL_S,
    };
    Ok(Credential::Bearer(token::mint(session, &claims)?))
}

fn recipient(args: &OpenArgs, session: &Session) -> Result<String, Error> {
    if args.mtls {
        return Ok(credentials(session, CLIENT)?.own().id.to_string());
    }
    Ok(args.recipient.clone())
}

fn trust(home: &Home) -> Result<Vec<u8>, Error> {
    Ok(files::load_public(&home.trust(), limit(MAX_TRUST_BYTES))?)
}

fn limit(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

async fn contents(bundle: &OpenBundle) -> Result<Contents, cl_sdk::Error> {
    Ok(Contents {
        facts: bundle.facts().await?,
        instructions: bundle.instructions().await?,
        capabilities: bundle.capabilities().await?,
    })
}

/// A proposal from a file, whose sources are not known yet.
struct PlannedProposal {
    path: PathBuf,
    document: Value,
}

impl PlannedProposal {
    fn read(path: &Path) -> Result<Self, Error> {
        let planned = Self {
            path: path.to_owned(),
            document: read_json(path)?,
        };
        planned.of_bundle(&[])?;
        Ok(planned)
    }

    /// The proposal, on all sources of these facts unless the file names some.
    fn of_bundle(&self, facts: &[Fact]) -> Result<Proposal, Error> {
        let handles = match self.document.get("provenance_handles") {
            Some(named) => self.named_handles(named)?,
            None => all_handles(facts),
        };
        let draft = ProposalDraft::read(&self.document, &handles);
        let draft = draft.map_err(|refusal| Error::Document {
            path: self.path.clone(),
            refusal,
        })?;
        Ok(Proposal {
            operation: draft.operation,
            claims: draft.proposed_claims.to_vec(),
            rationale: draft.rationale.to_owned(),
            provenance_handles: draft.provenance_handles.to_vec(),
        })
    }

    fn named_handles(&self, named: &Value) -> Result<Vec<String>, Error> {
        let handles = named.as_array().and_then(|handles| {
            let handles = handles
                .iter()
                .map(|handle| handle.as_str().map(str::to_owned));
            handles.collect::<Option<Vec<_>>>()
        });
        handles.ok_or_else(|| Error::Malformed {
            path: self.path.clone(),
            expected: "a proposal whose provenance_handles are a list of handles",
        })
    }
}

/// Each handle once, in the order of the facts.
fn all_handles(facts: &[Fact]) -> Vec<String> {
    let mut all = Vec::new();
    for handle in facts.iter().flat_map(|fact| &fact.provenance_handles) {
        if !all.contains(handle) {
            all.push(handle.clone());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(text: &str) -> Result<PlannedProposal, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("proposal.json");
        std::fs::write(&path, text).unwrap();
        PlannedProposal::read(&path)
    }

    const CLAIMS: &str = r#""proposed_claims":[{"predicate":"a"}],"rationale":"why""#;

    #[test]
    fn a_proposal_is_checked_before_a_bundle_is_taken() {
        planned(&format!("{{{CLAIMS}}}")).unwrap();
        for (bad, code) in [
            (
                r#"{"rationale":"why"}"#.to_owned(),
                "PROPOSED_CLAIMS_REQUIRED",
            ),
            (
                format!(r#"{{{CLAIMS},"other":1}}"#),
                "INVALID_MEMORY_PROPOSAL",
            ),
            (
                format!(r#"{{{CLAIMS},"provenance_handles":[1]}}"#),
                "FILE_MALFORMED",
            ),
        ] {
            let error = planned(&bad).err().unwrap();
            assert_eq!(error.code(), code, "{bad}");
        }
    }

    #[test]
    fn a_proposal_rests_on_the_sources_that_it_names() {
        let text = format!(r#"{{{CLAIMS},"provenance_handles":["prov_a"]}}"#);
        let proposal = planned(&text).unwrap().of_bundle(&[]).unwrap();
        assert_eq!(proposal.provenance_handles, ["prov_a"]);
    }
}
