//! Leases: what an assignment alone may write. Each is a path below the campaign's root, in which `*` and `?` stand for
//! parts of a name, and a whole name `**` for any directories.

/// Whether it names what is looked for when its agent starts.
pub fn is_pattern(path: &str) -> bool {
    path.split('/').any(is_pattern_name)
}

fn is_pattern_name(name: &str) -> bool {
    name.contains(['*', '?'])
}

/// Whether something may lie in both. Of two patterns it is said where nobody knows better.
pub fn overlap(one: &str, other: &str) -> bool {
    let (mut one, mut other) = (one.split('/'), other.split('/'));
    loop {
        match (one.next(), other.next()) {
            // What holds the other holds all of it.
            (None, _) | (_, None) => return true,
            (Some("**"), _) | (_, Some("**")) => return true,
            (Some(name), Some(pattern)) | (Some(pattern), Some(name)) if is_pattern_name(pattern) => {
                if !is_pattern_name(name) && !matches(pattern, name) {
                    return false;
                }
            }
            (Some(name), Some(same)) if name == same => {}
            _ => return false,
        }
    }
}

/// Whether all of it lies in the other.
pub fn lies_within(path: &str, lease: &str) -> bool {
    let mut names = path.split('/');
    for wanted in lease.split('/') {
        match names.next() {
            _ if wanted == "**" => return path == lease || lease == "**" || lease.ends_with("/**"),
            Some(name) if name == wanted || (!is_pattern_name(name) && matches(wanted, name)) => {}
            _ => return false,
        }
    }
    true
}

/// Whether a pattern for one name fits it.
pub fn matches(pattern: &str, name: &str) -> bool {
    crate::hidden::matches(pattern.as_bytes(), name.as_bytes())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_lies_in_both_is_seen_from_both() {
        for (one, other, both) in [
            ("src", "src", true),
            ("src", "src/api/login.rs", true),
            ("src", "srcs", false),
            ("src/api", "src/ui", false),
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/a.ts", false),
            ("src/*.rs", "src/*.ts", true),
            ("src/*/mod.rs", "src/api", true),
            ("src/**/mod.rs", "src/api/deep/x.rs", true),
            ("src/**", "docs", false),
            ("*", "docs/a.md", true),
        ] {
            assert_eq!(overlap(one, other), both, "{one} {other}");
            assert_eq!(overlap(other, one), both, "{other} {one}");
        }
    }

    #[test]
    fn nothing_lies_within_what_is_narrower() {
        for (path, lease) in
            [("src/api", "src"), ("src/a.rs", "src/*.rs"), ("src/a/b", "src/**"), ("src/*.rs", "src")]
        {
            assert!(lies_within(path, lease), "{path} {lease}");
        }
        for (path, lease) in
            [("src", "src/api"), ("src/*", "src/*.rs"), ("srcs", "src"), ("src/a.ts", "src/*.rs")]
        {
            assert!(!lies_within(path, lease), "{path} {lease}");
        }
    }

    proptest! {
        #[test]
        fn what_lies_within_overlaps(path in "[ab*]{1,2}(/[ab*]{1,2}){0,3}", lease in "[ab*]{1,2}(/[ab*]{1,2}){0,3}") {
            prop_assert!(!lies_within(&path, &lease) || overlap(&path, &lease));
            prop_assert!(lies_within(&path, &path) || path.contains("**"));
        }
    }
}
