//! Access tokens of the local token issuer: for trying things out, where no identity provider is.

use cl_model::scalar::Reference;
use clap::Subcommand;
use data_encoding::BASE64URL_NOPAD;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::cli::tenant;
use crate::error::Error;
use crate::home::{Home, read_json};
use crate::keys::{self, Purpose};
use crate::session::Session;

/// The requester of the examples that shows a token.
pub(crate) const DEMO_AGENT: &str = "urn:cl:agent:demo";

/// The client instance that it uses.
pub(crate) const DEMO_CLIENT: &str = "urn:cl:client:demo";

/// The recipient that the examples name.
pub(crate) const DEMO_MODEL: &str = "urn:cl:model:demo";

/// The client instance that it uses.
pub(crate) const DEMO_MODEL_CLIENT: &str = "urn:cl:client:model";

/// What a requester needs.
pub(crate) const REQUEST_SCOPE: &str = "context.request";

/// What a recipient needs: to take a bundle, to say what it did with it, and to propose.
pub(crate) const RECIPIENT_SCOPES: &str = "context.redeem receipt.write memory.propose";

/// How long a token is valid that is made for one call.
pub(crate) const CALL_TTL_S: u64 = 60;

const MAX_TTL_S: u64 = 24 * 60 * 60;

/// Access tokens of the local token issuer.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Makes a token and prints it.
    Mint(MintArgs),
}

/// Settings of `clctl token mint`.
#[derive(Debug, clap::Args)]
pub(crate) struct MintArgs {
    /// The principal that the token stands for.
    #[arg(long, default_value = DEMO_AGENT, value_parser = reference)]
    sub: String,

    /// What it may be used for, separated by spaces.
    #[arg(long, default_value = REQUEST_SCOPE, value_parser = scope)]
    scope: String,

    /// How long it is valid: 90s, 10m, 2h; at most 24h.
    #[arg(long, default_value = "10m", value_parser = ttl)]
    ttl: u64,

    /// The client instance that the principal uses.
    #[arg(long, default_value = DEMO_CLIENT, value_parser = reference)]
    client_instance: String,

    /// The tenant of the principal.
    #[arg(long, default_value = "default", value_parser = tenant)]
    tenant: String,
}

pub(crate) fn run(command: &TokenCommand, session: &Session) -> Result<(), Error> {
    let TokenCommand::Mint(args) = command;
    let token = mint(
        session,
        &Claims {
            sub: &args.sub,
            client_instance: &args.client_instance,
            tenant: &args.tenant,
            scope: &args.scope,
            ttl_s: args.ttl,
        },
    )?;
    let document = json!({
        "access_token": &*token,
        "token_type": "Bearer",
        "expires_in": args.ttl,
        "scope": args.scope,
    });
    session.output.secret(&document, &token)
}

/// What a token says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claims<'a> {
    pub(crate) sub: &'a str,
    pub(crate) client_instance: &'a str,
    pub(crate) tenant: &'a str,
    pub(crate) scope: &'a str,
    pub(crate) ttl_s: u64,
}

/// Makes a signed access token (RFC 9068).
pub(crate) fn mint(session: &Session, claims: &Claims<'_>) -> Result<Zeroizing<String>, Error> {
    session.home.check()?;
    let key = keys::load(&session.home, Purpose::Token)?;
    let issuer = TokenIssuer::load(&session.home)?;
    let now_s = session.now().milliseconds().div_euclid(1000);
    let header = json!({"alg": "EdDSA", "kid": key.kid().as_str(), "typ": "at+jwt"});
    let payload = json!({
        "iss": issuer.issuer,
        "aud": issuer.audience,
        "sub": claims.sub,
        "client_id": claims.client_instance,
        "client_instance": claims.client_instance,
        "tenant": claims.tenant,
        "scope": claims.scope,
        "iat": now_s,
        "exp": now_s.saturating_add_unsigned(claims.ttl_s),
        "jti": session.ids.uuid()?.to_string(),
    });
    let part = |value: &Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
    let signed = format!("{}.{}", part(&header), part(&payload));
    let signature = key.sign(signed.as_bytes()).to_base64url();
    Ok(Zeroizing::new(format!("{signed}.{signature}")))
}

/// Who issues tokens, and for whom.
#[derive(Clone, Debug)]
pub(crate) struct TokenIssuer {
    pub(crate) issuer: String,
    pub(crate) audience: String,
}

impl TokenIssuer {
    pub(crate) fn load(home: &Home) -> Result<Self, Error> {
        let path = home.token_issuer();
        let document = read_json(&path)?;
        let text = |name: &str| document[name].as_str().map(str::to_owned);
        let issuer = text("issuer").zip(text("audience"));
        let (issuer, audience) = issuer.ok_or(Error::Malformed {
            path,
            expected: "a token issuer: {\"issuer\": .., \"audience\": ..}",
        })?;
        Ok(Self { issuer, audience })
    }
}

/// A principal or a client instance, as requests name them.
pub(crate) fn reference(text: &str) -> Result<String, String> {
    if Reference::new(text).is_some() {
        return Ok(text.to_owned());
    }
    Err("not a reference: 3 to 512 characters".to_owned())
}

fn scope(text: &str) -> Result<String, String> {
    let is_plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-');
    let is_scope = |scope: &str| !scope.is_empty() && scope.bytes().all(is_plain);
    if text.len() <= 1024 && text.split(' ').all(is_scope) {
        return Ok(text.to_owned());
    }
    Err("scopes of a-z 0-9 . _ -, separated by one space".to_owned())
}

fn ttl(text: &str) -> Result<u64, String> {
    let (digits, unit_s) = match text.strip_suffix(['s', 'm', 'h']) {
        Some(digits) if text.ends_with('h') => (digits, 3600),
        Some(digits) if text.ends_with('m') => (digits, 60),
        Some(digits) => (digits, 1),
        None => (text, 1),
    };
    let count: Option<u64> = digits.parse().ok();
    count
        .and_then(|count| count.checked_mul(unit_s))
        .filter(|seconds| (1..=MAX_TTL_S).contains(seconds))
        .ok_or_else(|| "a time from 1s to 24h, such as 90s, 10m or 2h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_to_live_are_bounded() {
        for (text, seconds) in [("1", 1), ("90s", 90), ("10m", 600), ("24h", 86_400)] {
            assert_eq!(ttl(text), Ok(seconds));
        }
        for bad in [
            "",
            "0",
            "s",
            "-1",
            "1d",
            "25h",
            "1.5h",
            "10 m",
            "99999999999999999999h",
        ] {
            assert!(ttl(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn scopes_are_plain_words() {
        for good in ["context.request", "a b"] {
            assert!(scope(good).is_ok(), "{good}");
        }
        for bad in ["", " ", "a  b", "a ", "A", "a\nb", &"a".repeat(1025)] {
            assert!(scope(bad).is_err(), "{bad:?}");
        }
    }
}
