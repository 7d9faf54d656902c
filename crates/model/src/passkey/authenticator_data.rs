//! `authenticatorData`: what the authenticator says about itself and its user.

use minicbor::Decoder;

use super::{CoseKey, InvalidPasskey, MAX_CREDENTIAL_ID_BYTES, RelyingParty};
use crate::digest::Digest;
use crate::opaque::opaque_debug;

/// The longest `authenticatorData`.
pub const MAX_AUTHENTICATOR_DATA_BYTES: usize = 4096;

const HEADER_BYTES: usize = 37;
const AAGUID_BYTES: usize = 16;

const USER_PRESENT: u8 = 1;
const USER_VERIFIED: u8 = 1 << 2;
const BACKUP_ELIGIBLE: u8 = 1 << 3;
const BACKUP_STATE: u8 = 1 << 4;
const ATTESTED: u8 = 1 << 6;
const EXTENSIONS: u8 = 1 << 7;

/// What `authenticatorData` says.
pub struct AuthenticatorData {
    rp_id_hash: Digest,
    flags: u8,
    counter: u32,
    attested: Option<(Vec<u8>, CoseKey)>,
}

opaque_debug!(AuthenticatorData);

impl AuthenticatorData {
    /// Reads the whole of `bytes`, at most [`MAX_AUTHENTICATOR_DATA_BYTES`].
    ///
    /// # Errors
    ///
    /// [`InvalidPasskey::Malformed`], [`InvalidPasskey::UnsupportedKey`].
    pub fn parse(bytes: &[u8]) -> Result<Self, InvalidPasskey> {
        if bytes.len() > MAX_AUTHENTICATOR_DATA_BYTES {
            return Err(InvalidPasskey::Malformed);
        }
        let (header, mut rest) = bytes
            .split_first_chunk::<HEADER_BYTES>()
            .ok_or(InvalidPasskey::Malformed)?;
        let (hash, tail) = header
            .split_first_chunk::<32>()
            .ok_or(InvalidPasskey::Malformed)?;
        let [flags, counter @ ..] = tail else {
            return Err(InvalidPasskey::Malformed);
        };
        let counter: [u8; 4] = counter.try_into().map_err(|_| InvalidPasskey::Malformed)?;
        let mut attested = None;
        if flags & ATTESTED != 0 {
            let (id, key, length) = read_attested(rest)?;
            rest = rest.get(length..).ok_or(InvalidPasskey::Malformed)?;
            attested = Some((id, key));
        }
        if flags & EXTENSIONS != 0 {
            let length = map_length(rest).ok_or(InvalidPasskey::Malformed)?;
            rest = rest.get(length..).ok_or(InvalidPasskey::Malformed)?;
        }
        if !rest.is_empty() {
            return Err(InvalidPasskey::Malformed);
        }
        Ok(Self {
            rp_id_hash: Digest::from(*hash),
            flags: *flags,
            counter: u32::from_be_bytes(counter),
            attested,
        })
    }

    /// Checks that a person was there and was recognised, for `relying_party`.
    ///
    /// # Errors
    ///
    /// [`InvalidPasskey::RpId`], [`InvalidPasskey::UserAbsent`],
    /// [`InvalidPasskey::UserUnverified`], [`InvalidPasskey::BackupState`].
    pub fn check(&self, relying_party: &RelyingParty) -> Result<(), InvalidPasskey> {
        if self.rp_id_hash != relying_party.hash() {
            return Err(InvalidPasskey::RpId);
        }
        if !self.has(USER_PRESENT) {
            return Err(InvalidPasskey::UserAbsent);
        }
        if !self.has(USER_VERIFIED) {
            return Err(InvalidPasskey::UserUnverified);
        }
        if self.is_backed_up() && !self.is_backup_eligible() {
            return Err(InvalidPasskey::BackupState);
        }
        Ok(())
    }

    /// How often the authenticator has signed, as it counts.
    pub const fn counter(&self) -> u32 {
        self.counter
    }

    /// Whether the credential may be copied to other devices.
    pub const fn is_backup_eligible(&self) -> bool {
        self.has(BACKUP_ELIGIBLE)
    }

    /// Whether it was.
    pub const fn is_backed_up(&self) -> bool {
        self.has(BACKUP_STATE)
    }

    /// The id and key of the credential that was made, if one was.
    pub fn into_attested(self) -> Option<(Vec<u8>, CoseKey)> {
        self.attested
    }

    /// Whether it carries a credential.
    pub const fn is_attested(&self) -> bool {
        self.attested.is_some()
    }

    const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

fn read_attested(bytes: &[u8]) -> Result<(Vec<u8>, CoseKey, usize), InvalidPasskey> {
    let malformed = InvalidPasskey::Malformed;
    let behind_aaguid = bytes.get(AAGUID_BYTES..).ok_or(malformed)?;
    let (length, rest) = behind_aaguid.split_first_chunk::<2>().ok_or(malformed)?;
    let length = usize::from(u16::from_be_bytes(*length));
    if length == 0 || length > MAX_CREDENTIAL_ID_BYTES {
        return Err(malformed);
    }
    let id = rest.get(..length).ok_or(malformed)?;
    let (key, key_length) = CoseKey::parse_first(rest.get(length..).ok_or(malformed)?)?;
    Ok((id.to_vec(), key, AAGUID_BYTES + 2 + length + key_length))
}

/// The length of the CBOR map that `bytes` begin with.
fn map_length(bytes: &[u8]) -> Option<usize> {
    let mut decoder = Decoder::new(bytes);
    decoder.map().ok()?;
    let mut decoder = Decoder::new(bytes);
    decoder.skip().ok()?;
    Some(decoder.position())
}
