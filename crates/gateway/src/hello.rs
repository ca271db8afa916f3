//! The first thing that a TLS client says, read for one word: the name of the server that it wants.
//!
//! Nothing is believed beyond its length fields, and each of those is checked against what is there.

/// What the bytes so far are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Hello {
    /// The beginning of a greeting.
    Incomplete,
    /// A whole greeting, and the name in it, in lower case.
    Whole(Option<String>),
    /// No greeting of TLS, or one that says two things at once.
    Foreign,
}

const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const HOST_NAME: u8 = 0;
/// Of one record, unencrypted.
const RECORD_BYTES: usize = 1 << 14;

pub(crate) fn read(bytes: &[u8]) -> Hello {
    let mut message = Vec::new();
    let mut records = Cursor(bytes);
    loop {
        // A client may cut its greeting into several records.
        match body(&message) {
            Ok(Some(body)) => return parse(body).map_or(Hello::Foreign, Hello::Whole),
            Ok(None) => {}
            Err(Malformed) => return Hello::Foreign,
        }
        match record(&mut records) {
            Ok(Some(part)) => message.extend_from_slice(part),
            Ok(None) => return Hello::Incomplete,
            Err(Malformed) => return Hello::Foreign,
        }
    }
}

struct Malformed;

/// The next whole record; none if it is not all there yet.
fn record<'a>(bytes: &mut Cursor<'a>) -> Result<Option<&'a [u8]>, Malformed> {
    let Cursor(rest) = *bytes;
    // What is there of the head must fit at once: whoever speaks another protocol is not waited for.
    if rest.first().is_some_and(|kind| *kind != HANDSHAKE) || rest.get(1).is_some_and(|major| *major != 3) {
        return Err(Malformed);
    }
    let Some(&[_, _, _, high, low]) = rest.get(..5) else { return Ok(None) };
    let len = usize::from(u16::from_be_bytes([high, low]));
    if len == 0 || len > RECORD_BYTES {
        return Err(Malformed);
    }
    let Some(part) = rest.get(5..5 + len) else { return Ok(None) };
    *bytes = Cursor(&rest[5 + len..]);
    Ok(Some(part))
}

/// The greeting itself, once all of it is there.
fn body(message: &[u8]) -> Result<Option<&[u8]>, Malformed> {
    if message.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
        return Err(Malformed);
    }
    let Some(&[_, a, b, c]) = message.get(..4) else { return Ok(None) };
    let len = u32::from_be_bytes([0, a, b, c]) as usize;
    Ok(message.get(4..4 + len))
}

/// The name, if any; none at all for a greeting that is malformed.
fn parse(body: &[u8]) -> Option<Option<String>> {
    let mut hello = Cursor(body);
    hello.take(2 + 32)?;
    hello.short_list()?;
    hello.list()?;
    hello.short_list()?;
    if hello.is_empty() {
        return Some(None);
    }
    let mut extensions = Cursor(hello.list()?);
    if !hello.is_empty() {
        return None;
    }
    let mut name = None;
    while !extensions.is_empty() {
        let kind = extensions.u16()?;
        let content = extensions.list()?;
        if kind == SERVER_NAME && name.replace(server_name(content)?).is_some() {
            return None;
        }
    }
    Some(name)
}

fn server_name(content: &[u8]) -> Option<String> {
    let mut content = Cursor(content);
    let mut names = Cursor(content.list()?);
    if !content.is_empty() || names.u8()? != HOST_NAME {
        return None;
    }
    let name = names.list()?;
    // One name: of several, server and gateway might take different ones.
    if !names.is_empty() || name.is_empty() || !name.iter().all(u8::is_ascii_graphic) {
        return None;
    }
    Some(String::from_utf8(name.to_vec()).ok()?.to_ascii_lowercase())
}

