//! `attack`: has a program try to leave its own sandbox, and writes down what came of it.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::{Outcome, report::print};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The program whose sandbox is attacked
    #[arg(long)]
    ostler: PathBuf,
    /// The page to write
    #[arg(long)]
    report: PathBuf,
    /// Take what `ostler sandbox check --attack -o json` printed before, instead of attacking now
    #[arg(long)]
    from: Option<PathBuf>,
}

/// What became of the attempts of one attacker.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    stopped: u64,
    got_through: u64,
    failed: u64,
    untried: u64,
    controls: u64,
    /// Stopped attempts, by area.
    areas: BTreeMap<String, u64>,
}

pub(crate) fn run(args: &Args) -> Outcome<()> {
    let text = match &args.from {
        Some(path) => fs::read_to_string(path)?,
        None => attack(&args.ostler)?,
    };
    let report: Value = serde_json::from_str(&text)?;
    let version = version(&args.ostler)?;
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
    let page = page(&report, &version, &format!("{date} · Linux {}", kernel.trim()))?;
    fs::write(&args.report, &page)?;
    print(&format!("written: {}", args.report.display()));
    if report["ok"] != true {
        return Err("something got through, or could not be judged".into());
    }
    Ok(())
}

fn attack(ostler: &Path) -> Outcome<String> {
    let mut command = Command::new(ostler);
    command
        .args(["sandbox", "check", "--attack", "-o", "json"])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    // The exit code says again what the report says.
    Ok(String::from_utf8(command.output()?.stdout)?)
}

fn version(ostler: &Path) -> Outcome<String> {
    let said = Command::new(ostler).arg("--version").stdin(Stdio::null()).output()?;
    Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
}

fn page(report: &Value, version: &str, place: &str) -> Outcome<String> {
    let runs = report["runs"].as_array().ok_or("a report has runs")?;
    let tallies = runs.iter().map(tally).collect::<Outcome<Vec<(String, Tally)>>>()?;
    let mut all = Tally::default();
    let mut table = String::new();
    for (by, one) in &tallies {
        let Tally { stopped, got_through, failed, untried, controls, areas } = one;
        let made = stopped + got_through + failed;
        table.push_str(&format!(
            "| {by} | {made} | {stopped} | {got_through} | {failed} | {untried} | {controls} |\n"
        ));
        all.stopped += stopped;
        all.got_through += got_through;
        all.failed += failed;
        for (area, count) in areas {
            *all.areas.entry(area.clone()).or_default() += count;
        }
    }
    let made = all.stopped + all.got_through + all.failed;
    let areas: Vec<String> = all.areas.iter().map(|(area, count)| format!("`{area}` {count}")).collect();
    Ok(format!(
        "# The last attack on the sandbox\n\n\
         Written by `cargo xtask attack-report`, and by nobody else. Yours: `ostler sandbox check --attack`. What is attempted, and when it counts as stopped, is in [sandbox.md](sandbox.md#attacked).\n\n\
         {version} · {place}\n\n\
         **{} of {made} attempts stopped.**\n\n\
         | as | attempts | stopped | got through | not judged | untried | controls that work |\n\
         |---|---|---|---|---|---|---|\n{table}\n\
         An attempt is untried where the machine lacks what it needs. Controls are what an agent must still be able to do, such as building and committing.\n\n\
         By area: {}.\n",
        all.stopped,
        areas.join(", ")
    ))
}

fn tally(run: &Value) -> Outcome<(String, Tally)> {
    let number = |name: &str| run[name].as_u64().ok_or_else(|| format!("a run has no number \"{name}\""));
    let mut areas = BTreeMap::new();
    for finding in run["findings"].as_array().ok_or("a run has findings")? {
        let area = finding["name"].as_str().and_then(|name| name.split('/').next());
        if let (Some(area), Some("stopped")) = (area, finding["verdict"].as_str()) {
            *areas.entry(area.to_owned()).or_default() += 1;
        }
    }
    let by = match run["as"].as_str() {
        Some("root") => "root",
        _ => "an ordinary user",
    };
    let tally = Tally {
        stopped: number("stopped")?,
        got_through: number("got_through")?,
        failed: number("failed")?,
        untried: number("untried")?,
        controls: number("controls")?,
        areas,
    };
    Ok((by.to_owned(), tally))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_got_through_is_not_counted_as_stopped() {
        let finding = |name: &str, verdict: &str| serde_json::json!({"name": name, "verdict": verdict});
        let report = serde_json::json!({"ok": false, "runs": [
            {"as": "root", "stopped": 2, "got_through": 1, "failed": 0, "untried": 0, "controls": 1, "findings": [
                finding("files/read", "stopped"), finding("files/write", "got_through"), finding("network/tcp", "stopped"),
            ]},
            {"as": "user", "stopped": 1, "got_through": 0, "failed": 1, "untried": 3, "controls": 1, "findings": [
                finding("files/read", "stopped"),
            ]},
        ]});
        let page = page(&report, "ostler 1", "today").unwrap();
        assert!(page.contains("**3 of 5 attempts stopped.**"), "{page}");
        assert!(page.contains("| root | 3 | 2 | 1 | 0 | 0 | 1 |"), "{page}");
        assert!(page.contains("| an ordinary user | 2 | 1 | 0 | 1 | 3 | 1 |"), "{page}");
        assert!(page.contains("By area: `files` 2, `network` 1."), "{page}");
    }
}
