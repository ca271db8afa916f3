//! Finding known secrets in what an agent prints, as they are and in the forms that programs print them in. They are
//! overwritten in place, so that offsets stay true.

use std::ops::Range;

use memchr::memmem::Finder;
use ostler_tape::LaunchDocument;

/// Shorter strings are no secrets, and would blot out half of every line.
const SECRET_BYTES: usize = 4;
/// Shorter parts of a text in base64 are found in texts that have nothing to do with it.
const ENCODED_BYTES: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct Redactor {
    secrets: Vec<Finder<'static>>,
}

impl Redactor {
    /// Of everything that a session's document says in confidence.
    pub(crate) fn of(document: &LaunchDocument) -> Redactor {
        let model = document.gateway.as_ref().and_then(|order| order.model.as_ref());
        let key = model.and_then(|model| model.key.as_ref()).map(|key| key.reveal().to_owned());
        let secrets: Vec<String> = document.secrets.iter().cloned().chain(key).collect();
        Redactor::new(&secrets)
    }

    pub(crate) fn new(secrets: &[String]) -> Redactor {
        // Lines are taped one by one, so a secret of several lines is several secrets. As a whole it has other forms.
        let lines = secrets.iter().flat_map(|secret| secret.split(['\n', '\r']).chain([secret.as_str()]));
        let mut forms: Vec<Vec<u8>> = Vec::new();
        for secret in lines.filter(|line| line.len() >= SECRET_BYTES) {
            forms.push(secret.as_bytes().to_vec());
            forms.extend(escaped(secret));
            forms.extend([b"0123456789ABCDEF", b"0123456789abcdef"].map(|digits| percent(secret, digits)));
            for alphabet in [b"+/", b"-_"] {
                forms.extend((0..3).filter_map(|shift| base64_part(secret.as_bytes(), shift, alphabet)));
            }
        }
        forms.retain(|form| !form.contains(&b'\n'));
        forms.sort_unstable();
        forms.dedup();
        Redactor { secrets: forms.iter().map(|form| Finder::new(form).into_owned()).collect() }
    }

    /// How many bytes at the end of an unfinished line may be the beginning of a secret.
    pub(crate) fn hold_back(&self) -> usize {
        self.secrets.iter().map(|secret| secret.needle().len() - 1).max().unwrap_or(0)
    }

    /// Where secrets lie in `bytes`, in order, merged where they overlap.
    pub(crate) fn find(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let mut found: Vec<_> = self.secrets.iter().flat_map(|secret| occurrences(bytes, secret)).collect();
        found.sort_unstable_by_key(|range| range.start);
        found.dedup_by(|later, earlier| {
            let overlaps = later.start < earlier.end;
            if overlaps {
                earlier.end = earlier.end.max(later.end);
            }
            overlaps
        });
        found
    }
}

fn occurrences(bytes: &[u8], secret: &Finder<'_>) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = secret.find(&bytes[from..]) {
        let start = from + at;
        found.push(start..start + secret.needle().len());
        from = start + 1;
    }
    found
}

/// As it stands within a JSON string, if that is another form.
fn escaped(secret: &str) -> Option<Vec<u8>> {
    let json = serde_json::to_string(secret).ok()?;
    let inner = json.get(1..json.len() - 1)?;
    (inner != secret).then(|| inner.as_bytes().to_vec())
}

/// As it stands in a URL.
fn percent(secret: &str, digits: &[u8; 16]) -> Vec<u8> {
    let encode = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => vec![byte],
        _ => vec![b'%', digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]],
    };
    secret.bytes().flat_map(encode).collect()
}

/// The characters of a text in base64 that are the secret's own when `shift` other bytes stand before its first in a
/// group of three. Those at its edges hold bits of its neighbours, and alone say little.
fn base64_part(secret: &[u8], shift: usize, last_two: &[u8; 2]) -> Option<Vec<u8>> {
    const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let sextet = |bits: u32| match bits {
        0..62 => ALPHABET[bits as usize],
        62 => last_two[0],
        _ => last_two[1],
    };
    let bit = |n: usize| u32::from(secret[n / 8] >> (7 - n % 8)) & 1;
    // Where, in bits of the secret, its first whole character begins.
    let first = [0, 4, 2][shift];
    let whole = (8 * secret.len()).checked_sub(first)? / 6;
    let character = |n: usize| sextet((0..6).fold(0, |bits, at| bits << 1 | bit(first + 6 * n + at)));
    (whole >= ENCODED_BYTES).then(|| (0..whole).map(character).collect())
}

