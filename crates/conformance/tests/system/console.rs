//! People who approve: real processes, a real browser, and a passkey in software.

use std::time::Duration;

use cl_browser::{Authenticator, Browser};
use cl_host::clock::{Clock, SystemClock};
use cl_wire::exchange::v1::{GetRequestRequest, RequestState};
use fantoccini::Locator;
use serde_json::{Value, json};

use crate::decisions::submit;
use crate::deployment::{CONSOLE, Deployment, until};
use crate::exchange::capture;

const PERSON: &str = "urn:cl:person:primary";

/// Two facts need the person; the rest is as in the first policy.
fn gate(snapshot: &mut Value) {
    snapshot["policy"]["allowed_selectors"] = json!(["requested_delivery_date"]);
    snapshot["policy"]["approval_required_selectors"] =
        json!(["requesting_stakeholder", "amount_due"]);
}

/// A person at a browser; none where no browser is installed.
struct Desk {
    deployment: Deployment,
    browser: Browser,
    passkeys: Authenticator,
}

impl Desk {
    async fn set_up() -> Option<Self> {
        if !Browser::is_installed() {
            eprintln!("skipped: chromium and chromium-driver are not installed");
            return None;
        }
        let mut deployment = Deployment::start_with(gate).await;
        // Without a fact there would be nothing to hand over.
        capture(&deployment);
        deployment.run(CONSOLE).await;
        let browser = Browser::start().await.unwrap();
        let passkeys = browser.plug_in().await.unwrap();
        Some(Self {
            deployment,
            browser,
            passkeys,
        })
    }

    async fn goto(&self, path: &str) {
        let address = format!("{}{path}", self.deployment.console_url());
        self.browser.client().goto(&address).await.unwrap();
    }

    async fn text(&self, css: &str) -> String {
        let client = self.browser.client();
        let read = async || {
            let found = client.find(Locator::Css(css)).await.ok()?;
            found.text().await.ok()
        };
        until(css, read).await
    }

    async fn press(&self, css: &str) {
        self.text(css).await;
        // Longer than the page ignores clicks for.
        tokio::time::sleep(Duration::from_millis(900)).await;
        let button = self.browser.client().find(Locator::Css(css)).await;
        button.unwrap().click().await.unwrap();
    }

    /// Until the page has this code, or this result.
    async fn told(&self, css: &str, attribute: Option<&str>) -> String {
        let client = self.browser.client();
        let read = async || {
            let found = client.find(Locator::Css(css)).await.ok()?;
            match attribute {
                None => found.text().await.ok(),
                Some(name) => found.attr(name).await.ok()?,
            }
        };
        until(css, read).await
    }

    async fn sign_in(&self) {
        self.goto("/sign-in").await;
        self.press("button.primary").await;
    }

    /// Enrols by a link of the operator's, who confirms; then signs in.
    async fn enrol(&self) {
        let link = self.deployment.clctl(&["approvers", "enrol", PERSON]);
        let link = link["link"].as_str().unwrap();
        self.browser.client().goto(link).await.unwrap();
        until("the person", async || {
            (self.text("[data-person]").await == PERSON).then_some(())
        })
        .await;
        self.press("button.primary").await;
        let fingerprint = self.text("[data-fingerprint]").await;
        // Nobody has confirmed it: it opens nothing.
        self.sign_in().await;
        assert_eq!(self.told("[data-code]", None).await, "CREDENTIAL_INACTIVE");
        let listed = self.deployment.clctl(&["approvers", "list"]);
        let credential = &listed["credentials"][0];
        assert_eq!(credential["fingerprint"], fingerprint.as_str(), "{listed}");
        let name = credential["credential"].as_str().unwrap();
        let confirm = ["approvers", "confirm", name, &fingerprint];
        self.deployment.clctl(&confirm);
        self.sign_in().await;
        self.text("nav[aria-label=Main]").await;
    }

