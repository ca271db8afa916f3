//! A value that is passed on and never shown.

use std::fmt;

use serde::{Deserialize, Serialize};
use zeroize::Zeroize;

/// A key or a token. It has no `Display`, and its `Debug` says only that there is one: what prints it must ask for it.
/// Its memory is wiped when it is let go of, so that no dump has it longer than it was needed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    pub fn new(value: impl Into<String>) -> Secret {
        Secret(value.into())
    }

    /// The value itself. Look twice where it goes.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_carried_and_not_shown() {
        let secret = Secret::new("sk-key");
        assert_eq!(serde_json::to_string(&secret).unwrap(), r#""sk-key""#);
        assert!(!format!("{:?} {:#?}", Some(&secret), vec![&secret]).contains("sk"));
    }
}
