//! Trying the sandbox: by the program itself, outside of any daemon.

use std::{
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use ostler_domain::readiness::{Readiness, Trial};

use crate::words;

/// Really starts a sandboxed `true`.
pub(crate) fn try_sandbox(program: &Path) -> Readiness {
    let tried = Command::new(program).args(["internal", "check"]).stdin(Stdio::null()).output();
    match tried {
        Ok(output) => serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| Readiness::unknown(format!("the trial ended with {}", output.status))),
        Err(error) => Readiness::unknown(format!("the trial cannot be started: {error}")),
    }
}

/// `a sandboxed \`true\` ran in 31 ms · namespaces, Landlock ABI 6, seccomp`
pub(crate) fn words(readiness: &Readiness) -> String {
    match &readiness.trial {
        Trial::Ran { took_us } => {
            let took = words::took(Duration::from_micros(*took_us));
            let landlock = readiness.landlock.map(|abi| format!(", Landlock ABI {abi}")).unwrap_or_default();
            let seccomp = if readiness.seccomp { ", seccomp" } else { "" };
            format!("a sandboxed `true` ran in {took} · namespaces{landlock}{seccomp}")
        }
        Trial::Refused { stage, message, .. } => {
            format!("cannot be built, so no agent is started ({stage}: {message})")
        }
    }
}