#[derive(Clone, Copy)]
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn u16(&mut self) -> Option<u16> {
        self.take(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// Behind one byte of length.
    fn short_list(&mut self) -> Option<&'a [u8]> {
        let len = self.u8()?;
        self.take(len.into())
    }

    /// Behind two bytes of length.
    fn list(&mut self) -> Option<&'a [u8]> {
        let len = self.u16()?;
        self.take(len.into())
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn with_len(bytes: &[u8]) -> Vec<u8> {
        [&(bytes.len() as u16).to_be_bytes(), bytes].concat()
    }

    fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
        [&kind.to_be_bytes()[..], &with_len(content)].concat()
    }

    fn named(name: &str) -> Vec<u8> {
        extension(0, &with_len(&[&[0][..], &with_len(name.as_bytes())].concat()))
    }

    fn message(extensions: &[u8]) -> Vec<u8> {
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.extend([32]);
        body.extend([9; 32]);
        body.extend(with_len(&[0x13, 1, 0x13, 2]));
        body.extend([1, 0]);
        body.extend(with_len(extensions));
        [&[1][..], &(body.len() as u32).to_be_bytes()[1..], &body].concat()
    }

    fn records(message: &[u8], piece: usize) -> Vec<u8> {
        let record = |part: &[u8]| [&[22, 3, 1][..], &with_len(part)].concat();
        message.chunks(piece).flat_map(record).collect()
    }

    fn hello(extensions: &[u8]) -> Vec<u8> {
        records(&message(extensions), 10_000)
    }

    #[test]
    fn the_name_is_found() {
        let extensions = [extension(23, &[]), named("Api.Example"), extension(43, &[2, 3, 4])].concat();
        let whole = Hello::Whole(Some("api.example".to_owned()));
        assert_eq!(read(&hello(&extensions)), whole);
        assert_eq!(read(&records(&message(&extensions), 3)), whole, "in pieces");
        let with_more = [hello(&extensions), b"\x17\x03\x03more".to_vec()].concat();
        assert_eq!(read(&with_more), whole, "what follows is not looked at");
        assert_eq!(read(&hello(&extension(23, &[]))), Hello::Whole(None));
    }

    #[test]
    fn a_beginning_is_waited_for() {
        for bytes in [hello(&named("api.example")), records(&message(&named("api.example")), 7)] {
            for len in 0..bytes.len() {
                assert_eq!(read(&bytes[..len]), Hello::Incomplete, "{len} bytes");
            }
        }
    }

    #[test]
    fn what_says_two_things_or_something_else_is_foreign() {
        let two = with_len(&[&[0][..], &with_len(b"a.example"), &[0], &with_len(b"b.example")].concat());
        for (what, bytes) in [
            ("two extensions", hello(&[named("a.example"), named("b.example")].concat())),
            ("two names", hello(&extension(0, &two))),
            ("an empty name", hello(&named(""))),
            ("a name with a zero", hello(&named("a\0.example"))),
            ("another sort of name", hello(&extension(0, &with_len(&[1, 0, 1, b'a'])))),
            ("plain text", b"GET / HTTP/1.1\r\n".to_vec()),
            ("ssh", b"SSH-2.0".to_vec()),
            ("an alert", vec![21, 3, 1, 0, 2, 1, 0]),
            ("an empty record", vec![22, 3, 1, 0, 0]),
            ("a server's greeting", records(&[2, 0, 0, 0], 10)),
            ("old SSL", vec![0x80, 0x2e, 1]),
        ] {
            assert_eq!(read(&bytes), Hello::Foreign, "{what}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in vec(any::<u8>(), 0..300)) {
            read(&bytes);
            read(&[&[22, 3, 1, 1, 0][..], &bytes].concat());
            read(&hello(&bytes));
        }

        #[test]
        fn no_damage_panics_or_gives_another_valid_looking_wait(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let mut bytes = hello(&[named("api.example"), extension(16, &[0, 3, 2, b'h', b'2'])].concat());
            let at = at.index(bytes.len());
            bytes[at] = byte;
            read(&bytes);
        }
    }
}
