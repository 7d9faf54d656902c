//! Who is signed in, in which browser.
//!
//! The browser holds a random cookie; the engine's token of the session stays in this process's
//! memory, under the cookie's digest. So a stolen memory image of the browser, a log or a proxy never
//! has what the engine takes, signing out ends a session at once, and a restart ends all of them.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cl_host::ids::{Ids, NoRandomness};
use cl_model::digest::Digest;
use data_encoding::BASE64URL_NOPAD;
use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};
use tokio::time::Instant;
use zeroize::Zeroizing;

use crate::engine::Item;

/// The most sessions at a time; one more ends the one that was idle longest.
const MAX_SESSIONS: usize = 1024;

/// The most items of which a session remembers what it was shown.
const MAX_SHOWN: usize = 32;

/// The most places in lists that a session remembers.
const MAX_PLACES: usize = 64;

const COOKIE_BYTES: usize = 32;

/// What a cookie is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A browser that is not signed in.
    Visit,
    /// One that is.
    Session,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Visit => "__Host-cl-visit",
            Self::Session => "__Host-cl-session",
        }
    }
}

/// A cookie's value: 32 random bytes in unpadded base64url.
#[derive(Clone)]
pub(crate) struct Cookie {
    kind: Kind,
    text: Zeroizing<String>,
}

impl Cookie {
    pub(crate) fn new(kind: Kind, ids: &dyn Ids) -> Result<Self, NoRandomness> {
        let mut bytes = Zeroizing::new([0; COOKIE_BYTES]);
        ids.fill(&mut *bytes)?;
        let text = Zeroizing::new(BASE64URL_NOPAD.encode(&*bytes));
        Ok(Self { kind, text })
    }

    /// A value of the right form.
    pub(crate) fn read(kind: Kind, text: &str) -> Option<Self> {
        let bytes = Zeroizing::new(BASE64URL_NOPAD.decode(text.as_bytes()).ok()?);
        let text = Zeroizing::new(text.to_owned());
        (bytes.len() == COOKIE_BYTES).then_some(Self { kind, text })
    }

    /// The browser's cookie; none if it is missing, malformed or given twice.
    pub(crate) fn of(kind: Kind, headers: &HeaderMap) -> Option<Self> {
        let pairs = headers
            .get_all(COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'));
        let mut values = pairs.filter_map(|pair| {
            let (name, value) = pair.trim_matches(' ').split_once('=')?;
            (name == kind.name()).then_some(value)
        });
        let value = values.next()?;
        values.next().is_none().then(|| Self::read(kind, value))?
    }

    pub(crate) const fn name(&self) -> &'static str {
        self.kind.name()
    }

    pub(crate) fn secret(&self) -> &[u8] {
        self.text.as_bytes()
    }

    #[cfg(test)]
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// `Set-Cookie` that gives it to the browser.
    pub(crate) fn set(&self) -> Option<HeaderValue> {
        let text = Zeroizing::new(format!(
            "{}={}; Path=/; Secure; HttpOnly; SameSite=Strict",
            self.name(),
            self.text.as_str()
        ));
        sensitive(&text)
    }

    /// `Set-Cookie` that takes it away.
    pub(crate) fn clear(kind: Kind) -> Option<HeaderValue> {
        let name = kind.name();
        sensitive(&format!(
            "{name}=; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=0"
        ))
    }

    fn digest(&self) -> Digest {
        Digest::of_bytes(self.secret())
    }
}

impl fmt::Debug for Cookie {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// A person, as the engine signed them in.
#[derive(Clone)]
pub(crate) struct Person {
    /// The engine's token.
    pub(crate) token: Zeroizing<Vec<u8>>,
    pub(crate) tenant: String,
    pub(crate) principal: String,
    /// How long the session lasts at most.
    pub(crate) lasts: Duration,
    /// How long it lasts without a call.
    pub(crate) idles: Duration,
}

struct Session {
    person: Person,
    ends: Instant,
    used: Instant,
    /// What was shown of each item, newest last.
    shown: VecDeque<Item>,
    /// Where lists go on: the engine's tokens may name subjects, so that no address has them.
    places: VecDeque<(u64, String)>,
    next_place: u64,
}

impl Session {
    fn is_open(&self, now: Instant) -> bool {
        now < self.ends && now < self.used + self.person.idles
    }
}

/// The sessions that are open.
#[derive(Default)]
pub(crate) struct Sessions {
    open: Mutex<HashMap<Digest, Session>>,
}

impl Sessions {
    pub(crate) fn begin(&self, cookie: &Cookie, person: Person) {
        let now = Instant::now();
        let mut open = self.open();
        open.retain(|_, session| session.is_open(now));
        if open.len() >= MAX_SESSIONS {
            let idlest = open.iter().min_by_key(|(_, session)| session.used);
            let idlest = idlest.map(|(digest, _)| *digest);
            idlest.and_then(|digest| open.remove(&digest));
        }
        let session = Session {
            ends: now + person.lasts,
            used: now,
            shown: VecDeque::new(),
            places: VecDeque::new(),
            next_place: 1,
            person,
        };
        open.insert(cookie.digest(), session);
    }

    /// Who is signed in with this cookie; a look keeps the session from idling.
    pub(crate) fn person(&self, cookie: &Cookie) -> Option<Person> {
        let now = Instant::now();
        let mut open = self.open();
        let session = open.get_mut(&cookie.digest())?;
        if !session.is_open(now) {
            open.remove(&cookie.digest());
            return None;
        }
        session.used = now;
        Some(session.person.clone())
    }