    /// Has the home's client ask, and opens the item that waits for it.
    async fn ask(&self, request: &Value) -> String {
        let decision = submit(&self.deployment.exchange(), request).await.unwrap();
        let decision: Value = serde_json::from_slice(&decision).unwrap();
        assert_eq!(decision["decision"], "needs_approval", "{decision}");
        self.goto("/approvals").await;
        let client = self.browser.client();
        let link = client.find(Locator::Css("article h2 a")).await.unwrap();
        let path = link.attr("href").await.unwrap().unwrap();
        self.goto(&path).await;
        path
    }

    async fn standing(&self, request: &Value) -> (RequestState, Value) {
        let message = GetRequestRequest {
            request_ref: request["id"].as_str().unwrap().to_owned(),
            wait_seconds: 0,
        };
        let answer = self.deployment.exchange().get_request(message).await;
        let status = answer.unwrap().into_inner().status.unwrap();
        let decision = serde_json::from_slice(&status.decision).unwrap();
        (status.state(), decision)
    }

    /// How many receipts there are of an operation.
    fn count(&self, operation: &str) -> usize {
        let receipts = self.deployment.receipts();
        let of = |it: &&Value| it["receipt"]["operation"] == operation;
        receipts.iter().filter(of).count()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_grants_a_part_looks_back_and_takes_it_back() {
    let Some(desk) = Desk::set_up().await else {
        return;
    };
    desk.enrol().await;
    let request = desk.deployment.request("part");
    desk.ask(&request).await;
    desk.press("#selector-requesting_stakeholder").await;
    desk.press("button[value=part]").await;
    desk.press("button[data-guarded]").await;
    assert_eq!(
        desk.told("[data-result]", Some("data-result")).await,
        "granted"
    );
    // At once, or a little later.
    let decision = until("the bundle", async || {
        let (state, decision) = desk.standing(&request).await;
        (state == RequestState::Issued).then_some(decision)
    })
    .await;
    let granted = decision["granted_selectors"].to_string();
    assert!(granted.contains("requesting_stakeholder"), "{decision}");
    assert!(!granted.contains("amount_due"), "{decision}");
    // What was signed verifies by itself, for this console.
    let name = decision["id"].as_str().unwrap();
    let artefact = desk.deployment.clctl(&["approvals", "show", name]);
    let file = desk.deployment.home().join("approval.json");
    std::fs::write(&file, artefact.to_string()).unwrap();
    let file = file.display().to_string();
    let origin = desk.deployment.console_url();
    let verify = ["approvals", "verify", &file, "--origin", &origin];
    desk.deployment.clctl(&verify);
    // The evidence is there, and verifies in the console.
    assert_eq!(desk.count("policy.approve"), 1);
    desk.goto(&format!("/receipts?decision={name}")).await;
    let client = desk.browser.client();
    let link = client.find(Locator::Css("article h2 a")).await.unwrap();
    link.click().await.unwrap();
    assert_eq!(
        desk.told("[data-proof]", Some("data-proof")).await,
        "verified"
    );
    desk.goto("/decisions").await;
    assert!(desk.text("main").await.contains("SELECTORS_WITHHELD"));
    // And back.
    desk.goto("/access").await;
    desk.press("article p a.button").await;
    desk.press("button.danger").await;
    assert_eq!(
        desk.told("[data-result]", Some("data-result")).await,
        "revoked"
    );
    assert_eq!(desk.standing(&request).await.0, RequestState::Revoked);
    // Nothing that is asked for again is granted by an answer that was given.
    let other = desk.deployment.request("denied");
    desk.ask(&other).await;
    desk.press("button[value=deny]").await;
    desk.press("button[data-guarded]").await;
    assert_eq!(
        desk.told("[data-result]", Some("data-result")).await,
        "not-granted"
    );
    let (state, decision) = desk.standing(&other).await;
    assert_eq!(
        (state, decision["decision"].as_str()),
        (RequestState::Decided, Some("deny"))
    );
    desk.browser.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_no_longer_fits_grants_nothing() {
    let Some(desk) = Desk::set_up().await else {
        return;
    };
    desk.enrol().await;
    // The requester asks for more, under the same name, while the page is open.
    let mut request = desk.deployment.request("changing");
    let more = request["selectors"].as_array_mut().unwrap().pop().unwrap();
    desk.ask(&request).await;
    request["selectors"].as_array_mut().unwrap().push(more);
    submit(&desk.deployment.exchange(), &request).await.unwrap();
    desk.press("button[value=all]").await;
    assert_eq!(desk.told("[data-code]", None).await, "APPROVAL_CHANGED");
    let page = desk.text("main").await;
    assert!(
        page.contains("Amount due is asked for in addition."),
        "{page}"
    );
    assert_eq!(
        desk.standing(&request).await.0,
        RequestState::PendingApproval
    );
    // Another policy is active when the passkey has signed.
    desk.press("button[value=all]").await;
    desk.text("[data-challenge]").await;
    let policy = desk.deployment.home().join("policy/default.json");
    let mut snapshot: Value = serde_json::from_slice(&std::fs::read(&policy).unwrap()).unwrap();
    snapshot["version"] = json!("default-2");
    snapshot["policy"]["approval_required_selectors"] = json!(["requesting_stakeholder"]);
    std::fs::write(&policy, snapshot.to_string()).unwrap();
    let put = desk
        .deployment
        .clctl(&["policy", "put", &policy.display().to_string()]);
    desk.deployment
        .clctl(&["policy", "activate", put["digest"].as_str().unwrap()]);
    desk.press("button[data-guarded]").await;
    assert_eq!(
        desk.told("[data-code]", None).await,
        "APPROVAL_POLICY_CHANGED"
    );
    let page = desk.text("main").await;
    assert!(
        page.contains("it is denied whatever you answer now"),
        "{page}"
    );
    assert_eq!(
        desk.standing(&request).await.0,
        RequestState::PendingApproval
    );
    assert_eq!(desk.count("policy.approve"), 0);
    assert!(desk.count("policy.refuse_approval") >= 1);
    // What the new policy still gates can be granted, and no more than that.
    desk.press("button[value=all]").await;
    desk.press("button[data-guarded]").await;
    assert_eq!(
        desk.told("[data-result]", Some("data-result")).await,
        "granted"
    );
    let (_, decision) = desk.standing(&request).await;
    assert_eq!(decision["policy_snapshot"]["version"], "default-2");
    assert!(
        !decision["granted_selectors"]
            .to_string()
            .contains("amount_due")
    );
    desk.browser.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn late_answers_and_copied_passkeys_grant_nothing() {
    let Some(desk) = Desk::set_up().await else {
        return;
    };
    desk.enrol().await;
    let copy = desk
        .browser
        .passkeys(&desk.passkeys)
        .await
        .unwrap()
        .remove(0);
    // A request that runs out while it is looked at.
    let mut request = desk.deployment.request("late");
    let ends = SystemClock.now_unix_ms() + 15_000;
    let ends = cl_model::time::UnixTime::from_milliseconds(ends);
    request["expires_at"] = json!(ends.to_string());
    desk.ask(&request).await;
    until("its end", async || {
        (SystemClock.now_unix_ms() > ends.milliseconds()).then_some(())
    })
    .await;
    desk.press("button[value=all]").await;
    assert_eq!(desk.told("[data-code]", None).await, "APPROVAL_EXPIRED");
    assert!(desk.text("[data-state]").await.contains("expired"));
    assert_eq!(desk.standing(&request).await.0, RequestState::Expired);
    // The passkey goes on; then its older copy signs.
    let request = desk.deployment.request("copied");
    desk.ask(&request).await;
    desk.press("button[value=deny]").await;
    desk.press("button[data-guarded]").await;
    assert_eq!(
        desk.told("[data-result]", Some("data-result")).await,
        "not-granted"
    );
    desk.browser
        .put_passkey(&desk.passkeys, copy)
        .await
        .unwrap();
    let request = desk.deployment.request("by-the-copy");
    desk.ask(&request).await;
    desk.press("button[value=all]").await;
    desk.press("button[data-guarded]").await;
    assert_eq!(
        desk.told("[data-code]", None).await,
        "CREDENTIAL_POSSIBLE_CLONE"
    );
    assert_eq!(
        desk.standing(&request).await.0,
        RequestState::PendingApproval
    );
    assert_eq!(desk.count("policy.approve"), 1, "the one that denied");
    desk.browser.close().await.unwrap();
}
