//! Secrets: made of chance, kept as hashes, compared without telling.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use ostler_domain::{RequestId, Time};
use sha2::{Digest, Sha256};

/// What a page of a browser that was let in shows to prove that it is ours: it follows from the cookie, which no other
/// page can read.
pub(crate) fn csrf(cookie: &str) -> String {
    hash(&format!("csrf {cookie}"))
}

/// What the daemon calls a change to which a person gave a name.
pub(crate) fn request_id(person: &str, name: &str) -> RequestId {
    let digest = Sha256::digest(format!("request {} {person} {name}", person.len()).as_bytes());
    let number = digest.iter().take(16).fold(0_u128, |number, byte| (number << 8) | u128::from(*byte));
    // The first 48 bits of an id are a moment, in milliseconds.
    let moment = i64::try_from(number >> 80).unwrap_or_default().saturating_mul(1_000);
    RequestId::new(Time::from_micros(moment), number & (u128::MAX >> 48))
}

/// Without saying by the time it takes how far they agree.
pub(crate) fn same(one: &str, other: &str) -> bool {
    one.len() == other.len() && one.bytes().zip(other.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

pub(crate) fn hash(secret: &str) -> String {
    Sha256::digest(secret.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// 256 bits that nobody can guess.
pub(super) fn random() -> String {
    let mut bytes = [0; 32];
    let mut filled = 0;
    while filled < bytes.len() {
        // Fails only before the kernel has any randomness, which a daemon does not see.
        if let Ok(n) = rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()) {
            filled += n;
        }
    }
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_for_a_change_is_its_person_s_own_and_always_the_same() {
        let id = request_id("ann", "1");
        assert_eq!(id, request_id("ann", "1"));
        assert_eq!(id.to_string().parse::<RequestId>().unwrap(), id);
        assert_ne!(id, request_id("bob", "1"));
        assert_ne!(request_id("ann", "b 1"), request_id("ann b", "1"), "a name's end is where it says");
    }
}
