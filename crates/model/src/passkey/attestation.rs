//! New credentials. Attestation statements are not asked for and not believed: a credential counts
//! once an operator has confirmed it.

use minicbor::Decoder;

use super::client_data::{Ceremony, ClientData};
use super::{AuthenticatorData, CoseKey, InvalidPasskey, RelyingParty};

/// The longest `attestationObject`.
pub const MAX_ATTESTATION_BYTES: usize = 16_384;

/// A credential that was just made.
#[derive(Clone, Debug)]
pub struct NewCredential {
    /// Its id.
    pub id: Vec<u8>,
    /// Its public key.
    pub key: CoseKey,
    /// Its signature counter.
    pub counter: u32,
    /// Whether it can be copied to other devices.
    pub is_backup_eligible: bool,
}

/// Verifies that an authenticator made a credential for `challenge` on a page of `relying_party`, with
/// a person present and recognised.
///
/// # Errors
///
/// The first rule of [`InvalidPasskey`] that does not hold.
pub fn enrol(
    client_data: &[u8],
    attestation_object: &[u8],
    challenge: &[u8],
    relying_party: &RelyingParty,
) -> Result<NewCredential, InvalidPasskey> {
    ClientData::parse(client_data)?.check(Ceremony::Create, challenge, relying_party)?;
    if attestation_object.len() > MAX_ATTESTATION_BYTES {
        return Err(InvalidPasskey::Malformed);
    }
    let data = authenticator_data(attestation_object).ok_or(InvalidPasskey::Malformed)?;
    let data = AuthenticatorData::parse(data)?;
    data.check(relying_party)?;
    let (counter, is_backup_eligible) = (data.counter(), data.is_backup_eligible());
    let (id, key) = data.into_attested().ok_or(InvalidPasskey::Malformed)?;
    Ok(NewCredential {
        id,
        key,
        counter,
        is_backup_eligible,
    })
}

/// `authData` of a map of exactly `fmt`, `attStmt` and `authData`.
fn authenticator_data(object: &[u8]) -> Option<&[u8]> {
    let mut decoder = Decoder::new(object);
    let mut data = None;
    let (mut has_format, mut has_statement) = (false, false);
    if decoder.map().ok()? != Some(3) {
        return None;
    }
    for _ in 0..3 {
        match decoder.str().ok()? {
            "authData" => data = Some(decoder.bytes().ok()?),
            "fmt" => {
                decoder.str().ok()?;
                has_format = true;
            }
            "attStmt" => {
                let start = decoder.position();
                decoder.map().ok()?;
                decoder.set_position(start);
                decoder.skip().ok()?;
                has_statement = true;
            }
            _ => return None,
        }
    }
    data.filter(|_| has_format && has_statement && decoder.position() == object.len())
}
