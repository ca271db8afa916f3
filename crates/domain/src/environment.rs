//! The environment of agents and commands: what nobody may set, because it would run code or pretend to be us.

/// Names that Ostler sets itself, last, in every sandbox.
const RESERVED: &[&str] = &["OSTLER_", "OBEY_", "GT_SESSION_"];
/// The way to the gateway, in both letter cases; Ostler's to set too.
const PROXIES: &[&str] = &["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"];
/// Beginnings of names by which a program is made to run other code than its own.
const DANGEROUS_BEGINNINGS: &[&str] = &["LD_", "PYTHON", "PERL5", "DYLD_"];
const DANGEROUS: &[&str] =
    &["BASH_ENV", "ENV", "IFS", "PS4", "PROMPT_COMMAND", "NODE_OPTIONS", "RUBYOPT", "JAVA_TOOL_OPTIONS"];
/// Git takes programs to run from its variables; these only say who somebody is.
const GIT_IDENTITY: &[&str] = &["GIT_AUTHOR_", "GIT_COMMITTER_"];

/// Why nobody may set a variable of this name; none when anybody may.
pub fn refusal(name: &str) -> Option<String> {
    let begins = |beginnings: &[&str]| beginnings.iter().any(|beginning| name.starts_with(beginning));
    if name.is_empty() || name.contains(['=', '\0']) {
        Some("that is no name of a variable".to_owned())
    } else if begins(RESERVED) || PROXIES.iter().any(|proxy| name.eq_ignore_ascii_case(proxy)) {
        Some("Ostler sets it itself".to_owned())
    } else if DANGEROUS.contains(&name)
        || begins(DANGEROUS_BEGINNINGS)
        || (name.starts_with("GIT_") && !begins(GIT_IDENTITY))
    {
        Some("it makes programs run other code than their own".to_owned())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_and_pretence_are_refused() {
        for name in [
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "BASH_ENV",
            "ENV",
            "IFS",
            "PS4",
            "PROMPT_COMMAND",
            "GIT_SSH_COMMAND",
            "GIT_DIR",
            "PYTHONPATH",
            "PYTHONSTARTUP",
            "NODE_OPTIONS",
            "PERL5OPT",
            "PERL5LIB",
            "RUBYOPT",
            "JAVA_TOOL_OPTIONS",
            "OSTLER_SESSION_ID",
            "OSTLER_SOCKET",
            "OSTLER_TOKEN",
            "OBEY_X",
            "GT_SESSION_UUID",
            "HTTPS_PROXY",
            "no_proxy",
            "",
            "A=B",
            "A\0",
        ] {
            assert!(refusal(name).is_some(), "{name}");
        }
        for name in [
            "EDITOR",
            "GIT_AUTHOR_NAME",
            "GIT_COMMITTER_EMAIL",
            "NODE_ENV",
            "ENVIRONMENT",
            "CARGO_TERM_COLOR",
        ] {
            assert_eq!(refusal(name), None, "{name}");
        }
    }
}
