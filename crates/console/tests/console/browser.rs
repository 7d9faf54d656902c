//! The pages in a real browser, with a passkey in software: what people do, what others try, what it
//! looks like, and whether everybody can use it.

use std::path::{Path, PathBuf};

use cl_browser::{Authenticator, Axe, Browser};
use cl_testbed::{until, within};
use cl_wire::policy::v1::ApprovalState;
use data_encoding::BASE64URL_NOPAD;
use fantoccini::Locator;
use fantoccini::actions::{InputSource, KeyAction, KeyActions};
use fantoccini::key::Key;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::items::{TAG, decision, item};
use crate::world::World;

/// Everything that a test does in a browser; `None` where none is installed.
struct Window<'a> {
    world: &'a World,
    browser: Browser,
    passkeys: Authenticator,
}

impl<'a> Window<'a> {
    async fn open(world: &'a World) -> Option<Self> {
        if !Browser::is_installed() {
            eprintln!("skipped: chromium and chromium-driver are not installed");
            return None;
        }
        let browser = within("the browser", Browser::start()).await.unwrap();
        let passkeys = browser.plug_in().await.unwrap();
        Some(Self {
            world,
            browser,
            passkeys,
        })
    }

    async fn goto(&self, path: &str) {
        let address = format!("{}{path}", self.world.origin);
        within("a page", self.browser.client().goto(&address))
            .await
            .unwrap();
    }

    async fn find(&self, css: &str) -> fantoccini::elements::Element {
        let client = self.browser.client();
        until(css, async || client.find(Locator::Css(css)).await.ok()).await
    }

    async fn text(&self, css: &str) -> String {
        let client = self.browser.client();
        // A page may go away between finding and reading.
        let read = async || {
            let found = client.find(Locator::Css(css)).await.ok()?;
            found.text().await.ok()
        };
        until(css, read).await
    }

    async fn run(&self, script: &str) -> Value {
        self.browser
            .client()
            .execute(script, Vec::new())
            .await
            .unwrap()
    }

    /// Presses a button when the page lets it count.
    async fn press(&self, css: &str) {
        self.find(css).await;
        // Longer than the page ignores clicks for; a click too early is a test of its own.
        tokio::time::sleep(std::time::Duration::from_millis(900)).await;
        self.find(css).await.click().await.unwrap();
    }

    async fn key(&self, key: Key) {
        let keys = KeyActions::new("keyboard".to_owned())
            .then(KeyAction::Down { value: key.into() })
            .then(KeyAction::Up { value: key.into() });
        self.browser.client().perform_actions(keys).await.unwrap();
    }

    /// Enrols by a link, is confirmed, and signs in.
    async fn sign_in(&self) {
        self.world.engine.open_link([8; 32]);
        let token = BASE64URL_NOPAD.encode(&[8; 32]);
        self.goto(&format!("/enrol#{token}")).await;
        until("the person", async || {
            (self.text("[data-person]").await == crate::items::PERSON).then_some(())
        })
        .await;
        let address = self.browser.client().current_url().await.unwrap();
        assert_eq!(address.fragment(), None, "the token is out of the address");
        self.press("button.primary").await;
        assert_eq!(
            self.text("[data-fingerprint]").await,
            "0123 4567 89ab cdef 0123"
        );
        self.confirm().await;
        self.goto("/sign-in").await;
        self.press("button.primary").await;
        self.find("nav[aria-label=Main]").await;
    }

    /// What the operator does.
    async fn confirm(&self) {
        for passkey in self.browser.passkeys(&self.passkeys).await.unwrap() {
            let id = passkey["credentialId"].as_str().unwrap();
            self.world
                .engine
                .know(&BASE64URL_NOPAD.decode(id.as_bytes()).unwrap());
        }
    }
}

fn pictures() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("console-screenshots")
}

#[tokio::test]
async fn a_person_enrols_signs_in_and_answers() {
    let world = World::new().await;
    let Some(window) = Window::open(&world).await else {
        return;
    };
    for name in ["one", "two"] {
        world.engine.put(item(name));
    }
    window.sign_in().await;
    // A part.
    window.goto("/approvals/one").await;
    window.press("#selector-amount_due").await;
    window.press("button[value=part]").await;
    window.find("[data-challenge]").await;
    let review = window.text("main").await;
    assert!(
        review.contains("You grant") && review.contains("You decline"),
        "{review}"
    );
    window.press("button[data-guarded]").await;
    let result = window.find("[data-result]").await;
    assert_eq!(
        result.attr("data-result").await.unwrap().as_deref(),
        Some("granted")
    );
    let focused = window.run("return document.activeElement.id").await;
    assert_eq!(focused, "title", "the result is where the reader is");
    assert_eq!(world.engine.answers()[0].granted_selectors, ["amount_due"]);
    // Nothing.
    window.goto("/approvals/two").await;
    window.press("button[value=deny]").await;
    window.find("[data-challenge]").await;
    window.press("button[data-guarded]").await;
    let result = window.find("[data-result]").await;
    assert_eq!(
        result.attr("data-result").await.unwrap().as_deref(),
        Some("not-granted")
    );
    // One that ran out while it was looked at.
    world.engine.put(item("three"));
    window.goto("/approvals/three").await;
    world
        .engine
        .change("three", |it| it.state = ApprovalState::Expired.into());
    window.press("button[value=all]").await;
    assert_eq!(window.text("[data-code]").await, "APPROVAL_EXPIRED");
    assert_eq!(world.engine.answers().len(), 2);
    window.browser.close().await.unwrap();
}

