//! Where browsers find the console, and whether a call comes from its own pages.

use cl_model::passkey::RelyingParty;
use http::HeaderMap;
use http::header::ORIGIN;

/// The one origin of the console's pages, as browsers write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(String);

impl Origin {
    /// `https://`, a lower-case host, and a port unless it is 443; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let host = text.strip_prefix("https://")?;
        let host = host.split_once(':').map_or(host, |(host, _)| host);
        RelyingParty::new(host, vec![text.to_owned()]).map(|_| Self(text.to_owned()))
    }

    /// As browsers write it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether passkeys of this relying party can be used on the console's pages.
    pub(crate) fn suits(&self, rp_id: &str) -> bool {
        RelyingParty::new(rp_id, vec![self.0.clone()]).is_some()
    }

    /// Whether the browser says that one of the console's own pages sent a call (spec 11.1). One
    /// that does not say so is not believed.
    pub(crate) fn sent(&self, headers: &HeaderMap) -> bool {
        let mut origins = headers.get_all(ORIGIN).iter();
        let is_ours = match (origins.next(), origins.next()) {
            (Some(origin), None) => origin.as_bytes() == self.0.as_bytes(),
            (None | Some(_), _) => false,
        };
        let mut sites = headers.get_all("sec-fetch-site").iter();
        is_ours && sites.all(|site| site == "same-origin")
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn an_origin_is_what_browsers_write() {
        for good in [
            "https://console.example",
            "https://localhost:7406",
            "https://localhost",
        ] {
            assert_eq!(Origin::parse(good).unwrap().as_str(), good);
        }
        for bad in [
            "",
            "console.example",
            "http://localhost:7406",
            "https://console.example/",
            "https://console.example:443",
            "https://CONSOLE.example",
            "https://user@console.example",
            "https://console.example#a",
            "https://console.example.",
            "https://",
        ] {
            assert!(Origin::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_relying_party_is_the_host_or_above_it() {
        let origin = Origin::parse("https://console.ctx-test.example").unwrap();
        assert!(origin.suits("ctx-test.example"));
        assert!(origin.suits("console.ctx-test.example"));
        for other in [
            "test.example",
            "old.ctx-test.example",
            "",
            "CTX-TEST.EXAMPLE",
        ] {
            assert!(!origin.suits(other), "{other}");
        }
    }

    #[test]
    fn only_the_pages_of_the_console_send_calls() {
        let ours = Origin::parse("https://console.example").unwrap();
        let sent = |pairs: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(*name, HeaderValue::from_static(value));
            }
            ours.sent(&headers)
        };
        let own = ("origin", "https://console.example");
        assert!(sent(&[own]));
        assert!(sent(&[own, ("sec-fetch-site", "same-origin")]));
        for bad in [
            &[][..],
            &[("sec-fetch-site", "same-origin")],
            &[("sec-fetch-site", "cross-site")],
            &[("origin", "null")],
            &[("origin", "https://evil.example")],
            &[("origin", "https://console.example.evil.example")],
            &[("origin", "http://console.example")],
            &[("origin", "https://console.example:8443")],
            &[own, own],
            &[own, ("sec-fetch-site", "cross-site")],
            &[own, ("sec-fetch-site", "same-site")],
            &[own, ("sec-fetch-site", "none")],
            &[
                own,
                ("sec-fetch-site", "same-origin"),
                ("sec-fetch-site", "cross-site"),
            ],
        ] {
            assert!(!sent(bad), "{bad:?}");
        }
    }
}
