//! Pictures of dialogues: read for whoever asks, by their names or within lines.

use ostler_domain::{Reason, Refusal, image::base64, transcript::Line};

use super::Transcript;
use crate::Engine;

/// Fewer digits name nothing.
const FEWEST_DIGITS: usize = 8;

impl Engine {
    /// The bytes of a picture, by its SHA-256 or the beginning of that.
    pub async fn image(&self, sha256: &str) -> Result<Vec<u8>, Refusal> {
        let sha256 = sha256.to_ascii_lowercase();
        let is_name =
            (FEWEST_DIGITS..=64).contains(&sha256.len()) && sha256.chars().all(|c| c.is_ascii_hexdigit());
        if !is_name {
            return Err(Refusal::invalid("a picture is named by the digits of its SHA-256, at least eight")
                .hint("ostler transcript show WHO", "names those of a conversation"));
        }
        self.shared.store.image(&sha256).await?.ok_or_else(|| {
            Refusal::new(Reason::InvalidArgument, "there is no such picture, or more than one")
                .because("no event that is kept names one whose name begins so, or several do")
                .hint("ostler transcript show WHO", "names those of a conversation")
        })
    }
}

impl Transcript {
    /// Puts the pictures that lines name into them. One that is gone stays a name.
    pub async fn show_images(&self, lines: &mut [Line]) -> Result<(), Refusal> {
        for picture in lines.iter_mut().flat_map(Line::pictures) {
            let Some(sha256) = &picture.sha256 else { continue };
            picture.data = self.engine.shared.store.image(sha256).await?.as_deref().map(base64);
        }
        Ok(())
    }
}