#[tokio::test]
async fn early_clicks_and_clicks_of_scripts_grant_nothing() {
    let world = World::new().await;
    let Some(window) = Window::open(&world).await else {
        return;
    };
    world.engine.put(item("one"));
    window.sign_in().await;
    window.goto("/approvals/one").await;
    let grant = "document.querySelector('button[value=all]')";
    // In one go, so that nothing but the page decides how early it is.
    let early = format!(
        "dispatchEvent(new Event('focus')); {grant}.click(); \
         return [location.pathname, document.querySelector('[data-status]').textContent]"
    );
    let found = window.run(&early).await;
    assert_eq!(found[0], "/approvals/one");
    assert!(
        found[1].as_str().unwrap().contains("That was quick"),
        "{found}"
    );
    // A click of the person's, right after the button has moved.
    let button = window.find("button[value=all]").await;
    tokio::time::sleep(std::time::Duration::from_millis(900)).await;
    window
        .run("setInterval(() => document.querySelector('main').prepend(document.createElement('hr')), 100)")
        .await;
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    // The driver itself may find that it moves too much.
    let _pressed = button.click().await;
    let address = window.browser.client().current_url().await.unwrap();
    assert_eq!(address.path(), "/approvals/one");
    // Later, a script's click still does not count.
    window.goto("/approvals/one").await;
    tokio::time::sleep(std::time::Duration::from_millis(900)).await;
    window.run(&format!("{grant}.click()")).await;
    let address = window.browser.client().current_url().await.unwrap();
    assert_eq!(address.path(), "/approvals/one");
    window.press("button[value=all]").await;
    window.find("[data-challenge]").await;
    assert!(window.text("h1").await.contains("Confirm"));
    assert!(world.engine.answers().is_empty());
    window.browser.close().await.unwrap();
}

#[tokio::test]
async fn another_site_can_neither_frame_nor_post() {
    let world = World::new().await;
    let Some(window) = Window::open(&world).await else {
        return;
    };
    world.engine.put(item("one"));
    window.sign_in().await;
    let page = format!(
        "<!doctype html><title>evil</title>\
         <iframe src='{0}/approvals/one' width=800 height=600></iframe>\
         <form method=post action='{0}/approvals/one/answer'>\
         <input name=answer value=all><button>Win a prize</button></form>",
        world.origin
    );
    let evil = site(page).await;
    let client = window.browser.client();
    client.goto(&evil).await.unwrap();
    until("the frame", async || {
        let frame = client.find(Locator::Css("iframe")).await.ok()?;
        frame.enter_frame().await.ok()
    })
    .await;
    let drawn = client
        .execute("return document.body.innerText", Vec::new())
        .await
        .unwrap();
    assert!(
        !drawn.as_str().unwrap().contains("To draft a response"),
        "{drawn}"
    );
    client.enter_parent_frame().await.unwrap();
    window.find("button").await.click().await.unwrap();
    assert_eq!(window.text("[data-code]").await, "ORIGIN_NOT_ALLOWED");
    assert!(world.engine.answers().is_empty());
    window.browser.close().await.unwrap();
}

#[tokio::test]
async fn a_keyboard_is_enough() {
    let world = World::new().await;
    let Some(window) = Window::open(&world).await else {
        return;
    };
    world.engine.put(item("one"));
    window.sign_in().await;
    window.goto("/approvals/one").await;
    let reach = async |wanted: &str| {
        for _ in 0..60 {
            window.key(Key::Tab).await;
            let is_there = format!("return document.activeElement.matches('{wanted}')");
            if window.run(&is_there).await == true {
                let outline = "return getComputedStyle(document.activeElement).outlineStyle";
                assert_ne!(
                    window.run(outline).await,
                    "none",
                    "{wanted} shows its focus"
                );
                return;
            }
        }
        panic!("no way to {wanted}");
    };
    reach("a.skip").await;
    reach("#selector-amount_due").await;
    window.key(Key::Space).await;
    reach("button[value=part]").await;
    tokio::time::sleep(std::time::Duration::from_millis(900)).await;
    window.key(Key::Enter).await;
    until("the review", async || {
        window.text("h1").await.contains("Confirm").then_some(())
    })
    .await;
    reach("button[data-guarded]").await;
    tokio::time::sleep(std::time::Duration::from_millis(900)).await;
    window.key(Key::Enter).await;
    window.find("[data-result=granted]").await;
    assert_eq!(world.engine.answers()[0].granted_selectors, ["amount_due"]);
    window.browser.close().await.unwrap();
}

