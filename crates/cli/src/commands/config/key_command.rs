//! Whether a line is one that a shell could run for a key. It is not run: keys are asked for when a session starts.

use std::process::{Command, Stdio};

use ostler_domain::{Refusal, text::one_line};

pub(super) fn check(key: &str, line: &str) -> Result<(), Refusal> {
    let refused = |why: String| {
        Refusal::invalid(format!("{key} cannot be \"{}\"", one_line(line, 80)))
            .because(why)
            .hint(format!("ostler config unset {key}"), "takes it back")
    };
    if line.trim().is_empty() {
        return Err(refused("it is a command that prints the key".to_owned()));
    }
    if !succeeds(&["-n", "-c", line]) {
        return Err(refused("the shell does not understand it".to_owned()));
    }
    match first_word(line).filter(|word| !succeeds(&["-c", "command -v -- \"$0\"", word])) {
        Some(word) => Err(refused(format!("there is no command {word} here"))),
        None => Ok(()),
    }
}

/// The program's name where it is plain; what the shell would make of anything else only the shell knows.
fn first_word(line: &str) -> Option<&str> {
    let word = line.split_whitespace().next()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./+-".contains(c);
    word.chars().all(is_plain).then_some(word)
}

fn succeeds(args: &[&str]) -> bool {
    let ended = Command::new("/bin/sh")
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    // Where there is no shell here, the daemon says so.
    ended.map_or(true, |status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_shell_could_run_is_refused() {
        for line in ["echo sk-1", "/bin/sh -c 'echo x'", "A=1 echo x", "$(echo echo) x", "cat <<E\nx\nE"] {
            assert_eq!(check("providers.codex.api_key_command", line), Ok(()), "{line}");
        }
        for (line, why) in [
            ("", "prints the key"),
            ("no-such-command-of-ours x", "no command no-such-command-of-ours"),
            ("/no/such/file", "no command"),
            ("echo 'x", "does not understand"),
        ] {
            let refused = check("providers.codex.api_key_command", line).unwrap_err();
            assert!(refused.why.unwrap().contains(why), "{line}");
        }
    }
}
