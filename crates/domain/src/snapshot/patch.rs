//! Patches as git writes them, for people.

/// A patch without the bytes of binary files, which are for programs.
pub fn readable(patch: &[u8]) -> String {
    let text = String::from_utf8_lossy(patch);
    let (mut lines, mut is_binary) = (String::with_capacity(text.len()), false);
    for line in text.split_inclusive('\n') {
        if line.starts_with("diff --git ") {
            is_binary = false;
        } else if line.trim_end() == "GIT binary patch" {
            is_binary = true;
            lines.push_str("a binary file\n");
        }
        if !is_binary {
            lines.push_str(line);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_not_for_people() {
        let patch =
            b"diff --git a/x b/x\nindex 1..2 100644\nGIT binary patch\nliteral 3\nKcmZ\n\nliteral 0\nHcm\n\n\
            diff --git a/y b/y\n+GIT binary patch\n+diff\n";
        let shown = "diff --git a/x b/x\nindex 1..2 100644\na binary file\ndiff --git a/y b/y\n+GIT binary patch\n+diff\n";
        assert_eq!(readable(patch), shown);
    }
}
