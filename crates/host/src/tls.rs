//! Mutual TLS 1.3 from PEM files, replaced as a whole while connections are served.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use ring::digest;
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, ring as ring_provider};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::{NoServerSessionStorage, VerifierBuilderError, WebPkiClientVerifier};
use rustls::time_provider::TimeProvider;
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_util::sync::CancellationToken;
use zeroize::Zeroizing;

use crate::clock::Clock;
use crate::files::{self, FileError, MAX_PUBLIC_BYTES, MAX_SECRET_BYTES};
use crate::identity::{InvalidPeer, PeerId};

/// The three PEM files behind a process's identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// Own certificate first, then intermediates.
    pub chain: PathBuf,
    /// Private key of the own certificate, mode 0600.
    pub key: PathBuf,
    /// Authorities that peers are verified against, as servers and as clients.
    pub trust: PathBuf,
}

/// How this process presents itself as a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerTls {
    /// Application protocols that are offered.
    pub alpn: Alpn,
    /// Whether clients must show a certificate.
    pub client_auth: ClientAuth,
}

impl ServerTls {
    /// HTTP/2 with a client certificate: every inner service.
    pub const INTERNAL: Self = Self {
        alpn: Alpn::Http2,
        client_auth: ClientAuth::Required,
    };

    /// HTTP/2 and HTTP/1.1, certificate optional: the edges, which authenticate callers themselves.
    pub const EDGE: Self = Self {
        alpn: Alpn::Http2AndHttp1,
        client_auth: ClientAuth::Optional,
    };
}

/// Application protocols of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alpn {
    /// `h2` only.
    Http2,
    /// `h2`, else `http/1.1`.
    Http2AndHttp1,
}

/// Whether clients must show a certificate. One that is shown is verified either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuth {
    /// No handshake without one.
    Required,
    /// Connections without one are anonymous.
    Optional,
}

/// What a look at the files led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reloaded {
    /// The contents are as before.
    Unchanged,
    /// New connections use the new contents.
    Swapped,
}

/// Why key material cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file could not be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file is no PEM of the expected kind.
    #[error("{path}: {source}", path = path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What is wrong with it; carries no content.
        source: pem::Error,
    },
    /// The own certificate names no process.
    #[error("own certificate: {0}")]
    Own(#[from] InvalidPeer),
    /// The own certificate is not valid now.
    #[error(
        "own certificate is valid from {not_before_unix_s} to {not_after_unix_s} (unix seconds)"
    )]
    NotValidNow {
        /// First valid second.
        not_before_unix_s: i64,
        /// Last valid second.
        not_after_unix_s: i64,
    },
    /// The library refuses the material, for example a key that does not fit its certificate.
    #[error("key material: {0}")]
    Material(#[from] rustls::Error),
    /// The authorities cannot verify clients.
    #[error("authorities: {0}")]
    Verifier(#[from] VerifierBuilderError),
}

/// A process's certificate, key and authorities.
///
/// Connections take the configuration that is current when they start; a reload swaps all of it at
/// once, so that authorities rotate like certificates do. Sessions are never resumed: each
/// connection proves both identities again.
pub struct Credentials {
    files: TlsFiles,
    server_tls: ServerTls,
    clock: Arc<dyn Clock>,
    current: ArcSwap<Loaded>,
    reloading: Mutex<()>,
    failed_reloads: AtomicU64,
}

struct Loaded {
    generation: u64,
    fingerprint: [u8; digest::SHA256_OUTPUT_LEN],
    own: PeerId,
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

impl Credentials {
    /// Reads and checks `files`.
    pub fn load(
        files: TlsFiles,
        server_tls: ServerTls,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>, TlsError> {
        let loaded = Pem::read(&files)?.check(&files, server_tls, &clock, 0)?;
        Ok(Arc::new(Self {
            files,
            server_tls,
            clock,
            current: ArcSwap::from_pointee(loaded),
            reloading: Mutex::new(()),
            failed_reloads: AtomicU64::new(0),
        }))
    }

    /// Looks at the files again and uses new contents for new connections. After an error the
    /// old contents stay in use.
    pub fn reload(&self) -> Result<Reloaded, TlsError> {
        let _one_at_a_time = self
            .reloading
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        self.swap_if_changed().inspect_err(|error| {
            self.failed_reloads.fetch_add(1, Ordering::Relaxed);
            tracing::error!(%error, "certificates not reloaded, the old ones stay in use");
        })
    }

    fn swap_if_changed(&self) -> Result<Reloaded, TlsError> {
        let pem = Pem::read(&self.files)?;
        let current = self.current.load();
        if pem.fingerprint() == current.fingerprint {
            return Ok(Reloaded::Unchanged);
        }
        let generation = current.generation + 1;
        let loaded = pem.check(&self.files, self.server_tls, &self.clock, generation)?;
        tracing::info!(
            id = %loaded.own.id,
            serial = loaded.own.serial,
            not_after_unix_s = loaded.own.not_after_unix_s,
            "certificates reloaded"
        );
        self.current.store(Arc::new(loaded));
        Ok(Reloaded::Swapped)
    }

    /// Reloads every `interval` until `stop`.
    pub async fn watch(self: Arc<Self>, interval: Duration, stop: CancellationToken) {
        while stop
            .run_until_cancelled(tokio::time::sleep(interval))
            .await
            .is_some()
        {
            let this = Arc::clone(&self);
            // The error is logged and counted where it arises. Files may sit on a slow mount.
            let looked = tokio::task::spawn_blocking(move || this.reload().is_ok()).await;
            if looked.is_err() {
                tracing::error!("looking at the certificates panicked");
            }
        }
    }

    /// Who this process is.
    pub fn own(&self) -> PeerId {
        self.current.load().own.clone()
    }

    /// Counts the swaps so far.
    pub fn generation(&self) -> u64 {
        self.current.load().generation
    }

    /// Counts the reloads that failed.
    pub fn failed_reloads(&self) -> u64 {
        self.failed_reloads.load(Ordering::Relaxed)
    }

    /// The configuration for the next accepted connection.
    pub fn server_config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.load().server)
    }

    /// The configuration for the next dialled connection.
    pub fn client_config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.current.load().client)
    }

    /// How this process presents itself as a server.
    pub fn server_tls(&self) -> ServerTls {
        self.server_tls
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let current = self.current.load();
        f.debug_struct("Credentials")
            .field("files", &self.files)
            .field("own", &current.own)
            .field("generation", &current.generation)
            .finish_non_exhaustive()
    }
}