#[cfg(test)]
mod tests {
    use ostler_domain::{
        Secret,
        gateway::{GATEWAY_VERSION, GatewayOrder, KeyScheme, ModelOrder, Reach, Upstream},
    };

    use super::*;

    fn redactor(secrets: &[&str]) -> Redactor {
        Redactor::new(&secrets.iter().map(|&secret| secret.to_owned()).collect::<Vec<_>>())
    }

    fn blotted(redactor: &Redactor, text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        for range in redactor.find(text.as_bytes()) {
            bytes[range].fill(b'*');
        }
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn the_key_of_the_model_is_one_of_the_secrets() {
        let upstream = Upstream::parse("https://api.example").unwrap();
        let model = ModelOrder::new(upstream, KeyScheme::Bearer, Some(Secret::new("sk-real")));
        let mut document = LaunchDocument::new("ses_1", 1, "/s".into(), "/bin/true".into());
        document.secrets = vec!["token".to_owned()];
        document.gateway = Some(GatewayOrder {
            version: GATEWAY_VERSION,
            campaign: "shop".to_owned(),
            reach: Reach::Provider,
            allow: Vec::new(),
            idle_ms: 1,
            model: Some(model),
        });
        assert_eq!(Redactor::of(&document).find(b"a token sk-real"), [2..7, 8..15]);
        assert!(!format!("{document:?}").contains("sk-real"));
    }

    #[test]
    fn overlapping_secrets_are_covered_entirely() {
        let redactor = redactor(&["abcdef", "defghi", "aaaa"]);
        assert_eq!(redactor.find(b"..abcdefghi.aaaaaa"), [2..11, 12..18]);
        assert_eq!(redactor.hold_back(), 7, "of `abcdef` in base64");
    }

    #[test]
    fn secrets_of_several_lines_are_found_line_by_line_and_as_programs_print_them() {
        let redactor = redactor(&["first\nsecond\nx"]);
        assert_eq!(redactor.find(b"a second first"), [2..8, 9..14]);
        assert_eq!(blotted(&redactor, r#"{"k":"first\nsecond\nx"}"#), r#"{"k":"****************"}"#);
    }

    #[test]
    fn short_strings_are_not_secrets() {
        assert_eq!(redactor(&["", "abc"]).find(b"abc"), []);
        assert_eq!(redactor(&[]).hold_back(), 0);
    }

    #[test]
    fn a_secret_is_found_in_a_url() {
        let redactor = redactor(&["a/b+c d"]);
        for text in ["?key=a%2Fb%2Bc%20d&x=1", "?key=a%2fb%2bc%20d&x=1"] {
            assert_eq!(blotted(&redactor, text), "?key=*************&x=1");
        }
    }

    /// Encodes like everybody: the test's own, so that it does not share the mistakes of what it tests.
    fn base64(bytes: &[u8], alphabet: &[u8]) -> String {
        let group = |chunk: &[u8]| {
            let bits = (0..3).fold(0_u32, |bits, n| bits << 8 | u32::from(*chunk.get(n).unwrap_or(&0)));
            (0..=chunk.len()).map(|n| char::from(alphabet[(bits >> (18 - 6 * n)) as usize & 63])).collect()
        };
        bytes.chunks(3).map(group).collect::<Vec<String>>().concat()
    }

    #[test]
    fn a_secret_is_found_in_base64_whatever_stands_around_it() {
        let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
        for (secret, least) in [("hunter2-hunter2", 18), ("\u{7f}?~>\u{7f}?~>\u{7f}?~>", 14)] {
            let redactor = redactor(&[secret]);
            for last_two in ["+/", "-_"] {
                let alphabet = format!("{letters}{last_two}");
                for before in ["", "u", "us", "user:"] {
                    for after in ["", "!", " and more"] {
                        let plain = format!("{before}{secret}{after}");
                        let text = base64(plain.as_bytes(), alphabet.as_bytes());
                        let stars = blotted(&redactor, &text).matches('*').count();
                        assert!(stars >= least, "{before}:{after}: {}", blotted(&redactor, &text));
                    }
                }
            }
        }
    }

    #[test]
    fn texts_that_have_nothing_to_do_with_a_secret_are_left_alone() {
        let redactor = redactor(&["swordfish"]);
        let text = "the sword, a fish, c3dvcmQ= and 73776f7264 %73%77";
        assert_eq!(blotted(&redactor, text), text);
    }
}
