//! Blots out what looks like a secret, before it is recorded: keys with a known beginning, private keys, credentials in
//! headers and addresses. What it does not know, it leaves; known values are blotted out before the tape already.
//!
//! One pass over the text, and no part of it is looked at more than a few times.

use std::borrow::Cow;

use serde_json::Value;

/// What stands in the place of a secret. No rule takes it for one.
pub const BLOT: &str = "[redacted]";

/// A key that begins in its own way.
struct Token {
    beginning: &'static str,
    /// How many characters follow at least; exactly, where keys have one length.
    least: usize,
    exactly: bool,
    /// Whether `-` and `_` are among them.
    dashes: bool,
    /// Whether words that only look like it are to be told from it by their digits.
    like_a_word: bool,
}

const fn token(beginning: &'static str, least: usize) -> Token {
    Token { beginning, least, exactly: false, dashes: false, like_a_word: false }
}

const TOKENS: &[Token] = &[
    Token { dashes: true, like_a_word: true, ..token("sk-", 20) },
    Token { dashes: true, like_a_word: true, ..token("glpat-", 20) },
    Token { dashes: true, ..token("github_pat_", 22) },
    token("ghp_", 36),
    token("gho_", 36),
    token("ghu_", 36),
    token("ghs_", 36),
    token("ghr_", 36),
    token("npm_", 36),
    Token { dashes: true, like_a_word: true, ..token("xoxa-", 10) },
    Token { dashes: true, like_a_word: true, ..token("xoxb-", 10) },
    Token { dashes: true, like_a_word: true, ..token("xoxp-", 10) },
    Token { dashes: true, like_a_word: true, ..token("xoxr-", 10) },
    Token { dashes: true, like_a_word: true, ..token("xoxs-", 10) },
    Token { dashes: true, exactly: true, ..token("AIza", 35) },
    Token { exactly: true, ..token("AKIA", 16) },
    Token { exactly: true, ..token("ASIA", 16) },
];

/// Headers whose value is a credential, in small letters.
const HEADERS: &[&str] = &["authorization", "x-api-key", "x-goog-api-key"];
const SCHEMES: &[&str] = &["bearer ", "basic ", "token "];
/// Shorter ones are examples; a header that is there for nothing else has people's own words too.
const CREDENTIAL_BYTES: usize = 8;
const KEY_BYTES: usize = 6;
/// How far apart the parts of one secret may be.
const NEAR: usize = 256;

const PEM_BEGIN: &str = "-----BEGIN ";
const PEM_PRIVATE: &str = "PRIVATE KEY-----";
const PEM_END: &str = "-----END";

