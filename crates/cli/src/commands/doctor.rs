//! `ostler doctor`: what works on this machine, what does not, and what cures it.

mod asked;
mod tools;
mod users;

use std::{borrow::Cow, collections::BTreeMap, path::Path};

use clap::Args;
use ostler_client::{Campaign, Client, Home, NodeStatus};
use ostler_domain::{
    Refusal,
    limits::PAGE_MOST,
    price::Prices,
    provider::{SCRIPT, Status},
    readiness::{Readiness, Trial},
};
use serde::Serialize;

use self::asked::Answer;
use super::{config, price, trial};
use crate::{
    app::App,
    exit_code,
    failure::Failure,
    listing::Found,
    output::{Column, Line, Look, Table, Tone},
    screen, words,
};

/// Below this much free space the store is at risk, where no daemon says how much it keeps free.
const FREE_LEAST: u64 = 1 << 30;

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Do not look for agent programs, which are asked for their versions
    #[arg(long)]
    quick: bool,
    /// Ask each agent that can work one small thing, in its sandbox; costs some tokens of each
    #[arg(long, conflicts_with = "quick")]
    ask: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Ok,
    Warn,
    Fail,
    /// Nothing is wrong: it is not there, and need not be.
    Absent,
}

#[derive(Debug, Serialize)]
pub(super) struct Finding {
    verdict: Verdict,
    about: Cow<'static, str>,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

impl Finding {
    fn new(verdict: Verdict, about: impl Into<Cow<'static, str>>, text: impl Into<String>) -> Self {
        Self { verdict, about: about.into(), text: text.into(), fix: None }
    }

    pub(super) fn is_wrong(&self) -> bool {
        matches!(self.verdict, Verdict::Warn | Verdict::Fail)
    }

    pub(super) fn cure(&self) -> &str {
        self.fix.as_deref().unwrap_or_default()
    }

