//! The environment of agents and commands: what nobody may set, because it would run code or pretend to be us.

/// Names that Ostler sets itself, last, in every sandbox.
const RESERVED: &[&str] = &["OSTLER_", "OBEY_", "GT_SESSION_"];
/// The way to the gateway, in both letter cases; Ostler's to set too.
const PROXIES: &[&str] = &["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"];
/// What Ostler makes for a sandbox. Another directory or shell under these names would be one that is not there, or one
/// that an agent has put there.
const OF_THE_SANDBOX: &[&str] = &["PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "PWD", "OLDPWD"];
/// Beginnings of names by which a program is made to run other code than its own.
const DANGEROUS_BEGINNINGS: &[&str] = &[
    "BASH_FUNC_",
    "COR_",
    "CORECLR_",
    "DYLD_",
    "LD_",
    "LUA_INIT",
    "LUA_PATH",
    "LUA_CPATH",
    "OPENSSL_",
    "PERL5",
    "PYTHON",
];
const DANGEROUS: &[&str] = &[
    "BASHOPTS",
    "BASH_ENV",
    "CDPATH",
    "CLASSPATH",
    "DOTNET_STARTUP_HOOKS",
    "ENV",
    "ERL_AFLAGS",
    "ERL_FLAGS",
    "ERL_ZFLAGS",
    "GCONV_PATH",
    "GIO_EXTRA_MODULES",
    "GLIBC_TUNABLES",
    "GLOBIGNORE",
    "GNUMAKEFLAGS",
    "GTK_MODULES",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LESSCLOSE",
    "LESSOPEN",
    "LOCPATH",
    "MAKEFILES",
    "MAKEFLAGS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PERLLIB",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "PROMPT_COMMAND",
    "PS4",
    "QT_PLUGIN_PATH",
    "RUBYLIB",
    "RUBYOPT",
    "RUSTC",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTDOC",
    "R_PROFILE",
    "R_PROFILE_USER",
    "SHELLOPTS",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "ZDOTDIR",
    "_JAVA_OPTIONS",
];
/// Cargo takes every setting from a variable; those that end so name a program.
const CARGO_PROGRAMS: &[&str] = &["_LINKER", "_RUNNER", "_RUSTC", "_RUSTDOC", "_WRAPPER"];
/// Git takes programs to run from its variables; these only say who somebody is.
const GIT_IDENTITY: &[&str] = &["GIT_AUTHOR_", "GIT_COMMITTER_"];

/// Whether a variable may have this name.
pub fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Why nobody may set a variable of this name; none when anybody may.
pub fn refusal(name: &str) -> Option<String> {
    let begins = |beginnings: &[&str]| beginnings.iter().any(|beginning| name.starts_with(beginning));
    let is_cargo_s = name.starts_with("CARGO_") && CARGO_PROGRAMS.iter().any(|ending| name.ends_with(ending));
    if !is_name(name) {
        Some("that is no name of a variable: letters, digits and _".to_owned())
    } else if begins(RESERVED)
        || OF_THE_SANDBOX.contains(&name)
        || PROXIES.iter().any(|proxy| name.eq_ignore_ascii_case(proxy))
    {
        Some("Ostler sets it itself".to_owned())
    } else if DANGEROUS.contains(&name)
        || begins(DANGEROUS_BEGINNINGS)
        || is_cargo_s
        || (name.starts_with("GIT_") && !begins(GIT_IDENTITY))
    {
        Some("it makes programs run other code than their own".to_owned())
    } else {
        None
    }
}

/// Why a variable may not have this value; none when it may. Lines are text; what moves a cursor is not.
pub fn value_refusal(value: &str) -> Option<&'static str> {
    let is_odd = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    value.contains(is_odd).then_some("it has control characters in it")
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
            "A B",
            "A-B",
            "1A",
            "BASH_FUNC_a%%",
            "BASH_FUNC_a",
            "_JAVA_OPTIONS",
            "JDK_JAVA_OPTIONS",
            "GCONV_PATH",
            "RUSTC_WRAPPER",
            "CARGO_BUILD_RUSTC_WRAPPER",
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER",
            "MAKEFLAGS",
            "LESSOPEN",
            "PATH",
            "HOME",
            "TMPDIR",
            "SHELL",
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
            "RUST_LOG",
            "RUSTFLAGS",
            "LANG",
            "TZ",
            "_x1",
        ] {
            assert_eq!(refusal(name), None, "{name}");
        }
    }

    #[test]
    fn values_are_text() {
        assert_eq!(value_refusal("two\n\tlines, ä"), None);
        for value in ["\u{1b}[2J", "a\rb", "\0", "\u{9b}31m"] {
            assert!(value_refusal(value).is_some(), "{value:?}");
        }
    }
}