/// The raw contents of the three files.
struct Pem {
    chain: Vec<u8>,
    key: Zeroizing<Vec<u8>>,
    trust: Vec<u8>,
}

impl Pem {
    fn read(files: &TlsFiles) -> Result<Self, FileError> {
        Ok(Self {
            chain: files::load_public(&files.chain, MAX_PUBLIC_BYTES)?,
            key: files::load_secret(&files.key, MAX_SECRET_BYTES)?,
            trust: files::load_public(&files.trust, MAX_PUBLIC_BYTES)?,
        })
    }

    fn fingerprint(&self) -> [u8; digest::SHA256_OUTPUT_LEN] {
        let mut all = digest::Context::new(&digest::SHA256);
        for part in [self.chain.as_slice(), self.key.as_slice(), &self.trust] {
            all.update(&part.len().to_be_bytes());
            all.update(part);
        }
        let mut fingerprint = [0; digest::SHA256_OUTPUT_LEN];
        fingerprint.copy_from_slice(all.finish().as_ref());
        fingerprint
    }

    fn check(
        &self,
        files: &TlsFiles,
        server_tls: ServerTls,
        clock: &Arc<dyn Clock>,
        generation: u64,
    ) -> Result<Loaded, TlsError> {
        let chain = certificates(&files.chain, &self.chain)?;
        let own = chain
            .first()
            .ok_or(TlsError::Own(InvalidPeer::Malformed))
            .and_then(|leaf| Ok(PeerId::from_certificate(leaf)?))?;
        let now_unix_s = clock.now_unix_ms().div_euclid(1000);
        if !(own.not_before_unix_s..=own.not_after_unix_s).contains(&now_unix_s) {
            return Err(TlsError::NotValidNow {
                not_before_unix_s: own.not_before_unix_s,
                not_after_unix_s: own.not_after_unix_s,
            });
        }
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|source| TlsError::Pem {
            path: files.key.clone(),
            source,
        })?;
        let mut roots = RootCertStore::empty();
        for root in certificates(&files.trust, &self.trust)? {
            roots.add(root)?;
        }
        let parts = Parts {
            provider: Arc::new(ring_provider::default_provider()),
            time: Arc::new(ClockTime(Arc::clone(clock))),
            roots: Arc::new(roots),
            chain,
            key,
        };
        Ok(Loaded {
            generation,
            fingerprint: self.fingerprint(),
            own,
            server: Arc::new(parts.server(server_tls)?),
            client: Arc::new(parts.client()?),
        })
    }
}

fn certificates(
    path: &std::path::Path,
    bytes: &[u8],
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let pem_error = |source| TlsError::Pem {
        path: path.to_owned(),
        source,
    };
    let found = CertificateDer::pem_slice_iter(bytes)
        .collect::<Result<Vec<_>, _>>()
        .map_err(pem_error)?;
    if found.is_empty() {
        return Err(pem_error(pem::Error::NoItemsFound));
    }
    Ok(found)
}

struct Parts {
    provider: Arc<CryptoProvider>,
    time: Arc<ClockTime>,
    roots: Arc<RootCertStore>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Parts {
    fn server(&self, tls: ServerTls) -> Result<ServerConfig, TlsError> {
        let verifier = WebPkiClientVerifier::builder_with_provider(
            Arc::clone(&self.roots),
            Arc::clone(&self.provider),
        );
        let verifier = match tls.client_auth {
            ClientAuth::Required => verifier,
            ClientAuth::Optional => verifier.allow_unauthenticated(),
        };
        let time: Arc<dyn TimeProvider> = Arc::<ClockTime>::clone(&self.time);
        let mut config = ServerConfig::builder_with_details(Arc::clone(&self.provider), time)
            .with_protocol_versions(&[&TLS13])?
            .with_client_cert_verifier(verifier.build()?)
            .with_single_cert(self.chain.clone(), self.key.clone_key())?;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        config.alpn_protocols = match tls.alpn {
            Alpn::Http2 => vec![b"h2".to_vec()],
            Alpn::Http2AndHttp1 => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        };
        Ok(config)
    }

    fn client(&self) -> Result<ClientConfig, TlsError> {
        let time: Arc<dyn TimeProvider> = Arc::<ClockTime>::clone(&self.time);
        let mut config = ClientConfig::builder_with_details(Arc::clone(&self.provider), time)
            .with_protocol_versions(&[&TLS13])?
            .with_root_certificates(Arc::clone(&self.roots))
            .with_client_auth_cert(self.chain.clone(), self.key.clone_key())?;
        config.resumption = Resumption::disabled();
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(config)
    }
}

/// Certificates are judged by the injected clock.
#[derive(Debug)]
struct ClockTime(Arc<dyn Clock>);

impl TimeProvider for ClockTime {
    fn current_time(&self) -> Option<UnixTime> {
        let ms = u64::try_from(self.0.now_unix_ms()).ok()?;
        Some(UnixTime::since_unix_epoch(Duration::from_millis(ms)))
    }
}
