//! Where an agent works: what a path that it names means there.

use super::rule::matches_typed;

/// Deepest path that is looked at; no file system has deeper ones that anybody types.
const MOST_PARTS: usize = 128;

/// A campaign's root, and whether a sandbox holds whoever works in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place<'a> {
    /// Absolute.
    pub root: &'a str,
    pub is_confined: bool,
}

impl Place<'_> {
    /// A path's parts from `/` on. None where it depends on links or on a home what is meant.
    pub(super) fn parts(&self, path: &str) -> Option<Vec<String>> {
        if path.is_empty() || path.starts_with('~') || path.contains('\0') {
            return None;
        }
        let whole = if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", self.root) };
        let parts: Vec<String> =
            whole.split('/').filter(|part| !matches!(*part, "" | ".")).map(str::to_owned).collect();
        (parts.len() <= MOST_PARTS && !parts.iter().any(|part| part == "..")).then_some(parts)
    }

    /// What a path is below another one; none when it is not.
    pub(super) fn below(&self, path: &str, parent: &str) -> Option<String> {
        let (path, parent) = (self.parts(path)?, self.parts(parent)?);
        path.strip_prefix(parent.as_slice()).map(|rest| rest.join("/"))
    }

    pub(super) fn is_path_in(&self, path: &str, pattern: &str) -> bool {
        match (self.parts(path), self.parts(pattern)) {
            (Some(path), Some(pattern)) => fits(&pattern, &path),
            _ => false,
        }
    }

    /// A path as a rule would name it: short where it is in the campaign.
    pub(super) fn named(&self, path: &str) -> Option<String> {
        let text = match self.below(path, self.root) {
            Some(below) if !below.is_empty() => below,
            _ => format!("/{}", self.parts(path)?.join("/")),
        };
        // A star would mean more than the file that has one in its name.
        (!text.contains('*') && !text.contains(char::is_control)).then_some(text)
    }
}

fn fits(pattern: &[String], path: &[String]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, None) => true,
        (Some((first, rest)), _) if first == "**" => {
            fits(rest, path) || path.split_first().is_some_and(|(_, deeper)| fits(pattern, deeper))
        }
        (Some((wanted, pattern)), Some((part, path))) => matches_typed(wanted, part) && fits(pattern, path),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOP: Place<'_> = Place { root: "/srv/shop", is_confined: true };

    #[test]
    fn paths_mean_what_they_say() {
        for (path, pattern) in [
            ("src/a.rs", "src/**"),
            ("/srv/shop/src/a.rs", "src/*.rs"),
            ("./src//a.rs", "/srv/shop/src/a.rs"),
            ("docs/x/y.md", "**/*.md"),
            ("/opt/sdk", "/opt/sdk/**"),
        ] {
            assert!(SHOP.is_path_in(path, pattern), "{path} {pattern}");
        }
        for (path, pattern) in [
            ("src/../../x", "**"),
            ("~/x", "**"),
            ("", "**"),
            ("/srv/shopping/x", "**"),
            ("src/a/b.rs", "src/*.rs"),
            ("/opt/sdkx", "/opt/sdk/**"),
        ] {
            assert!(!SHOP.is_path_in(path, pattern), "{path} {pattern}");
        }
    }

    #[test]
    fn a_path_is_named_as_short_as_it_can_be() {
        assert_eq!(SHOP.named("/srv/shop/src/a.rs").as_deref(), Some("src/a.rs"));
        assert_eq!(SHOP.named("/etc//hosts").as_deref(), Some("/etc/hosts"));
        assert_eq!(SHOP.named("a*"), None);
    }
}
