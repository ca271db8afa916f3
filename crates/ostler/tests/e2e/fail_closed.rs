//! Where no sandbox can be built, nothing is started, and what is missing is said.

use std::process::{Command, Output};

use ostler_testkit::{TestHome, skip};

use crate::OSTLER;

/// Runs a script in a user namespace that lets nobody make another one.
fn without_user_namespaces(home: &TestHome, script: &str) -> Option<Output> {
    let limited = format!("echo 0 > /proc/sys/user/max_user_namespaces && {{ {script}; }}");
    let container = ["--user", "--map-root-user", "--pid", "--fork", "--mount-proc"];
    let allowed = Command::new("unshare").args(container).arg("true").status();
    if !allowed.is_ok_and(|status| status.success()) {
        skip::lacking("this machine makes no namespaces");
        return None;
    }
    let mut command = home.command_of("unshare".as_ref(), &container);
    Some(command.args(["sh", "-c", &limited, "sh", OSTLER]).output().unwrap())
}

#[test]
fn nothing_starts_that_cannot_be_confined() {
    let home = TestHome::new(OSTLER);
    let script = "$1 campaign add . --name shop >&2; $1 run hello; code=$?; $1 ls -a -o json; $1 sandbox check >&2; \
                  $1 daemon stop >&2; exit $code";
    let Some(output) = without_user_namespaces(&home, script) else { return };
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(5), "{out}{err}");
    assert!(err.contains("SANDBOX_UNAVAILABLE") && err.contains("user.max_user_namespaces"), "{err}");
    assert!(out.contains("\"sessions\":[]"), "nothing was created: {out}");
}

#[test]
fn only_the_demo_goes_on_and_says_so() {
    let home = TestHome::new(OSTLER);
    let Some(output) = without_user_namespaces(&home, "$1 demo") else { return };
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{out}");
    assert!(out.contains("sandbox=off") && out.contains("nothing was lost"), "{out}");
    assert!(!out.contains("attempts to leave the sandbox"), "none is claimed: {out}");
}
