//! Which paths a git index names. Only that: to know whether a hidden file is tracked, without running git on files that
//! somebody else may have written.

/// How many tracked hidden files are named.
pub const MOST_NAMED: usize = 20;

/// An index that is none, or is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the git index is not understood")]
pub struct NotUnderstood;

/// Bytes of an entry before its name, without the extended flags.
const FIXED: usize = 62;
const EXTENDED: u16 = 0x4000;

/// Calls `take` with each path of the index, in order.
pub fn each_path(index: &[u8], mut take: impl FnMut(&[u8])) -> Result<(), NotUnderstood> {
    let number = |at: usize| -> Result<u32, NotUnderstood> {
        let bytes = index.get(at..at + 4).ok_or(NotUnderstood)?;
        Ok(bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
    };
    if index.get(..4) != Some(b"DIRC") {
        return Err(NotUnderstood);
    }
    let version = number(4)?;
    if !(2..=4).contains(&version) {
        return Err(NotUnderstood);
    }
    let entries = number(8)?;
    let mut at = 12;
    // In version 4 a path is told by what differs from the one before.
    let mut path: Vec<u8> = Vec::new();
    for _ in 0..entries {
        let start = at;
        let flags = number(start + FIXED - 4)? as u16;
        at += FIXED + if version >= 3 && flags & EXTENDED != 0 { 2 } else { 0 };
        if version == 4 {
            let (dropped, after) = offset(index, at)?;
            at = after;
            path.truncate(path.len().checked_sub(dropped).ok_or(NotUnderstood)?);
        } else {
            path.clear();
        }
        let rest = index.get(at..).ok_or(NotUnderstood)?;
        let end = rest.iter().position(|byte| *byte == 0).ok_or(NotUnderstood)?;
        path.extend_from_slice(&rest[..end]);
        at += end + 1;
        if version < 4 {
            // Entries are filled up with zeroes to eight bytes.
            at = start + (at - start).div_ceil(8) * 8;
        }
        take(&path);
    }
    Ok(())
}

/// A number in git's own variable form, and where it ends.
fn offset(index: &[u8], mut at: usize) -> Result<(usize, usize), NotUnderstood> {
    let mut value = 0_usize;
    loop {
        let byte = *index.get(at).ok_or(NotUnderstood)?;
        at += 1;
        let low = usize::from(byte & 127);
        value = value.checked_mul(128).and_then(|high| high.checked_add(low)).ok_or(NotUnderstood)?;
        if byte & 128 == 0 {
            return Ok((value, at));
        }
        value = value.checked_add(1).ok_or(NotUnderstood)?;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(version: u32, name: &[u8]) -> Vec<u8> {
        let mut entry = vec![0; FIXED];
        entry.extend_from_slice(name);
        entry.push(0);
        while version < 4 && !entry.len().is_multiple_of(8) {
            entry.push(0);
        }
        entry
    }

    fn index(version: u32, entries: &[Vec<u8>]) -> Vec<u8> {
        let mut index = b"DIRC".to_vec();
        index.extend_from_slice(&version.to_be_bytes());
        index.extend_from_slice(&u32::try_from(entries.len()).unwrap().to_be_bytes());
        index.extend(entries.concat());
        index.extend_from_slice(b"TREE\0\0\0\x04abcd");
        index
    }

    fn paths(index: &[u8]) -> Result<Vec<String>, NotUnderstood> {
        let mut paths = Vec::new();
        each_path(index, |path| paths.push(String::from_utf8_lossy(path).into_owned()))?;
        Ok(paths)
    }

    #[test]
    fn names_are_found_in_each_version() {
        let names = [".env", "a/very/long/name/of/a/file.txt", "z"];
        for version in [2, 3] {
            let entries = names.map(|name| entry(version, name.as_bytes()));
            assert_eq!(paths(&index(version, &entries)).unwrap(), names);
        }
        // Each begins with how much of the one before is dropped.
        let entries = [&b"\0src/a.rs"[..], b"\x04b.rs", b"\x08.env"].map(|name| entry(4, name));
        assert_eq!(paths(&index(4, &entries)).unwrap(), ["src/a.rs", "src/b.rs", ".env"]);
    }

    #[test]
    fn what_is_cut_or_none_is_an_error() {
        let whole = index(2, &[entry(2, b"a")]);
        for end in 0..12 + FIXED {
            assert_eq!(paths(&whole[..end]), Err(NotUnderstood), "{end}");
        }
        assert!(paths(b"PACK").is_err());
        assert!(paths(&index(5, &[])).is_err());
        assert!(paths(&index(4, &[entry(4, b"\x09a")])).is_err(), "more is dropped than there is");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in any::<Vec<u8>>(), version in 2_u32..5, count in any::<u32>()) {
            let _ = paths(&bytes);
            let mut index = b"DIRC".to_vec();
            index.extend_from_slice(&version.to_be_bytes());
            index.extend_from_slice(&count.to_be_bytes());
            index.extend_from_slice(&bytes);
            let _ = paths(&index);
        }
    }
}