    pub(crate) fn end(&self, cookie: &Cookie) -> Option<Person> {
        let session = self.open().remove(&cookie.digest());
        session.map(|session| session.person)
    }

    /// Remembers what is shown of an item; what was shown of it before.
    pub(crate) fn show(&self, cookie: &Cookie, item: &Item) -> Option<Item> {
        let mut open = self.open();
        let shown = &mut open.get_mut(&cookie.digest())?.shown;
        let place = shown.iter().position(|old| old.approval == item.approval);
        let before = place.and_then(|place| shown.remove(place));
        if shown.len() == MAX_SHOWN {
            shown.pop_front();
        }
        shown.push_back(item.clone());
        before
    }

    /// What was last shown of an item.
    pub(crate) fn shown(&self, cookie: &Cookie, approval: &str) -> Option<Item> {
        let open = self.open();
        let mut shown = open.get(&cookie.digest())?.shown.iter();
        shown.find(|item| item.approval == approval).cloned()
    }

    /// A number for the place where a list goes on.
    pub(crate) fn remember(&self, cookie: &Cookie, place: &str) -> Option<u64> {
        let mut open = self.open();
        let session = open.get_mut(&cookie.digest())?;
        let known = session.places.iter().find(|(_, known)| known == place);
        if let Some((number, _)) = known {
            return Some(*number);
        }
        if session.places.len() == MAX_PLACES {
            session.places.pop_front();
        }
        let number = session.next_place;
        session.next_place += 1;
        session.places.push_back((number, place.to_owned()));
        Some(number)
    }

    /// The place with a number; none if it is not, or no longer, remembered.
    pub(crate) fn place(&self, cookie: &Cookie, number: u64) -> Option<String> {
        let open = self.open();
        let mut places = open.get(&cookie.digest())?.places.iter();
        let found = places.find(|(known, _)| *known == number);
        found.map(|(_, place)| place.clone())
    }

    fn open(&self) -> MutexGuard<'_, HashMap<Digest, Session>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cl_host::clock::ManualClock;
    use cl_host::ids::SeededIds;

    use super::*;

    fn person() -> Person {
        Person {
            token: Zeroizing::new(vec![1; 32]),
            tenant: "default".to_owned(),
            principal: "urn:person:a".to_owned(),
            lasts: Duration::from_secs(100),
            idles: Duration::from_secs(10),
        }
    }

    fn cookies(count: usize) -> Vec<Cookie> {
        let ids = SeededIds::new(1, Arc::new(ManualClock::new(0)));
        (0..count)
            .map(|_| Cookie::new(Kind::Session, &ids).unwrap())
            .collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_ends_when_it_idles_and_at_its_end() {
        let sessions = Sessions::default();
        let [cookie, other] = &cookies(2)[..] else {
            unreachable!()
        };
        sessions.begin(cookie, person());
        assert!(sessions.person(other).is_none());
        for _ in 0..10 {
            tokio::time::advance(Duration::from_millis(9_900)).await;
            assert!(sessions.person(cookie).is_some());
        }
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(sessions.person(cookie).is_none(), "its end");
        sessions.begin(cookie, person());
        tokio::time::advance(Duration::from_secs(10)).await;
        assert!(sessions.person(cookie).is_none(), "idle");
        sessions.begin(cookie, person());
        assert!(sessions.end(cookie).is_some());
        assert!(sessions.person(cookie).is_none(), "ended");
        assert!(sessions.end(cookie).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn sessions_are_bounded_and_the_idlest_goes() {
        let sessions = Sessions::default();
        let cookies = cookies(MAX_SESSIONS + 1);
        let (last, first) = cookies.split_last().unwrap();
        for cookie in first {
            sessions.begin(cookie, person());
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert!(sessions.person(&first[0]).is_some());
        sessions.begin(last, person());
        assert!(sessions.person(last).is_some());
        assert!(sessions.person(&first[0]).is_some());
        assert!(sessions.person(&first[1]).is_none());
    }

    #[test]
    fn places_in_lists_have_numbers_and_are_bounded() {
        let sessions = Sessions::default();
        let [cookie, other] = &cookies(2)[..] else {
            unreachable!()
        };
        sessions.begin(cookie, person());
        let first = sessions.remember(cookie, "subject").unwrap();
        assert_eq!(sessions.remember(cookie, "subject"), Some(first));
        assert_eq!(sessions.place(cookie, first).as_deref(), Some("subject"));
        assert_eq!(sessions.place(other, first), None);
        for index in 0..MAX_PLACES {
            sessions.remember(cookie, &index.to_string()).unwrap();
        }
        assert_eq!(sessions.place(cookie, first), None);
    }

    #[test]
    fn a_cookie_is_read_once_and_in_one_form() {
        let cookie = &cookies(1)[0];
        let of = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(COOKIE, HeaderValue::from_str(text).unwrap());
            Cookie::of(Kind::Session, &headers)
        };
        let pair = format!("__Host-cl-session={}", cookie.text());
        assert!(of(&pair).is_some());
        assert!(of(&format!("a=b; {pair}")).is_some());
        assert!(of(&format!("{pair}; {pair}")).is_none());
        assert!(of(&pair.replace("__Host-", "")).is_none());
        assert!(of(&format!("{pair}A")).is_none());
        assert!(of("__Host-cl-session=").is_none());
        let set = cookie.set().unwrap();
        assert!(!format!("{set:?}").contains(cookie.text()));
        assert!(!format!("{cookie:?}").contains(cookie.text()));
    }
}
