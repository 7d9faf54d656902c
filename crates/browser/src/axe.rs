//! Checks of accessibility with axe-core, fetched from its registry and known by its hash.

use std::path::Path;
use std::process::{Command, Stdio};

use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::{Browser, Error};

/// The one release that is used.
const PACKAGE: &str = "axe-core@4.10.3";
/// The SHA-256 of its `axe.min.js`.
const HASH: &str = "880970c081707360e64f34cea25ff91892f5bc95675b0776925b9709dd8a68bb";

/// The rules of WCAG 2.2 at the levels A and AA, and those that are good practice.
const RULES: [&str; 6] = [
    "wcag2a",
    "wcag2aa",
    "wcag21a",
    "wcag21aa",
    "wcag22aa",
    "best-practice",
];

/// The checks, ready to run in any page.
#[derive(Clone, Debug)]
pub struct Axe(String);

impl Axe {
    /// Takes the checks from a folder, or fetches them into it. `None` if there is no `npm`, or no
    /// registry that has them; a file with another hash never counts.
    ///
    /// # Errors
    ///
    /// If the folder cannot be used.
    pub fn fetch(folder: &Path) -> Result<Option<Self>, Error> {
        let file = folder.join("package/axe.min.js");
        if let Some(known) = read(&file) {
            return Ok(Some(known));
        }
        std::fs::create_dir_all(folder)?;
        let ran = |command: &mut Command| {
            let quiet = command.current_dir(folder).stdin(Stdio::null());
            let quiet = quiet.stdout(Stdio::null()).stderr(Stdio::null());
            quiet.status().is_ok_and(|status| status.success())
        };
        let is_there = ran(Command::new("npm").args(["pack", "--silent", PACKAGE]))
            && ran(Command::new("tar").args(["xzf", "axe-core-4.10.3.tgz"]));
        Ok(is_there.then(|| read(&file)).flatten())
    }

    /// What is wrong with the page that a browser shows: the rule, and where.
    ///
    /// # Errors
    ///
    /// If the page cannot be checked.
    pub async fn violations(&self, browser: &Browser) -> Result<Vec<String>, Error> {
        let client = browser.client();
        client.execute(&self.0, Vec::new()).await?;
        let run = "const [rules, done] = arguments; \
            axe.run(document, {runOnly: rules}).then((found) => done(found.violations))";
        let found = client.execute_async(run, vec![json!(RULES)]).await?;
        let found = found.as_array().ok_or(Error::Answer)?;
        let told = |violation: &Value| {
            let nodes = violation["nodes"].as_array().into_iter().flatten();
            let places: Vec<String> = nodes.map(|node| node["target"].to_string()).collect();
            format!("{}: {}", violation["id"], places.join(", "))
        };
        Ok(found.iter().map(told).collect())
    }
}

fn read(file: &Path) -> Option<Axe> {
    let text = std::fs::read_to_string(file).ok()?;
    let hash = HEXLOWER.encode(digest(&SHA256, text.as_bytes()).as_ref());
    (hash == HASH).then_some(Axe(text))
}
