//! Whether this machine can confine agents, asked of the program that would do it. The daemon itself has none of the
//! sandbox's code.

use std::process::Stdio;

use ostler_domain::{
    Reason, Refusal,
    readiness::{Readiness, Trial},
    session::Sandbox,
};
use tokio::{
    process::Command,
    time::{Duration, timeout},
};

use crate::{keeper::Program, shared::Shared};

/// A trial takes some milliseconds; a machine under load is given more.
const TRIED_WITHIN: Duration = Duration::from_secs(20);

/// Tries a sandbox.
async fn ask(program: &Program) -> Readiness {
    let mut command = Command::new(program.path());
    command.args(["internal", "check"]).env_clear().current_dir("/");
    command.stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    match timeout(TRIED_WITHIN, command.output()).await {
        Ok(Ok(output)) => serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| Readiness::unknown(format!("the trial ended with {}", output.status))),
        Ok(Err(error)) => Readiness::unknown(format!("the trial cannot be started: {error}")),
        Err(_) => Readiness::unknown(format!("the trial took more than {} s", TRIED_WITHIN.as_secs())),
    }
}

impl Shared {
    /// Refuses where no sandbox can be built: nothing is started that would not be confined. What once worked is not
    /// tried again; what did not may have been cured since. Many who ask at once wait for one trial.
    pub(crate) async fn check_confinable(&self) -> Result<(), Refusal> {
        if self.sandbox() == Sandbox::Off {
            return Ok(());
        }
        self.can_confine.get_or_try_init(|| self.try_sandbox()).await.copied()
    }

    async fn try_sandbox(&self) -> Result<(), Refusal> {
        match ask(&self.program).await.trial {
            Trial::Ran { took_us } => {
                tracing::info!(took_us, "a sandboxed program ran");
                Ok(())
            }
            Trial::Refused { stage, message, hint } => {
                let refusal = Refusal::new(
                    Reason::SandboxUnavailable,
                    "the sandbox cannot be built, so nothing was started",
                )
                .because(if hint.is_empty() {
                    format!("{stage}: {message}")
                } else {
                    format!("{message}; {hint}")
                });
                Err(refusal.hint("ostler doctor", "tries it and shows what the kernel offers"))
            }
        }
    }
}
