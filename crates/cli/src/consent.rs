//! Before something is taken away: what that would be, and whether it is meant.

use clap::Args;
use serde::Serialize;

use crate::{
    failure::Failure,
    input,
    output::{Line, Ui},
};

#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct DryRun {
    /// Say what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct Consent {
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    dry: DryRun,
}

impl DryRun {
    pub(crate) fn is_wanted(self) -> bool {
        self.dry_run
    }

    /// Whether that is all that is wanted, and then says it: in the words of a command, for programs the thing itself.
    pub(crate) fn said(self, ui: &Ui, deed: &str, form: &impl Serialize) -> Result<bool, Failure> {
        match self.dry_run {
            false => {}
            true if ui.is_json() => ui.json(form)?,
            true => ui.data(&Line::of(format!("would {deed}")))?,
        }
        Ok(self.dry_run)
    }
}

impl Consent {
    /// Whether it is to be done. Where there is nobody to ask, whoever typed it meant it.
    pub(crate) fn given(self, ui: &Ui, deed: &str, form: &impl Serialize) -> Result<bool, Failure> {
        if self.dry.said(ui, deed, form)? {
            return Ok(false);
        }
        if self.yes || !ui.has_person() || input::agrees(ui, &format!("{deed}?")) {
            return Ok(true);
        }
        ui.remark(&Line::of("nothing was changed"));
        Ok(false)
    }
}
