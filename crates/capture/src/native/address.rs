//! Addresses in one spelling, so that one correspondent is one.

use cl_wire::vault::v1::Mailbox;

use super::shown;

/// The most characters of an address or a name.
const MAX_CHARS: usize = 320;

/// A mailbox whose address is one.
pub(crate) fn mailbox(address: &str, name: &str) -> Option<Mailbox> {
    Some(Mailbox {
        address: normalised(address)?,
        name: shown(name, MAX_CHARS),
    })
}

/// An address that is one: a local part, `@` and a domain, without spaces or controls. The domain is
/// in lower case, and an internationalised one as its A-labels (RFC 5890, 2.3.2.1).
pub fn normalised(address: &str) -> Option<String> {
    let (local, domain) = address.trim().rsplit_once('@')?;
    let is_plain = |part: &str| {
        !part.is_empty()
            && !part
                .chars()
                .any(|it| it.is_whitespace() || it.is_control() || "<>,;".contains(it))
    };
    if !is_plain(local) || !is_plain(domain) {
        return None;
    }
    let domain = domain.strip_suffix('.').unwrap_or(domain);
    let ascii = idna::domain_to_ascii(domain).ok();
    let domain = ascii.unwrap_or_else(|| domain.to_lowercase());
    let address = format!("{local}@{domain}");
    (is_plain(&domain) && address.chars().count() <= MAX_CHARS).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_domain_has_one_spelling() {
        let expected = "zoe@xn--bcher-lager-thb.example";
        for address in [
            "zoe@b\u{fc}cher-lager.example",
            "zoe@bu\u{308}cher-lager.example",
            "zoe@B\u{dc}CHER-LAGER.EXAMPLE",
            "zoe@xn--bcher-lager-thb.example",
            "zoe@XN--BCHER-LAGER-THB.example.",
            " zoe@b\u{fc}cher-lager\u{3002}example ",
        ] {
            assert_eq!(normalised(address).as_deref(), Some(expected), "{address}");
        }
    }

    #[test]
    fn what_is_no_address_is_none() {
        for address in [
            "", "a", "@b", "a@", "a b@c", "a@b c", "a@b,c", "<a@b>", "a@b\u{7}", "a@.",
        ] {
            assert_eq!(normalised(address), None, "{address}");
        }
        for (address, expected) in [
            ("Ann@[192.0.2.1]", "Ann@[192.0.2.1]"),
            ("a@b@C.example", "a@b@c.example"),
            ("\u{4f8b}@d.example", "\u{4f8b}@d.example"),
        ] {
            assert_eq!(normalised(address).as_deref(), Some(expected), "{address}");
        }
    }
}
