//! Values that tie forms to the browser that they were given to.

use cl_host::ids::{Ids, NoRandomness};
use data_encoding::BASE64URL_NOPAD;
use ring::hmac;
use zeroize::Zeroizing;

use crate::session::Cookie;

const DOMAIN: &[u8] = b"context-layer/console-form/v1\0";

/// The key of those values. It lasts as long as the process: forms of an earlier one are refused,
/// and their pages say so.
#[derive(Clone)]
pub struct FormKey(hmac::Key);

impl FormKey {
    /// A fresh key.
    pub(crate) fn new(ids: &dyn Ids) -> Result<Self, NoRandomness> {
        let mut bytes = Zeroizing::new([0; 32]);
        ids.fill(&mut *bytes)?;
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &*bytes)))
    }

    /// The value in the forms of a page.
    pub(crate) fn value(&self, cookie: &Cookie) -> String {
        BASE64URL_NOPAD.encode(hmac::sign(&self.0, &message(cookie)).as_ref())
    }

    /// Whether a form was given to the browser with this cookie. Compared in constant time.
    pub(crate) fn admits(&self, cookie: &Cookie, value: &str) -> bool {
        let Ok(value) = BASE64URL_NOPAD.decode(value.as_bytes()) else {
            return false;
        };
        hmac::verify(&self.0, &message(cookie), &value).is_ok()
    }
}

/// A value of a session is none of a visit, since the names of their cookies differ.
fn message(cookie: &Cookie) -> Zeroizing<Vec<u8>> {
    let name = cookie.name().as_bytes();
    Zeroizing::new([DOMAIN, name, b"\0", cookie.secret()].concat())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cl_host::clock::ManualClock;
    use cl_host::ids::SeededIds;

    use super::*;
    use crate::session::Kind;

    #[test]
    fn a_form_counts_for_its_own_browser_only() {
        let ids = SeededIds::new(1, Arc::new(ManualClock::new(0)));
        let key = FormKey::new(&ids).unwrap();
        let session = Cookie::new(Kind::Session, &ids).unwrap();
        let other = Cookie::new(Kind::Session, &ids).unwrap();
        let visit = Cookie::read(Kind::Visit, session.text()).unwrap();
        let value = key.value(&session);
        assert!(key.admits(&session, &value));
        assert!(!key.admits(&other, &value));
        assert!(!key.admits(&visit, &value), "signed in is another browser");
        assert!(!FormKey::new(&ids).unwrap().admits(&session, &value));
        for bad in [
            "",
            "a",
            &value[1..],
            &format!("{value}A"),
            &format!("{value}="),
        ] {
            assert!(!key.admits(&session, bad), "{bad}");
        }
    }
}
