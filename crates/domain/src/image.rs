//! Pictures in dialogues: each is kept once, as a file named by what is in it, and events name that.

use std::{fmt, sync::Arc};

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Programs leave the padding out now and then.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The longest name of a kind of picture.
const MIME_BYTES: usize = 64;

/// A picture by its name. The bytes are with it only between whoever read them and whoever keeps them.
#[derive(Clone, Serialize, Deserialize)]
pub struct Image {
    /// Of its bytes, in hexadecimal digits. Empty when it was deleted.
    pub sha256: String,
    /// `image/png`.
    pub mime: String,
    pub bytes: u64,
    #[serde(skip)]
    data: Option<Arc<[u8]>>,
}

impl Image {
    /// A picture as programs send it. Nothing where it is none: another kind of thing, or not in that alphabet.
    pub fn from_base64(mime: &str, text: &str) -> Option<Image> {
        if !is_mime(mime) {
            return None;
        }
        let data = BASE64.decode(text).ok().filter(|data| !data.is_empty())?;
        let sha256 = Sha256::digest(&data).iter().map(|byte| format!("{byte:02x}")).collect();
        Some(Image { sha256, mime: mime.to_owned(), bytes: data.len() as u64, data: Some(data.into()) })
    }

    /// The same of an address that holds the picture itself: `data:image/png;base64,…`.
    pub fn from_data_url(url: &str) -> Option<Image> {
        let (head, text) = url.strip_prefix("data:")?.split_once(',')?;
        Image::from_base64(head.strip_suffix(";base64")?.split(';').next()?, text)
    }

    /// What is to be kept, as long as nobody has.
    pub fn data(&self) -> Option<&[u8]> {
        self.data.as_deref()
    }

    /// Somebody has kept the bytes.
    pub fn forget_data(&mut self) {
        self.data = None;
    }

    /// What stays when it is deleted: that there was one.
    #[must_use]
    pub fn erased(self) -> Image {
        Image { sha256: String::new(), data: None, ..self }
    }

    /// The name of its file.
    pub fn hash(&self) -> Option<[u8; 32]> {
        hash(&self.sha256)
    }
}

/// What hexadecimal digits name.
pub fn hash(sha256: &str) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    if sha256.len() != 64 || !sha256.is_ascii() {
        return None;
    }
    for (place, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&sha256[2 * place..2 * place + 2], 16).ok()?;
    }
    Some(hash)
}

/// The same bytes are the same picture, whether they are at hand or not.
impl PartialEq for Image {
    fn eq(&self, other: &Self) -> bool {
        (&self.sha256, &self.mime, self.bytes) == (&other.sha256, &other.mime, other.bytes)
    }
}

impl Eq for Image {}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Image({} {} {})", self.mime, self.bytes, self.sha256)
    }
}

/// As text: what JSON and pages can hold.
pub fn base64(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

/// A picture, by a name in which nothing can hide.
fn is_mime(mime: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || ".+-".contains(c);
    mime.len() <= MIME_BYTES
        && mime.strip_prefix("image/").is_some_and(|kind| !kind.is_empty() && kind.chars().all(is_plain))
}

/// Whether browsers show this kind as a picture and as nothing else: others may hold programs.
pub fn is_harmless(mime: &str) -> bool {
    matches!(mime, "image/png" | "image/jpeg" | "image/gif" | "image/webp")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_named_by_its_bytes() {
        let image = Image::from_base64("image/png", "aGVsbG8=").unwrap();
        assert_eq!(image.sha256, "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
        assert_eq!((image.bytes, image.data()), (5, Some(&b"hello"[..])));
        assert_eq!(image.hash().map(|hash| hash[0]), Some(0x2c));
        let text = serde_json::to_string(&image).unwrap();
        assert!(!text.contains("hello") && !text.contains("aGVs"), "{text}");
        let read: Image = serde_json::from_str(&text).unwrap();
        assert_eq!((&read, read.data()), (&image, None));
        assert_eq!(Image::from_data_url("data:image/png;base64,aGVsbG8").as_ref(), Some(&image));
        assert_eq!(base64(b"hello"), "aGVsbG8=");
        assert_eq!(image.erased().hash(), None);
    }

    #[test]
    fn what_is_no_picture_is_none() {
        for (mime, text) in [
            ("image/png", "not base64!"),
            ("image/png", ""),
            ("text/html", "aGVsbG8="),
            ("image/", "aGVsbG8="),
            ("image/png\" onerror=\"x", "aGVsbG8="),
            ("image/PNG", "aGVsbG8="),
        ] {
            assert_eq!(Image::from_base64(mime, text), None, "{mime} {text}");
        }
        for url in ["https://x.example/a.png", "data:image/png,x", "data:;base64,aGVsbG8=", "data:image/png"]
        {
            assert_eq!(Image::from_data_url(url), None, "{url}");
        }
        assert!(!is_harmless("image/svg+xml") && is_harmless("image/webp"));
    }
}