#[tokio::test]
async fn every_page_has_its_picture_and_everybody_can_use_it() {
    let world = World::new().await;
    let Some(window) = Window::open(&world).await else {
        return;
    };
    let axe = Axe::fetch(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("axe")).unwrap();
    if axe.is_none() {
        eprintln!("accessibility is not checked: no npm, or no registry that has axe-core");
    }
    world.engine.open_link([9; 32]);
    let token = BASE64URL_NOPAD.encode(&[9; 32]);
    let gallery = Gallery {
        window: &window,
        axe: axe.as_ref(),
    };
    window.goto("/sign-in").await;
    gallery.take("sign-in").await;
    window.goto(&format!("/enrol#{token}")).await;
    gallery.take("enrol").await;
    window.press("button.primary").await;
    window.find("[data-fingerprint]").await;
    gallery.take("enrolled").await;
    window.confirm().await;
    window.goto("/sign-in").await;
    window.press("button.primary").await;
    window.find("nav[aria-label=Main]").await;
    gallery.take("queue-empty").await;
    for name in ["one", "two", "three"] {
        world.engine.put(item(name));
    }
    world.engine.decide(decision("d1"));
    let id = world.receipts.append("policy.decide", Some(TAG));
    for (path, name) in [
        ("/approvals", "queue"),
        ("/approvals/one", "item"),
        ("/access", "access"),
        ("/access/d1/revoke", "revoke"),
        ("/decisions", "decisions"),
        ("/receipts", "receipts"),
        (&format!("/receipts/{id}"), "receipt"),
        ("/approvals/unknown", "error"),
    ] {
        window.goto(path).await;
        gallery.take(name).await;
    }
    window.goto("/approvals/one").await;
    window.press("button[value=part]").await;
    window.find("[role=alert] a").await;
    gallery.take("item-problem").await;
    window.press("#selector-amount_due").await;
    window.press("button[value=part]").await;
    window.find("[data-challenge]").await;
    gallery.take("review").await;
    window.press("button[data-guarded]").await;
    window.find("[data-result]").await;
    gallery.take("result").await;
    window.goto("/approvals/two").await;
    let mut newer = item("four");
    newer.request_ref = "urn:cl:request:two".to_owned();
    newer.purpose = "Something else".to_owned();
    newer.selectors.truncate(2);
    world.engine.put(newer);
    world
        .engine
        .change("two", |it| it.state = ApprovalState::Replaced.into());
    window.press("button[value=all]").await;
    window.find("[data-changed]").await;
    gallery.take("item-changed").await;
    world
        .engine
        .change("three", |it| it.state = ApprovalState::Expired.into());
    window.goto("/approvals/three").await;
    gallery.take("item-expired").await;
    world.receipts.forge();
    window.goto(&format!("/receipts/{id}")).await;
    gallery.take("receipt-forged").await;
    window.browser.close().await.unwrap();
}

struct Gallery<'a> {
    window: &'a Window<'a>,
    axe: Option<&'a Axe>,
}

impl Gallery<'_> {
    /// Pictures on a desk and on a phone, in light and dark; and what the checks say of both.
    async fn take(&self, name: &str) {
        let browser = &self.window.browser;
        for (width, kind) in [(1280, "desk"), (390, "phone")] {
            let file = pictures().join(format!("{name}-{kind}.png"));
            browser.picture(width, &file).await.unwrap();
        }
        browser.use_dark_colours(true).await.unwrap();
        let file = pictures().join(format!("{name}-dark.png"));
        browser.picture(1280, &file).await.unwrap();
        if let Some(axe) = self.axe {
            let found = axe.violations(browser).await.unwrap();
            assert!(found.is_empty(), "{name} in dark: {found:#?}");
        }
        browser.use_dark_colours(false).await.unwrap();
        // As narrow as a page gets at 1280 pixels and 400 % zoom.
        browser.make_wide(Some(320)).await.unwrap();
        let overflow =
            "const root = document.documentElement; return root.scrollWidth - innerWidth";
        assert_eq!(
            self.window.run(overflow).await,
            json!(0),
            "{name} is too wide"
        );
        if let Some(axe) = self.axe {
            let found = axe.violations(browser).await.unwrap();
            assert!(found.is_empty(), "{name}: {found:#?}");
        }
        browser.make_wide(None).await.unwrap();
    }
}

/// A site of somebody else's, on plain HTTP; its address.
async fn site(page: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = [0; 4096];
            let _read = stream.read(&mut head).await;
            let length = page.len();
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\n\
                 Connection: close\r\n\r\n{page}"
            );
            let _written = stream.write_all(answer.as_bytes()).await;
            let _closed = stream.shutdown().await;
        }
    });
    address
}