/// The text without what looks like a secret; as it was, if nothing does.
pub fn redact(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let mut copied = 0;
    let mut at = 0;
    while at < bytes.len() {
        match secret_at(bytes, at) {
            Some((from, to)) => {
                out.push_str(&text[copied..from]);
                out.push_str(BLOT);
                copied = to;
                at = to;
            }
            None => at += 1,
        }
    }
    if copied == 0 && out.is_empty() {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// How often something stands blotted out in a text.
pub fn blots(text: &str) -> u32 {
    u32::try_from(text.matches(BLOT).count()).unwrap_or(u32::MAX)
}

/// [`redact`] for a text that is owned anyway.
pub fn redacted(text: String) -> String {
    match redact(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(redacted) => redacted,
    }
}

/// The same in every text of a document; says whether anything was blotted out. For what leaves the machine: what people said
/// is recorded as they said it.
pub fn blot_out(document: &mut Value) -> bool {
    match document {
        Value::String(text) => match redact(text) {
            Cow::Borrowed(_) => false,
            Cow::Owned(redacted) => {
                *text = redacted;
                true
            }
        },
        Value::Array(items) => items.iter_mut().fold(false, |was, item| blot_out(item) | was),
        Value::Object(fields) => fields.values_mut().fold(false, |was, field| blot_out(field) | was),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The secret that shows itself here, if one does. All that is cut is ASCII, so cuts are between characters.
fn secret_at(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    match bytes[at] {
        b's' | b'g' | b'n' | b'A' | b'x' | b'X' | b'a' | b'e' => {
            let begins_a_word = at == 0 || !is_word(bytes[at - 1], true);
            if !begins_a_word {
                return None;
            }
            key(bytes, at).or_else(|| web_token(bytes, at)).or_else(|| header(bytes, at))
        }
        b'-' => private_key(bytes, at),
        b':' => password(bytes, at),
        _ => None,
    }
}

fn is_word(byte: u8, dashes: bool) -> bool {
    byte.is_ascii_alphanumeric() || (dashes && matches!(byte, b'-' | b'_'))
}

/// Where a run of such bytes ends that begins here.
fn run(bytes: &[u8], from: usize, fits: impl Fn(u8) -> bool) -> usize {
    bytes[from..].iter().position(|byte| !fits(*byte)).map_or(bytes.len(), |length| from + length)
}

fn key(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let token = TOKENS.iter().find(|token| bytes[at..].starts_with(token.beginning.as_bytes()))?;
    let from = at + token.beginning.len();
    let to = run(bytes, from, |byte| is_word(byte, token.dashes));
    let secret = &bytes[from..to];
    let fits = if token.exactly { secret.len() == token.least } else { secret.len() >= token.least };
    (fits && !(token.like_a_word && is_prose(secret))).then_some((from, to))
}

/// Longer than the words that names are made of, and than names.
const LONG_WORD: usize = 20;
const LONG_NAME: usize = 40;

/// Words joined by dashes are short, have few digits and one letter case.
fn is_prose(secret: &[u8]) -> bool {
    if secret.split(|byte| matches!(byte, b'-' | b'_')).any(|word| word.len() >= LONG_WORD) {
        return false;
    }
    let count = |fits: fn(&u8) -> bool| secret.iter().filter(|byte| fits(byte)).count();
    let digits = count(u8::is_ascii_digit);
    let mixed = count(u8::is_ascii_uppercase) > 1 && count(u8::is_ascii_lowercase) > 1;
    digits < 3 && !(mixed && (digits > 0 || secret.len() >= LONG_NAME))
}

/// Three parts in base64, the first of which begins an object.
fn web_token(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    if !bytes[at..].starts_with(b"eyJ") {
        return None;
    }
    let part = |from| Some(run(bytes, from, |byte| is_word(byte, true))).filter(|to| *to >= from + 10);
    let next = |to: usize| (bytes.get(to) == Some(&b'.')).then_some(to + 1);
    let first = part(at)?;
    let second = part(next(first)?)?;
    let third = part(next(second)?)?;
    Some((at + 3, third))
}

fn header(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let begins = |from: usize, word: &str| {
        bytes.get(from..from + word.len()).is_some_and(|found| found.eq_ignore_ascii_case(word.as_bytes()))
    };
    let name = HEADERS.iter().find(|name| begins(at, name))?;
    let end = (at + name.len() + 8).min(bytes.len());
    // `Authorization: x`, `"authorization":"x"`, `authorization=x`, and the same escaped.
    let filling = |byte: u8| matches!(byte, b'"' | b'\'' | b' ' | b':' | b'=' | b'\\');
    let from = run(&bytes[..end], at + name.len(), filling);
    if !bytes[at + name.len()..from].iter().any(|byte| matches!(byte, b':' | b'=')) {
        return None;
    }
    let scheme = SCHEMES.iter().find(|scheme| begins(from, scheme));
    let from = from + scheme.map_or(0, |scheme| scheme.len());
    let is_credential = |byte: u8| is_word(byte, true) || matches!(byte, b'.' | b'~' | b'+' | b'/' | b'=');
    let to = run(bytes, from, is_credential);
    let value = &bytes[from..to];
    let has = |fits: fn(&u8) -> bool| value.iter().any(fits);
    // Behind a scheme stands a credential, or a word in capitals that is to be replaced by one.
    let is_secret = has(u8::is_ascii_digit) || (scheme.is_some() && has(u8::is_ascii_lowercase));
    let least = if *name == "authorization" { CREDENTIAL_BYTES } else { KEY_BYTES };
    (value.len() >= least && is_secret).then_some((from, to))
}

/// The body of a private key; its first and last line say that there was one.
fn private_key(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    if !bytes[at..].starts_with(PEM_BEGIN.as_bytes()) {
        return None;
    }
    let named = at + PEM_BEGIN.len();
    let end = (named + 64).min(bytes.len());
    let private = PEM_PRIVATE.as_bytes();
    let kind = run(&bytes[..end], named, |byte| byte.is_ascii_uppercase() || byte == b' ');
    // `PRIVATE KEY` is of the same letters: the run ends at the dashes behind it.
    let from = kind + "-----".len();
    if !bytes.get(named..from)?.ends_with(private) {
        return None;
    }
    // Base64, line ends as they are or escaped, and the lines of a key that is encrypted.
    let is_body =
        |byte: u8| byte.is_ascii_alphanumeric() || byte.is_ascii_whitespace() || b"+/=\\:,-".contains(&byte);
    let mut body_end = run(bytes, from, is_body);
    // A backslash at the end may belong to the quote behind it.
    while body_end > from && bytes[body_end - 1] == b'\\' {
        body_end -= 1;
    }
    let last_line = PEM_END.as_bytes();
    let to = bytes[from..body_end].windows(last_line.len()).position(|window| window == last_line);
    let to = to.map_or(body_end, |length| from + length);
    (to > from).then_some((from, to))
}

/// `scheme://user:password@host`.
fn password(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    if !bytes[at..].starts_with(b"://") {
        return None;
    }
    let is_part = |byte: u8| byte.is_ascii_graphic() && !b"/@:\"'<>\\{}$".contains(&byte);
    let most = (at + NEAR).min(bytes.len());
    let user = run(&bytes[..most], at + 3, is_part);
    if bytes.get(user) != Some(&b':') {
        return None;
    }
    let to = run(&bytes[..most], user + 1, is_part);
    (to > user + 1 && bytes.get(to) == Some(&b'@') && &bytes[user + 1..to] != BLOT.as_bytes())
        .then_some((user + 1, to))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;

    const GH: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

    #[test]
    fn secrets_are_blotted_out_and_what_they_were_stays() {
        for (text, wanted) in [
            ("key sk-ant-api03-R2D2c3po99887766 ok", "key sk-[redacted] ok"),
            ("sk-proj-abcDEF123456ghiJKL7890", "sk-[redacted]"),
            ("sk-proj-abcdefghijklmnopqrstuvwxyzabcdef", "sk-[redacted]"),
            ("sk-abcdefghijklmnopqrstuvwxyzabcdefghijklmnop", "sk-[redacted]"),
            ("sk-proj-AbCdEfGhIj-KlMnOpQrSt-UvWxYzAbCd-EfGhIjKlMn", "sk-[redacted]"),
            ("glpat-abcdefghijklmnopqrst", "glpat-[redacted]"),
            ("Authorization: Bearer abcdefgh", "Authorization: Bearer [redacted]"),
            ("x-api-key: hunter2", "x-api-key: [redacted]"),
            (GH, "ghp_[redacted]"),
            ("(AKIAIOSFODNN7EXAMPLE)", "(AKIA[redacted])"),
            ("t=xoxb-123456789012-abcDEF", "t=xoxb-[redacted]"),
            ("AIzaSyA1234567890abcdefghijklmnopqrstuv", "AIza[redacted]"),
            ("Authorization: Bearer abc.def-123456", "Authorization: Bearer [redacted]"),
            (r#"{"authorization":"Basic dXNlcjpwYXNz"}"#, r#"{"authorization":"Basic [redacted]"}"#),
            (r#"{\"x-api-key\":\"0123456789abcdef\"}"#, r#"{\"x-api-key\":\"[redacted]\"}"#),
            ("curl -H 'X-API-Key: 0123456789ab'", "curl -H 'X-API-Key: [redacted]'"),
            ("postgres://ann:hunter2@db.example/x", "postgres://ann:[redacted]@db.example/x"),
            ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4", "eyJ[redacted]"),
            (
                "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc=\n-----END RSA PRIVATE KEY-----\nthen",
                "-----BEGIN RSA PRIVATE KEY-----[redacted]-----END RSA PRIVATE KEY-----\nthen",
            ),
            (
                r#"{"key":"-----BEGIN PRIVATE KEY-----\nMIIE\nab"}"#,
                r#"{"key":"-----BEGIN PRIVATE KEY-----[redacted]"}"#,
            ),
        ] {
            assert_eq!(redact(text), wanted);
            assert_eq!(redact(wanted), wanted, "once is enough");
        }
    }

    #[test]
    fn ordinary_text_is_left_alone() {
        for text in [
            "da39a3ee5e6b4b0d3255bfef95601890afd80709",
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "ses_01K9X4V9Y3N5W4QAB7MZH6RGP0 550e8400-e29b-41d4-a716-446655440000",
            "task-list-of-things-to-be-done-today sk-loading-indicator-wrapper",
            "class=\"sk-folding-cube-animation-2\"",
            "the Authorization: header is required; Authorization: Bearer <token>",
            "Authorization: Bearer YOUR_API_KEY_HERE",
            "req.headers.authorization = format!(\"Bearer {}\", token)",
            "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
            "https://example.com:8080/a@b http://[::1]:80/ ssh://git@host/x",
            "AKIA is how keys begin; ghp_short; eyJ.eyJ.x; npm_config_cache",
            "let x = a::b::<C>(d); // s://e:f",
            "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
            "größer als ghp_ä",
            "",
        ] {
            assert!(matches!(redact(text), Cow::Borrowed(_)), "{text} → {}", redact(text));
        }
    }

    #[test]
    fn the_longest_lines_take_no_longer_than_their_length() {
        for hard in
            ["sk-", "-", "-----BEGIN PRIVATE KEY-----", "a://b:c", "eyJaaaaaaaaaa.", "authorization:", " A"]
        {
            let text = hard.repeat(4 * 1024 * 1024 / hard.len());
            let began = Instant::now();
            let _ = redact(&text);
            assert!(began.elapsed() < Duration::from_secs(20), "{hard}: {:?}", began.elapsed());
        }
    }

    fn any_piece() -> impl Strategy<Value = String> {
        prop_oneof![
            4 => ".{0,12}",
            2 => "[A-Za-z0-9_-]{0,40}",
            1 => "[0-9a-f]{40}",
            1 => Just(GH.to_owned()),
            1 => Just("sk-".to_owned()),
            1 => Just("AKIA".to_owned()),
            1 => Just("Authorization: Bearer ".to_owned()),
            1 => Just("-----BEGIN EC PRIVATE KEY-----".to_owned()),
            1 => Just("-----END EC PRIVATE KEY-----".to_owned()),
            1 => Just("://a:".to_owned()),
            1 => Just("@".to_owned()),
            1 => Just(BLOT.to_owned()),
        ]
    }

    proptest! {
        #[test]
        fn twice_is_once_and_nothing_panics(pieces in proptest::collection::vec(any_piece(), 0..8)) {
            let text = pieces.concat();
            let once = redact(&text).into_owned();
            prop_assert_eq!(redact(&once).into_owned(), once.clone());
            let stands_alone = [" ", GH, " "].concat();
            prop_assert!(!text.contains(&stands_alone) || !once.contains(&stands_alone));
        }

        #[test]
        fn hashes_are_left_alone(hash in "[0-9a-f]{7,64}", word in "[a-z]{1,12}") {
            // Such as `sk`, with which a hash would look like a key.
            prop_assume!(TOKENS.iter().all(|token| token.beginning != format!("{word}-")));
            let text = format!("commit {hash} {word}-{hash} {word}/{hash}.rs");
            prop_assert_eq!(redact(&text), text.as_str());
        }

        #[test]
        fn json_stays_json(value in any::<String>(), piece in any_piece()) {
            let text = serde_json::json!({ "a": value + &piece, "b": 1 }).to_string();
            prop_assert!(serde_json::from_str::<serde_json::Value>(&redact(&text)).is_ok());
        }
    }
}
