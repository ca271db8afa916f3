//! The pipe on which the keeper hears why the agent does not run. It ends when the agent's program has been executed.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;

use crate::channel::ExecReport;
use crate::refusal::Refusal;

#[derive(Debug)]
pub(crate) struct ExecStatus {
    pipe: File,
}

impl ExecStatus {
    pub(crate) fn new(pipe: OwnedFd) -> ExecStatus {
        ExecStatus { pipe: pipe.into() }
    }

    pub(crate) fn say(&mut self, report: &ExecReport) {
        if let Ok(mut line) = serde_json::to_vec(report) {
            line.push(b'\n');
            // A keeper that does not listen is gone, and ends us.
            let _ = self.pipe.write_all(&line);
        }
    }

    pub(crate) fn refuse(&mut self, refusal: &Refusal) {
        self.say(&ExecReport::Failed {
            stage: refusal.stage.to_string(),
            errno: refusal.errno,
            message: refusal.message.clone(),
            hint: refusal.hint.clone(),
        });
    }
}