    fn fix(self, fix: impl Into<String>) -> Self {
        Self { fix: Some(fix.into()), ..self }
    }
}

#[derive(Serialize)]
struct DoctorForm {
    ok: bool,
    findings: Vec<Finding>,
}

pub(crate) async fn run(app: &App, args: DoctorArgs) -> Result<u8, Failure> {
    let home = app.home()?;
    let mut findings = Vec::new();
    let mut agents = Vec::new();
    let mut least = FREE_LEAST;
    match app.client().await {
        Ok(client) => {
            let status = client.status().await?;
            least = status.disk.map_or(least, |disk| disk.least);
            findings.extend(daemon(app.program.version, &status));
            let campaigns = all_campaigns(&client).await?;
            findings.extend(hidden(&client, &campaigns).await?);
            findings.extend(tools::findings(&campaigns, &tools::here()));
            if !args.quick {
                let all = client.providers().await?;
                let usual = config::current(app)?;
                let users = users::count(&client, &campaigns, usual.provider()).await?;
                let answers = asked::answers(&client, &status, &all, &campaigns, args.ask).await?;
                agents = providers(&all, usual.provider(), &users, &answers);
            }
        }
        Err(Failure::Refused(refusal)) => findings.push(refused("daemon", *refusal)),
        Err(failure) => return Err(failure),
    }
    findings.push(disk(&home, least));
    findings.push(sandbox(&trial::try_sandbox(&app.program.path)));
    findings.push(prices(price::prices(app))?);
    if agents.is_empty() {
        findings.push(script(None));
    }
    findings.extend(agents);
    findings.push(git());
    findings.extend(logout());
    say(app, findings)
}

/// The scripted agent is always there. In which sandbox it was tried, if it was.
fn script(answer: Option<&Answer>) -> Finding {
    let text = "built in, needs no key";
    match answer {
        Some(Answer::Within(took)) => {
            Finding::new(Verdict::Ok, SCRIPT, format!("{text}, {}", asked::within(*took)))
        }
        Some(Answer::None(why)) => Finding::new(Verdict::Fail, SCRIPT, format!("{text}, but {why}"))
            .fix(format!("ostler provider test {SCRIPT} --ask")),
        None => Finding::new(Verdict::Ok, SCRIPT, text),
    }
}

/// What calls cost is only as right as the table is new.
fn prices(prices: Result<Prices, Failure>) -> Result<Finding, Failure> {
    match prices {
        Ok(prices) => {
            let models = words::plural(prices.models.len() as u64, "model", "models");
            Ok(Finding::new(Verdict::Ok, "prices", format!("table of {}, {models}", prices.date)))
        }
        Err(Failure::Refused(refusal)) => Ok(refused("prices", *refusal)),
        Err(failure) => Err(failure),
    }
}

fn refused(about: &'static str, refusal: Refusal) -> Finding {
    let why = refusal.why.map(|why| format!(": {why}")).unwrap_or_default();
    let finding = Finding::new(Verdict::Fail, about, format!("{}{why}", refusal.message));
    match refusal.hints.into_iter().next() {
        Some(hint) => finding.fix(hint.command),
        None => finding,
    }
}

fn daemon(version: &str, status: &NodeStatus) -> Vec<Finding> {
    let up = words::span(words::now().since(status.started));
    let sessions = words::plural(status.live_sessions, "session", "sessions");
    let store = words::bytes(status.store.database_bytes.saturating_add(status.store.search_bytes));
    let text = format!(
        "{}, pid {}, up {up} · {sessions} · store {store}, schema {}",
        status.version, status.pid, status.schema_version
    );
    let mut findings = vec![if status.version == version {
        Finding::new(Verdict::Ok, "daemon", text)
    } else {
        Finding::new(Verdict::Warn, "daemon", format!("{text}; this program is {version}"))
            .fix("ostler daemon restart")
    }];
    // Those that wait to start have none.
    let keepers = status.live_sessions.saturating_sub(status.waiting_sessions);
    let answering = format!("{} of {keepers} answer", keepers.saturating_sub(status.detached_sessions));
    findings.push(if status.detached_sessions == 0 {
        Finding::new(Verdict::Ok, "keepers", answering)
    } else {
        Finding::new(Verdict::Warn, "keepers", answering).fix("ostler ls --attention detached")
    });
    let held = match status.memory_held_by.as_str() {
        "" => None,
        "keeper" => {
            Some("the keeper adds up what a session takes, once a second, and ends it above its limit")
        }
        _ => Some("the kernel holds sessions to their limits"),
    };
    findings.extend(
        held.map(|held| Finding::new(Verdict::Ok, "memory", format!("{held} ({})", status.memory_held_by))),
    );
    if let Some(halt) = &status.halt {
        let word = if halt.freeze { "frozen" } else { "halted" };
        findings.push(
            Finding::new(Verdict::Warn, "halt", format!("all agents are {word}, by {}", halt.by.0))
                .fix("ostler halt --release"),
        );
    }
    if let Some(drain) = &status.drain {
        findings
            .push(Finding::new(Verdict::Warn, "drain", words::drained(drain)).fix("ostler node drain --end"));
    }
    findings
}

/// Which agent programs can work. The one that sessions get where nobody names another has to.
fn providers(
    all: &[Status],
    usual: Option<&str>,
    users: &BTreeMap<String, u64>,
    answers: &BTreeMap<String, Answer>,
) -> Vec<Finding> {
    let agents = || all.iter().filter(|status| status.name != SCRIPT);
    let mut findings = vec![script(answers.get(SCRIPT))];
    findings.extend(agents().map(|status| {
        let users = users.get(&status.name).copied().unwrap_or(0);
        provider(status, usual, users, answers.get(&status.name))
    }));
    if agents().all(|status| status.lacks.is_some()) {
        let text = "none can work yet: only the scripted one, which asks no model";
        let cure = "ostler provider ls says what each lacks; then ostler init";
        findings.push(Finding::new(Verdict::Warn, "agents", text).fix(cure));
    }
    findings
}

fn provider(status: &Status, usual: Option<&str>, users: u64, answer: Option<&Answer>) -> Finding {
    let is_usual = usual == Some(status.name.as_str());
    let is_needed = is_usual || users > 0;
    let unsaid = if status.program.is_some() { "version unknown" } else { "built in" };
    let version = status.version.as_deref().unwrap_or(unsaid);
    let needs = match (is_usual, users) {
        (true, _) => "; sessions get it unless another is named".to_owned(),
        (false, 0) => String::new(),
        (false, 1) => "; 1 agent uses it".to_owned(),
        (false, n) => format!("; {} agents use it", words::number(n)),
    };
    let (verdict, text) = match (&status.problem, &status.lacks, answer) {
        (Some(problem), ..) if is_needed => (Verdict::Fail, format!("{problem}{needs}")),
        (Some(problem), ..) if status.program.is_some() => (Verdict::Warn, problem.clone()),
        (Some(_), ..) => {
            return Finding::new(Verdict::Absent, status.name.clone(), "not installed (optional)");
        }
        (None, Some(lacks), _) if is_needed => (Verdict::Fail, format!("{version}, lacks {lacks}{needs}")),
        (None, Some(lacks), _) if status.program.is_none() => {
            (Verdict::Absent, format!("{version}, lacks {lacks} (optional)"))
        }
        (None, Some(lacks), _) => (Verdict::Warn, format!("{version}, lacks {lacks}")),
        (None, None, None) => (Verdict::Ok, format!("{version}, key: {}{needs}", status.key)),
        (None, None, Some(Answer::Within(took))) => {
            (Verdict::Ok, format!("{version}, key: {}, {}{needs}", status.key, asked::within(*took)))
        }
        (None, None, Some(Answer::None(why))) => {
            let verdict = if is_needed { Verdict::Fail } else { Verdict::Warn };
            return Finding::new(verdict, status.name.clone(), format!("{version}, but {why}{needs}"))
                .fix(format!("ostler provider test {} --ask", status.name));
        }
    };
    let finding = Finding::new(verdict, status.name.clone(), text);
    match &status.cure {
        Some(cure) if finding.is_wrong() => finding.fix(cure),
        _ => finding,
    }
}

async fn all_campaigns(client: &Client) -> Result<Vec<Campaign>, Failure> {
    let ask = async |page| client.campaigns(page).await;
    Ok(Found::paged(Some(PAGE_MOST), None, ask).await?.rows)
}

/// What is wrong with campaigns that the sandbox cannot help.
async fn hidden(client: &Client, campaigns: &[Campaign]) -> Result<Vec<Finding>, Failure> {
    let mut findings = Vec::new();
    for campaign in campaigns {
        let campaign = client.campaign(&campaign.id.to_string()).await?;
        if let Some(warning) = screen::campaign::tracked(&campaign) {
            let first = campaign.tracked_hidden.first().cloned().unwrap_or_default();
            let finding = Finding::new(Verdict::Warn, "hidden", format!("{}: {warning}", campaign.name));
            findings.push(finding.fix(format!("git rm --cached {first}, and a new secret in it")));
        }
    }
    Ok(findings)
}

fn sandbox(readiness: &Readiness) -> Finding {
    match &readiness.trial {
        Trial::Ran { .. } => Finding::new(Verdict::Ok, "sandbox", trial::words(readiness)),
        Trial::Refused { hint, .. } => {
            let finding = Finding::new(Verdict::Fail, "sandbox", trial::words(readiness));
            if hint.is_empty() { finding } else { finding.fix(hint) }
        }
    }
}

fn disk(home: &Home, least: u64) -> Finding {
    let state = home.state();
    match rustix::fs::statvfs(state) {
        Ok(facts) => {
            let free = facts.f_bavail.saturating_mul(facts.f_frsize);
            let text = format!("{} free in {}", words::bytes(free), state.display());
            if facts.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY) {
                Finding::new(Verdict::Fail, "disk", format!("{} is mounted read-only", state.display()))
            } else if free < least {
                let text = format!("only {text}, {} stay free: nothing new starts", words::bytes(least));
                Finding::new(Verdict::Warn, "disk", text).fix("ostler du")
            } else {
                Finding::new(Verdict::Ok, "disk", text)
            }
        }
        Err(error) => {
            Finding::new(Verdict::Fail, "disk", format!("{} cannot be looked at: {error}", state.display()))
        }
    }
}

