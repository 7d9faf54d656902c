//! Challenges of sign-ins and enrolments. Anybody may ask for one, so that nothing is stored for it:
//! the engine knows its challenges again by its key.

use cl_model::digest::Digest;
use cl_model::key::MacKey;
use cl_model::time::UnixTime;

const SIGN_IN_DOMAIN: &str = "context-layer/sign-in-challenge/v1";
const ENROL_DOMAIN: &str = "context-layer/enrolment-challenge/v1";

/// How many bytes of an id say when it ends: milliseconds since 1970, big-endian.
const END_BYTES: usize = 6;

/// The id of a ceremony: for those without a record its end, and random bytes.
pub type CeremonyId = [u8; 16];

/// A challenge that was handed out without a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// What the browser hands back.
    pub id: CeremonyId,
    /// When it ends.
    pub expires_at: UnixTime,
}

/// What a challenge is for.
#[derive(Clone, Copy, Debug)]
pub enum Purpose {
    /// Signing in.
    SignIn,
    /// Enrolling a credential by the link whose token has this digest.
    Enrol(Digest),
}

impl Challenge {
    /// A new challenge.
    pub fn new(expires_at: UnixTime, random: CeremonyId) -> Self {
        let end = u64::try_from(expires_at.milliseconds()).unwrap_or(0);
        let mut id = random;
        let (place, bytes) = (&mut id[..END_BYTES], end.to_be_bytes());
        place.copy_from_slice(&bytes[bytes.len() - END_BYTES..]);
        Self { id, expires_at }
    }

    /// The challenge with an id. Whether it was ever handed out shows with the signature: nobody
    /// else can tell the bytes of another one.
    pub fn again(id: CeremonyId) -> Self {
        let mut end = [0; 8];
        end[8 - END_BYTES..].copy_from_slice(&id[..END_BYTES]);
        // 48 bits.
        let end = i64::try_from(u64::from_be_bytes(end)).unwrap_or(0);
        Self {
            id,
            expires_at: UnixTime::from_milliseconds(end),
        }
    }

    /// The bytes to sign.
    pub fn bytes(&self, key: &MacKey, purpose: Purpose) -> [u8; 32] {
        let (domain, about) = match purpose {
            Purpose::SignIn => (SIGN_IN_DOMAIN, None),
            Purpose::Enrol(link) => (ENROL_DOMAIN, Some(link)),
        };
        let mut message = domain.as_bytes().to_vec();
        message.push(0);
        message.extend_from_slice(&self.id);
        if let Some(link) = about {
            message.extend_from_slice(link.as_bytes());
        }
        key.tag(&message)
    }
}

#[cfg(test)]
mod tests {
    use cl_model::key::Seed;
    use proptest::prelude::*;

    use super::*;

    /// The last second that a time can name.
    const LAST: i64 = 253_402_300_799_000;

    fn key(byte: u8) -> MacKey {
        MacKey::from_seed(&Seed::new(&[byte; 32]).unwrap())
    }

    proptest! {
        #[test]
        fn a_challenge_is_known_again_by_its_id(
            end in 0..LAST,
            random: [u8; 16],
        ) {
            let challenge = Challenge::new(UnixTime::from_milliseconds(end), random);
            let again = Challenge::again(challenge.id);
            prop_assert_eq!(again, challenge);
            prop_assert_eq!(
                again.bytes(&key(1), Purpose::SignIn),
                challenge.bytes(&key(1), Purpose::SignIn)
            );
        }

        #[test]
        fn a_later_end_is_another_challenge(
            end in 0..LAST,
            random: [u8; 16],
        ) {
            let at = |end| Challenge::new(UnixTime::from_milliseconds(end), random);
            prop_assert_ne!(
                at(end).bytes(&key(1), Purpose::SignIn),
                at(end + 1).bytes(&key(1), Purpose::SignIn)
            );
        }
    }

    #[test]
    fn each_purpose_and_each_key_has_challenges_of_its_own() {
        let challenge = Challenge::new(UnixTime::from_milliseconds(1), [7; 16]);
        let links = [Digest::of_bytes(b"one"), Digest::of_bytes(b"other")];
        let all = [
            challenge.bytes(&key(1), Purpose::SignIn),
            challenge.bytes(&key(2), Purpose::SignIn),
            challenge.bytes(&key(1), Purpose::Enrol(links[0])),
            challenge.bytes(&key(1), Purpose::Enrol(links[1])),
        ];
        for (index, one) in all.iter().enumerate() {
            assert!(all[index + 1..].iter().all(|other| other != one));
        }
    }
}
