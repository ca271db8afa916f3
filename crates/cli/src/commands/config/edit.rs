//! `ostler config edit`: a draft beside the file, which takes its place when the daemon would understand it.

use std::{env, fs, io, path::Path, process::Command};

use ostler_domain::{Reason, Refusal};

use super::file;
use crate::{
    app::App,
    exit_code,
    failure::Failure,
    held_file::{hold, unwritable},
    input,
    output::Line,
};

/// Where nobody names an editor.
const USUAL_EDITOR: &str = "vi";

pub(super) fn run(app: &App, path: &Path) -> Result<u8, Failure> {
    if named_editor().is_none() && !app.ui.has_person() {
        return Err(Refusal::invalid("there is no terminal to edit in, and no editor is named")
            .hint("ostler config set KEY VALUE", "changes one setting")
            .hint("EDITOR=PROGRAM ostler config edit", "has a program change the file")
            .into());
    }
    let before = file::text(path)?;
    let draft = path.with_extension("toml.draft");
    let shown = draft.display().to_string();
    if draft.exists() && is_older(&draft, path) {
        // What was set since would be undone by it.
        let aside = path.with_extension("toml.draft.old");
        fs::rename(&draft, &aside).map_err(|error| file::unusable(&draft, &error.to_string()))?;
        let line = Line::of(format!("{} was changed since the last draft, ", path.display()));
        app.ui.remark(&line.plain(format!("which is in {} now", aside.display())));
    }
    if draft.exists() {
        app.ui.remark(&Line::of(format!("going on with what was not taken last time, {shown}")));
    } else {
        file::write(&draft, &before).map_err(|error| file::unusable(&draft, &error.to_string()))?;
    }
    let after = loop {
        if let Err(refusal) = open(&draft) {
            if file::text(&draft)? == before {
                remove(&draft)?;
            }
            return Err(refusal.into());
        }
        let text = file::text(&draft)?;
        match file::check_all(&text) {
            Ok(()) => break text,
            Err(refusal) if app.ui.has_person() => {
                app.ui.say_refusal(&refusal);
                if !input::consents(&app.ui, "open it again?") {
                    return Err(kept(refusal, &shown).into());
                }
            }
            Err(refusal) => return Err(kept(refusal, &shown).into()),
        }
    };
    // Somebody may have set something meanwhile.
    let _held = hold(path)?;
    if file::text(path)? != before {
        return Err(kept(
            Refusal::new(Reason::WrongState, format!("{} was changed meanwhile", path.display())),
            &shown,
        )
        .into());
    }
    if after == before {
        remove(&draft)?;
        app.ui.remark(&Line::of("nothing was changed"));
    } else {
        file::write(path, &after).map_err(|error| unwritable(path, &error))?;
        remove(&draft)?;
        app.ui.remark(&Line::of(format!("{} is replaced", path.display())).faint(
            "   limits of sessions at once, providers from the next session on; everything else with ostler daemon restart (agents go on meanwhile)",
        ));
    }
    if app.ui.is_json() {
        app.ui.json(&serde_json::json!({ "path": path.to_string_lossy(), "changed": after != before }))?;
    }
    Ok(exit_code::OK)
}

fn is_older(draft: &Path, file: &Path) -> bool {
    let changed = |path: &Path| path.metadata().and_then(|found| found.modified());
    matches!((changed(draft), changed(file)), (Ok(draft), Ok(file)) if draft < file)
}

fn kept(refusal: Refusal, draft: &str) -> Refusal {
    let why = refusal.why.clone().map(|why| format!("{}; ", why.trim_end())).unwrap_or_default();
    Refusal { why: Some(format!("{why}the file is as it was, and what you wrote is in {draft}")), ..refusal }
        .hint("ostler config edit", "goes on with it")
}

fn remove(draft: &Path) -> Result<(), Refusal> {
    fs::remove_file(draft).map_err(|error| file::unusable(draft, &error.to_string()))
}

fn named_editor() -> Option<String> {
    let named = |name: &str| env::var(name).ok().filter(|editor| !editor.trim().is_empty());
    named("VISUAL").or_else(|| named("EDITOR"))
}

/// Waits for the editor. What people name may have arguments, so a shell reads it, as for git.
fn open(draft: &Path) -> Result<(), Refusal> {
    let editor = named_editor().unwrap_or_else(|| USUAL_EDITOR.to_owned());
    let ended = Command::new("/bin/sh").args(["-c", &format!("{editor} \"$1\""), "sh"]).arg(draft).status();
    let refused = |why: String| {
        Refusal::invalid(format!("the editor \"{editor}\" did not end well"))
            .because(why)
            .hint("EDITOR=nano ostler config edit", "uses another one")
    };
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(refused(format!("it ended with {status}"))),
        Err(error) => Err(refused(cannot(&error))),
    }
}

fn cannot(error: &io::Error) -> String {
    format!("it cannot be started: {error}")
}