/// Agents commit: without an identity no commit of theirs works.
fn git() -> Finding {
    let asked = std::process::Command::new("git").args(["config", "--get", "user.email"]).output();
    match asked {
        Err(_) => Finding::new(Verdict::Warn, "git", "not installed; agents cannot commit"),
        Ok(output) if output.status.success() => Finding::new(Verdict::Ok, "git", "identity set"),
        Ok(_) => Finding::new(Verdict::Warn, "git", "no identity: commits of agents fail")
            .fix("git config --global user.email you@example.org"),
    }
}

/// Whether agents outlive the login, where a login manager would end them.
pub(super) fn logout() -> Option<Finding> {
    logout_below(Path::new("/"), &std::env::var("USER").ok()?)
}

/// `root` is the root of the file system. Nobody's login ends what root runs as a service of the machine.
fn logout_below(root: &Path, user: &str) -> Option<Finding> {
    let is_systemd = root.join("run/systemd/system").exists();
    if !is_systemd || user.is_empty() || user == "root" {
        return None;
    }
    Some(if root.join("var/lib/systemd/linger").join(user).exists() {
        Finding::new(Verdict::Ok, "logout", "agents go on when you log out")
    } else {
        Finding::new(Verdict::Warn, "logout", "agents may end when you log out: lingering is off")
            .fix("loginctl enable-linger")
    })
}

