//! A headless browser with a passkey, so that tests see pages as people do.
//!
//! **Role.** It starts Debian's Chromium under its driver, with a profile of its own, and gives tests
//! what WebDriver has no short words for: passkeys in software, pictures of whole pages, and checks
//! of accessibility.
//!
//! **Holds.** The keys of its passkeys, in the browser's memory.
//!
//! **Trusts.** The test, the browser, and any certificate.
//!
//! **A compromise yields** nothing: no service depends on it.

#![deny(missing_docs)]

mod axe;
mod command;

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use data_encoding::BASE64;
use fantoccini::error::{CmdError, NewSessionError};
use fantoccini::{Client, ClientBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

pub use self::axe::Axe;
use self::command::Session;

/// Where Debian installs them.
const CHROMIUM: &str = "/usr/bin/chromium";
const DRIVER: &str = "/usr/bin/chromedriver";

/// Far longer than a start takes; only a hang reaches it.
const START_LIMIT: Duration = Duration::from_secs(120);

const FLAGS: [&str; 11] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--window-size=1280,900",
];

/// Why a browser did not do what a test wanted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program or a file.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The driver does not say where it listens, or does not answer.
    #[error("the driver does not start")]
    NoDriver,
    /// There is no session.
    #[error(transparent)]
    Session(#[from] Box<NewSessionError>),
    /// A command failed.
    #[error(transparent)]
    Command(#[from] Box<CmdError>),
    /// An answer has another form.
    #[error("the browser's answer has another form")]
    Answer,
}

impl From<NewSessionError> for Error {
    fn from(error: NewSessionError) -> Self {
        Self::Session(Box::new(error))
    }
}

impl From<CmdError> for Error {
    fn from(error: CmdError) -> Self {
        Self::Command(Box::new(error))
    }
}

/// A browser; it ends when it is dropped.
pub struct Browser {
    client: Client,
    _driver: Child,
    _profile: TempDir,
}

/// A passkey authenticator in software, plugged into a browser.
#[derive(Clone, Debug)]
pub struct Authenticator(String);

impl Browser {
    /// Whether browser and driver are installed.
    pub fn is_installed() -> bool {
        Path::new(CHROMIUM).exists() && Path::new(DRIVER).exists()
    }

    /// Starts a browser.
    ///
    /// # Errors
    ///
    /// If browser or driver do not start.
    pub async fn start() -> Result<Self, Error> {
        let mut driver = Command::new(DRIVER)
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let output = driver.stdout.take().ok_or(Error::NoDriver)?;
        let mut lines = BufReader::new(output).lines();
        let port = async {
            while let Some(line) = lines.next_line().await? {
                let port = line.split_once("successfully on port ");
                let port = port.and_then(|(_, port)| port.trim_end_matches('.').parse().ok());
                if let Some(port) = port {
                    return Ok::<u16, Error>(port);
                }
            }
            Err(Error::NoDriver)
        };
        let port = timeout(START_LIMIT, port).await;
        let port = port.map_err(|_| Error::NoDriver)??;
        // Whoever reads nothing blocks the driver in the end.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let profile = tempfile::tempdir()?;
        let client = connect(port, profile.path()).await?;
        Ok(Self {
            client,
            _driver: driver,
            _profile: profile,
        })
    }

    /// WebDriver.
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// Ends the browser in order.
    ///
    /// # Errors
    ///
    /// If the browser is gone already.
    pub async fn close(self) -> Result<(), Error> {
        Ok(self.client.close().await?)
    }

    async fn session(&self, path: &str, body: Option<Value>) -> Result<Value, Error> {
        let command = Session::post(path, body);
        Ok(self.client.issue_cmd(command).await?)
    }

    /// Runs a command of the DevTools protocol.
    ///
    /// # Errors
    ///
    /// If the browser refuses it.
    pub async fn devtools(&self, command: &str, parameters: Value) -> Result<Value, Error> {
        let body = json!({"cmd": command, "params": parameters});
        self.session("goog/cdp/execute", Some(body)).await
    }

    /// Plugs in an authenticator of this device, which recognises its user at once.
    ///
    /// # Errors
    ///
    /// If the browser refuses it.
    pub async fn plug_in(&self) -> Result<Authenticator, Error> {
        let body = json!({
            "protocol": "ctap2",
            "transport": "internal",
            "hasResidentKey": true,
            "hasUserVerification": true,
            "isUserVerified": true,
            "isUserConsenting": true,
        });
        let id = self.session("webauthn/authenticator", Some(body)).await?;
        let id = id.as_str().ok_or(Error::Answer)?;
        Ok(Authenticator(id.to_owned()))
    }

    /// The passkeys of an authenticator, with their private keys and counters.
    ///
    /// # Errors
    ///
    /// If the authenticator is gone.
    pub async fn passkeys(&self, from: &Authenticator) -> Result<Vec<Value>, Error> {
        let path = format!("webauthn/authenticator/{}/credentials", from.0);
        let found = self.client.issue_cmd(Session::get(&path)).await?;
        Ok(found.as_array().ok_or(Error::Answer)?.clone())
    }

    /// Puts a passkey into an authenticator, in place of the one with its id.
    ///
    /// # Errors
    ///
    /// If the browser refuses it.
    pub async fn put_passkey(&self, into: &Authenticator, passkey: Value) -> Result<(), Error> {
        let base = format!("webauthn/authenticator/{}", into.0);
        let id = passkey["credentialId"].as_str().ok_or(Error::Answer)?;
        let old = Session::delete(&format!("{base}/credentials/{id}"));
        // It may not be there.
        let _removed = self.client.issue_cmd(old).await;
        self.session(&format!("{base}/credential"), Some(passkey))
            .await
            .map(drop)
    }

    /// Makes the window this wide, as a screen of a device is, and takes a picture of the whole page.
    ///
    /// # Errors
    ///
    /// If the browser or the file system refuse it.
    pub async fn picture(&self, width: u32, file: &Path) -> Result<(), Error> {
        self.make_wide(Some(width)).await?;
        let parameters = json!({"format": "png", "captureBeyondViewport": true});
        let taken = self.devtools("Page.captureScreenshot", parameters).await?;
        let data = taken["data"].as_str().ok_or(Error::Answer)?;
        let bytes = BASE64.decode(data.as_bytes()).map_err(|_| Error::Answer)?;
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(file, bytes)?;
        self.make_wide(None).await
    }

    /// Makes the window as wide as a screen of a device, or as it was.
    ///
    /// # Errors
    ///
    /// If the browser refuses it.
    pub async fn make_wide(&self, width: Option<u32>) -> Result<(), Error> {
        match width {
            None => {
                let clear = "Emulation.clearDeviceMetricsOverride";
                self.devtools(clear, json!({})).await.map(drop)
            }
            Some(width) => {
                let metrics = json!({
                    "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600,
                });
                let set = "Emulation.setDeviceMetricsOverride";
                self.devtools(set, metrics).await.map(drop)
            }
        }
    }

    /// Shows pages in dark or in light colours.
    ///
    /// # Errors
    ///
    /// If the browser refuses it.
    pub async fn use_dark_colours(&self, is_dark: bool) -> Result<(), Error> {
        let value = if is_dark { "dark" } else { "light" };
        let features = json!([{"name": "prefers-color-scheme", "value": value}]);
        let set = "Emulation.setEmulatedMedia";
        self.devtools(set, json!({"features": features}))
            .await
            .map(drop)
    }
}

async fn connect(port: u16, profile: &Path) -> Result<Client, Error> {
    let profile = format!("--user-data-dir={}", profile.display());
    let flags: Vec<&str> = FLAGS.into_iter().chain([profile.as_str()]).collect();
    let wanted = json!({
        "acceptInsecureCerts": true,
        "goog:chromeOptions": {"binary": CHROMIUM, "args": flags},
    });
    let Value::Object(wanted) = wanted else {
        return Err(Error::Answer);
    };
    let mut builder = ClientBuilder::new(HttpConnector::new());
    builder.capabilities(wanted);
    let address = format!("http://127.0.0.1:{port}");
    let connecting = async {
        loop {
            match builder.connect(&address).await {
                Ok(client) => return Ok(client),
                Err(NewSessionError::Lost(_) | NewSessionError::Failed(_)) => {
                    sleep(Duration::from_millis(50)).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    };
    timeout(START_LIMIT, connecting)
        .await
        .map_err(|_| Error::NoDriver)?
}
