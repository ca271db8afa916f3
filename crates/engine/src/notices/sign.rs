//! HMAC-SHA256 (RFC 2104), by which whoever is told knows who tells.

use sha2::{Digest, Sha256};

const BLOCK: usize = 64;

/// The signature of a body told at a time, in seconds: over `time.body`, so that neither can be changed or told again later.
pub(super) fn signature(secret: &[u8], seconds: i64, body: &[u8]) -> String {
    let mut message = format!("{seconds}.").into_bytes();
    message.extend_from_slice(body);
    let hex: String = hmac(secret, &message).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t={seconds},v1={hex}")
}

fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut block = [0_u8; BLOCK];
    if key.len() > BLOCK {
        block[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let padded = |pad: u8| block.map(|byte| byte ^ pad);
    let inner = Sha256::new().chain_update(padded(0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(padded(0x5c)).chain_update(inner).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: [u8; 32]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Cases 1, 2 and 6 of RFC 4231.
    #[test]
    fn is_what_everybody_else_computes() {
        assert_eq!(
            hex(hmac(&[0x0b; 20], b"Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
        );
        assert_eq!(
            hex(hmac(b"Jefe", b"what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        assert_eq!(
            hex(hmac(&[0xaa; 131], b"Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        );
    }

    #[test]
    fn covers_the_time_and_the_body() {
        let first = signature(b"k", 7, b"x");
        assert!(first.starts_with("t=7,v1="));
        assert_ne!(first[7..], signature(b"k", 8, b"x")[7..]);
        assert_ne!(first, signature(b"k", 7, b"y"));
        assert_ne!(first, signature(b"l", 7, b"x"));
    }
}