fn say(app: &App, findings: Vec<Finding>) -> Result<u8, Failure> {
    let count = |verdict| findings.iter().filter(|finding| finding.verdict == verdict).count() as u64;
    let (failures, warnings) = (count(Verdict::Fail), count(Verdict::Warn));
    let code = if failures == 0 { exit_code::OK } else { exit_code::FAILURE };
    if app.ui.is_json() {
        app.ui.json(&DoctorForm { ok: failures == 0, findings })?;
        return Ok(code);
    }
    app.ui.data_lines(&lines(&findings, app.ui.out_look()))?;
    let parts = [(failures, "failure", "failures"), (warnings, "warning", "warnings")];
    let parts = parts
        .into_iter()
        .filter(|(n, ..)| *n > 0)
        .map(|(n, one, many)| Line::of(words::plural(n, one, many)));
    let summary = Line::joined(parts);
    app.ui.remark(&if summary.is_empty() { Line::of("all is well") } else { summary });
    Ok(code)
}

/// A cure that stands below begins here.
const FIX_INDENT: usize = 6;

/// Where something that cures does not fit beside what it cures, all of it stands below: a command that is cut cures
/// nothing.
fn lines(findings: &[Finding], look: &Look) -> Vec<Line> {
    let whole = table(findings, true).lines(&Look { width: None, ..look.clone() });
    let fits = look.width.is_none_or(|width| whole.iter().all(|line| line.width() <= width));
    if fits || findings.iter().all(|finding| finding.fix.is_none()) {
        return table(findings, true).lines(look);
    }
    let rows = table(findings, false).lines(look).into_iter();
    let below = findings.iter().map(|finding| finding.fix.as_deref().map(fix_words));
    rows.zip(below)
        .flat_map(|(row, fix)| [Some(row), fix.map(|fix| Line::of(" ".repeat(FIX_INDENT)).append(fix))])
        .flatten()
        .collect()
}

fn fix_words(fix: &str) -> Line {
    Line::new().faint("fix: ").with(Tone::Accent, fix)
}

