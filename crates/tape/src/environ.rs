//! The environment of a process as bytes, in the form of `/proc/PID/environ`: `NAME=VALUE`, each ended by a zero.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
};

/// Writes one. What could not be read back, because there is a zero in it or it has no name, is no variable of any process.
pub fn write(environment: impl IntoIterator<Item = (OsString, OsString)>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in environment {
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(b'=');
        bytes.extend_from_slice(value.as_bytes());
        bytes.push(0);
    }
    bytes
}

/// Reads one.
pub fn read(bytes: &[u8]) -> impl Iterator<Item = (&OsStr, OsString)> {
    bytes.split(|byte| *byte == 0).filter_map(|variable| {
        // A name may begin with the sign that ends it.
        let end = 1 + variable.get(1..)?.iter().position(|byte| *byte == b'=')?;
        let (name, value) = variable.split_at(end);
        Some((OsStr::from_bytes(name), OsString::from_vec(value[1..].to_vec())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_it_was_written() {
        let environment = [("A", "b=c"), ("EMPTY", ""), ("LINES", "1\n2")];
        let environment = environment.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let odd = (OsString::from("NO_TEXT"), OsString::from_vec(vec![0xff, b'=', 0xfe]));
        let all: Vec<_> = environment.into_iter().chain([odd]).collect();
        let bytes = write(all.clone());
        assert!(read(&bytes).map(|(name, value)| (name.to_owned(), value)).eq(all));
        assert_eq!(read(b"").count() + read(b"=\0nothing\0\0").count(), 0);
    }
}
