//! Secrets: made of chance, kept as hashes, compared without telling.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};

/// What a page of a browser that was let in shows to prove that it is ours: it follows from the cookie, which no other
/// page can read.
pub(crate) fn csrf(cookie: &str) -> String {
    hash(&format!("csrf {cookie}"))
}

/// Without saying by the time it takes how far they agree.
pub(crate) fn same(one: &str, other: &str) -> bool {
    one.len() == other.len() && one.bytes().zip(other.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

pub(super) fn hash(secret: &str) -> String {
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