fn table(findings: &[Finding], with_fixes: bool) -> Table {
    let columns = [Column::new(""), Column::new(""), Column::new("").gives_way_to(90), Column::new("")];
    let mut table = Table::new(columns).with_heads(false);
    for finding in findings {
        let (tone, word) = match finding.verdict {
            Verdict::Ok => (Tone::Good, "ok"),
            Verdict::Warn => (Tone::Warn, "warn"),
            Verdict::Fail => (Tone::Bad, "FAIL"),
            Verdict::Absent => (Tone::Faint, "–"),
        };
        let fix = finding.fix.as_deref().filter(|_| with_fixes).map(fix_words).unwrap_or_default();
        table.row(vec![
            Line::toned(tone, word).padded(5),
            Line::of(&*finding.about).padded(9),
            Line::of(&finding.text),
            fix,
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use ostler_client::reply::StoreSizes;

    use super::*;
    use crate::testing;

    #[test]
    fn lingering_is_looked_for_where_systemd_runs() {
        let machine = tempfile::tempdir().unwrap();
        let finding = |user| logout_below(machine.path(), user);
        assert!(finding("ann").is_none(), "nobody ends agents here");
        std::fs::create_dir_all(machine.path().join("run/systemd/system")).unwrap();
        let off = finding("ann").unwrap();
        assert_eq!(off.verdict, Verdict::Warn);
        assert_eq!(off.fix.as_deref(), Some("loginctl enable-linger"));
        assert!(finding("root").is_none());
        let lingering = machine.path().join("var/lib/systemd/linger");
        std::fs::create_dir_all(&lingering).unwrap();
        std::fs::write(lingering.join("ann"), "").unwrap();
        assert_eq!(finding("ann").unwrap().verdict, Verdict::Ok);
        assert_eq!(finding("bob").unwrap().verdict, Verdict::Warn);
    }

    #[test]
    fn agent_programs_are_told_and_whether_any_can_work() {
        let of =
            |name: &str| Status { name: name.to_owned(), key: "ANY_KEY".to_owned(), ..Status::default() };
        let script = of(SCRIPT);
        let absent = Status {
            problem: Some("there is no codex here".to_owned()),
            lacks: Some("its program".to_owned()),
            cure: Some("install codex".to_owned()),
            ..of("codex")
        };
        let closed = Status {
            program: Some("/usr/bin/claude".to_owned()),
            version: Some("2.1.203".to_owned()),
            lacks: Some("a key or a login".to_owned()),
            cure: Some("ostler provider login claude-code".to_owned()),
            ..of("claude-code")
        };
        let keyless = Status { lacks: closed.lacks.clone(), cure: closed.cure.clone(), ..of("openai-api") };
        assert_eq!(
            provider(&keyless, None, 0, None).verdict,
            Verdict::Absent,
            "nobody has to have a key of it"
        );
        assert_eq!(provider(&keyless, Some("openai-api"), 0, None).verdict, Verdict::Fail);
        let ready = Status { version: Some("1.0".to_owned()), ..of("acp:opencode") };
        let seen = |all: &[&Status], usual| {
            let all: Vec<Status> = all.iter().map(|status| (*status).clone()).collect();
            let found = providers(&all, usual, &BTreeMap::new(), &BTreeMap::new());
            found
                .into_iter()
                .skip(1)
                .map(|one| (one.verdict, one.about.into_owned(), one.fix))
                .collect::<Vec<_>>()
        };
        let login = Some("ostler provider login claude-code".to_owned());
        let none = seen(&[&script, &closed, &absent], None);
        assert_eq!(none[0], (Verdict::Warn, "claude-code".to_owned(), login.clone()));
        assert_eq!(none[1], (Verdict::Absent, "codex".to_owned(), None));
        assert_eq!((none[2].0, none[2].1.as_str(), none.len()), (Verdict::Warn, "agents", 3));
        assert!(none[2].2.as_deref().is_some_and(|fix| fix.contains("ostler provider ls")));
        let some = seen(&[&script, &closed, &absent, &ready], None);
        assert_eq!(some[2], (Verdict::Ok, "acp:opencode".to_owned(), None));
        assert_eq!(some.len(), 3, "one that can work is enough");
        assert_eq!(
            seen(&[&closed, &ready], Some("claude-code"))[0],
            (Verdict::Fail, "claude-code".to_owned(), login)
        );
        assert_eq!(seen(&[&absent, &ready], Some("codex"))[0].0, Verdict::Fail);
        let needed = provider(&absent, None, 2, None);
        assert_eq!(
            (needed.verdict, needed.text.as_str()),
            (Verdict::Fail, "there is no codex here; 2 agents use it")
        );
        let silent = provider(&ready, None, 0, Some(&Answer::None("it did not answer".to_owned())));
        assert_eq!(
            (silent.verdict, silent.cure()),
            (Verdict::Warn, "ostler provider test acp:opencode --ask")
        );
    }

    fn machine() -> NodeStatus {
        NodeStatus {
            pid: 4121,
            version: "0.1.0".to_owned(),
            node: ostler_domain::NodeId::new(testing::NOW, 1),
            epoch: 3,
            started: words::now(),
            state_dir: "/home/ann/.local/state/ostler".to_owned(),
            live_sessions: 5,
            detached_sessions: 0,
            halt: None,
            drain: None,
            store: StoreSizes { database_bytes: 1_100 << 20, search_bytes: 100 << 20, sessions: 1_842 },
            last_seq: 90_000,
            schema_version: 7,
            memory_held_by: "cgroup v2".to_owned(),
            waiting_sessions: 0,
            disk: None,
            machine_restart: None,
        }
    }

    #[test]
    fn a_whole_page() {
        let here = tools::Here::from([
            ("@node", vec!["~/.nvm".to_owned()]),
            ("@rust", vec!["~/.cargo/bin".to_owned(), "~/.rustup".to_owned()]),
        ]);
        let mut campaign = testing::campaign();
        campaign.policy.read = vec!["@rust".to_owned(), "@node".to_owned()];
        let of = |name: &str, version: &str, key: &str| Status {
            name: name.to_owned(),
            program: Some(format!("/usr/bin/{name}")),
            version: Some(version.to_owned()),
            key: key.to_owned(),
            ..Status::default()
        };
        let all = [
            of("claude-code", "2.1.203", "its login"),
            Status {
                lacks: Some("a login or a key".to_owned()),
                cure: Some("ostler provider login codex".to_owned()),
                ..of("codex", "0.144", "not logged in")
            },
            Status {
                program: None,
                problem: Some("not found".to_owned()),
                lacks: Some("its program".to_owned()),
                ..of("openclaw", "", "")
            },
        ];
        let users = BTreeMap::from([("codex".to_owned(), 2), ("claude-code".to_owned(), 1)]);
        let within = |ms| Answer::Within(std::time::Duration::from_millis(ms));
        let answers =
            BTreeMap::from([(SCRIPT.to_owned(), within(31)), ("claude-code".to_owned(), within(900))]);
        let mut findings = daemon("0.1.0", &machine());
        findings.extend(tools::findings(&[campaign], &here));
        let date = "2026-11-01".to_owned();
        let table = Prices { date, ..ostler_domain::price::PriceBook::default().prices() };
        findings.push(prices(Ok(Prices { models: Default::default(), ..table })).unwrap());
        findings.extend(providers(&all, None, &users, &answers));
        insta::assert_snapshot!(testing::in_all_looks(|look| lines(&findings, look)));
    }

    #[test]
    fn verdicts_have_words_and_cures() {
        let findings = [
            Finding::new(Verdict::Ok, "daemon", "0.1.0, pid 4121, up 2h"),
            Finding::new(Verdict::Warn, "logout", "agents may end when you log out")
                .fix("loginctl enable-linger"),
            Finding::new(Verdict::Fail, "disk", "mounted read-only"),
        ];
        let look = Look::plain(Some(100));
        let text: Vec<_> = lines(&findings, &look).iter().map(|line| line.show(&look)).collect();
        insta::assert_snapshot!(text.join("\n"));
        let narrow = Look::plain(Some(40));
        let text: Vec<_> = lines(&findings, &narrow).iter().map(|line| line.show(&narrow)).collect();
        assert_eq!(text[2].trim_start(), "fix: loginctl enable-linger", "{text:#?}");
        assert!(text.iter().all(|line| line.chars().count() <= 40) && text.len() == 4, "{text:#?}");
        insta::assert_snapshot!(crate::testing::in_all_looks(|look| lines(&findings, look)));
    }
}
