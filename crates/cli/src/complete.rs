//! Shell completion: the shell asks this program, and the program asks the daemon for names and ids.

use std::{collections::BTreeMap, ffi::OsStr, io, time::Duration};

use clap::Arg;
use clap_complete::{
    CompleteEnv,
    engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter},
    env::Shells,
};
use ostler_client::{Agent, Approval, Client, Conversation, Delivery, Mission, Session};
use ostler_domain::{
    Kind, Receipt, agent,
    config::{KEYS, Key},
    limits::PAGE_DEFAULT,
    mission::Filter,
    node::Node,
    policy, provider,
    query::{ConversationFilter, Page, Scope, SessionFilter, TicketFilter},
    session::{Attention, Outcome, Status},
    text::one_line,
    ticket::Ticket,
};

use crate::{args, commands, failure::Failure, listing::Found, nodes, screen, words};

/// Whoever pressed the key waits: what takes longer is not offered.
const ANSWER_WITHIN: Duration = Duration::from_millis(150);
/// Set by the script that [`registration`] prints, when the shell wants to know how a line may go on.
const VARIABLE: &str = "COMPLETE";

/// The shells there are scripts for.
pub(crate) fn shells() -> Vec<&'static str> {
    Shells::builtins().iter().map(|shell| shell.name()).collect()
}

/// Answers a shell that asks, and ends; else does nothing.
pub(crate) fn answer_the_shell(version: &'static str) {
    CompleteEnv::with_factory(move || offering(args::command(version))).var(VARIABLE).complete();
}

/// The script that teaches a shell to ask.
pub(crate) fn registration(shell: &str) -> io::Result<Vec<u8>> {
    let mut script = Vec::new();
    if let Some(shell) = Shells::builtins().completer(shell) {
        shell.write_registration(VARIABLE, "ostler", "ostler", "ostler", &mut script)?;
    }
    Ok(script)
}

/// Words that a value may be, by the name of its argument.
const WORDS: &[(&str, &[&str])] = &[
    ("priority", &["low", "normal", "high"]),
    ("restart", &["never", "on-failure", "always"]),
    ("mark", &["start", "end", "fail"]),
    ("level", &["error", "warn", "info", "debug", "trace"]),
];

/// Values of arguments are known by what the help calls them, else by what they are called themselves.
fn offering(command: clap::Command) -> clap::Command {
    let name = command.get_display_name().unwrap_or_default().to_owned();
    command.mut_args(|arg| offer(arg, &name)).mut_subcommands(offering)
}

fn offer(arg: Arg, command: &str) -> Arg {
    let called = match arg.get_value_names() {
        Some([name]) => name.to_string(),
        _ => String::new(),
    };
    let id = arg.get_id().to_string();
    let noun = command.strip_prefix("ostler-").and_then(|rest| rest.split('-').next()).unwrap_or_default();
    let is_new = command.ends_with("-add");
    match (called.as_str(), id.as_str()) {
        ("WHO", _) => arg.add(ArgValueCompleter::new(sessions)),
        ("CAMPAIGN", _) => arg.add(ArgValueCandidates::new(campaigns)),
        ("ID", _) => arg.add(ArgValueCandidates::new(approvals)),
        ("MISSION", _) => arg.add(ArgValueCandidates::new(missions)),
        ("MESSAGE", _) => arg.add(ArgValueCandidates::new(messages)),
        ("AGENT", _) | (_, "agent") => arg.add(ArgValueCandidates::new(agents)),
        ("CONVERSATION", _) => arg.add(ArgValueCandidates::new(conversations)),
        ("TICKET", _) => arg.add(ArgValueCandidates::new(tickets)),
        ("NODE", _) => arg.add(ArgValueCandidates::new(nodes)),
        ("NAME", "name") if noun == "node" && !is_new => arg.add(ArgValueCandidates::new(nodes)),
        ("NAME", "name") if noun == "provider" && !is_new => arg.add(ArgValueCandidates::new(providers)),
        (_, "provider") => arg.add(ArgValueCandidates::new(providers)),
        ("FILE" | "DIR" | "PATH" | "DEST" | "PROGRAM", _) => {
            arg.add(ArgValueCompleter::new(PathCompleter::any()))
        }
        ("STATUS", "status") if noun != "ticket" && noun != "mission" => {
            arg.add(ArgValueCandidates::new(|| of_words(Status::ALL, |status| status.as_str())))
        }
        (_, "attention") => {
            arg.add(ArgValueCandidates::new(|| of_words(Attention::ALL, |word| word.as_str())))
        }
        (_, "outcome") => arg.add(ArgValueCandidates::new(|| of_words(Outcome::ALL, |word| word.as_str()))),
        ("KIND", "kind") if ["events", "watch", "logs", "search", "session"].contains(&noun) => {
            arg.add(ArgValueCandidates::new(|| of_words(Kind::ALL, |kind| kind.name())))
        }
        ("SETTING", _) if noun == "campaign" => {
            arg.add(ArgValueCandidates::new(|| of_words(&assigned(policy::keys()), String::as_str)))
        }
        ("SETTING", _) if noun == "agent" => {
            let keys = agent::KEYS.iter().copied();
            arg.add(ArgValueCandidates::new(move || of_words(&assigned(keys.clone()), String::as_str)))
        }
        ("KEY" | "SETTING", _) if noun == "config" => arg.add(ArgValueCandidates::new(settings)),
        (_, "columns") => match commands::columns(command) {
            Some(columns) => arg.add(ArgValueCandidates::new(move || of_words(&columns, String::as_str))),
            None => arg,
        },
        _ => match WORDS.iter().find(|(name, _)| *name == id) {
            Some((_, words)) => arg.add(ArgValueCandidates::new(|| of_words(words, |word| word))),
            None => arg,
        },
    }
}

fn of_words<T>(all: &[T], word: impl Fn(&T) -> &str) -> Vec<CompletionCandidate> {
    all.iter().map(|one| CompletionCandidate::new(word(one))).collect()
}

/// As they are typed: what follows is the value.
fn assigned<'a>(keys: impl Iterator<Item = &'a str>) -> Vec<String> {
    keys.map(|key| format!("{key}=")).collect()
}

fn settings() -> Vec<CompletionCandidate> {
    let candidate = |key: &Key| {
        let usual =
            if key.default.is_empty() { None } else { Some(format!("default {}", key.default).into()) };
        CompletionCandidate::new(key.name).help(usual)
    };
    KEYS.iter().map(candidate).collect()
}

/// Names first, as they are what people type; with their campaign where that is typed already, and an id where a name is
/// not alone.
fn sessions(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy().into_owned();
    let campaign = typed.split_once('/').map(|(campaign, _)| campaign.to_owned());
    let begun = typed.rsplit('/').next().unwrap_or_default();
    let asked = ask(async |client| {
        let campaigns = client.campaigns(Page::of(PAGE_DEFAULT, None)).await?.rows;
        let named = campaigns.iter().find(|known| campaign.as_deref() == Some(known.name.as_str()));
        let filter = SessionFilter {
            scope: Scope::All,
            campaign: named.map(|campaign| campaign.id),
            ..SessionFilter::default()
        };
        let named = SessionFilter { name_begins: Some(begun.to_owned()), ..filter.clone() };
        let ask = async |page| client.sessions(&named, page).await;
        let mut rows = Found::paged(Some(PAGE_DEFAULT), None, ask).await?.rows;
        if rows.is_empty() {
            // What is typed may be the beginning of an id.
            rows = client.sessions(&filter, Page::of(PAGE_DEFAULT, None)).await?.rows;
        }
        Ok(rows)
    });
    beginning_with(&typed, candidates(&asked, campaign.as_deref()))
}

fn beginning_with(typed: &str, all: Vec<CompletionCandidate>) -> Vec<CompletionCandidate> {
    all.into_iter().filter(|one| one.get_value().to_string_lossy().starts_with(typed)).collect()
}

fn candidates(sessions: &[Session], campaign: Option<&str>) -> Vec<CompletionCandidate> {
    let mut alike: BTreeMap<&str, usize> = BTreeMap::new();
    for session in sessions {
        *alike.entry(session.name.as_str()).or_default() += 1;
    }
    let candidate = |session: &Session| {
        let name = session.name.as_str();
        let typed = match campaign {
            Some(campaign) => format!("{campaign}/{name}"),
            None if alike[name] == 1 => name.to_owned(),
            None => session.id.short(),
        };
        let told = match session.outcome {
            Some(outcome) => outcome.as_str(),
            None => session.status.as_str(),
        };
        let age = words::span(words::now().since(session.created_at));
        CompletionCandidate::new(typed).help(Some(format!("{told}, {} ago", age).into()))
    };
    sessions.iter().map(candidate).collect()
}

fn campaigns() -> Vec<CompletionCandidate> {
    let asked = ask(async |client| Ok(client.campaigns(Page::of(PAGE_DEFAULT, None)).await?.rows));
    asked
        .into_iter()
        .map(|campaign| {
            CompletionCandidate::new(campaign.name.as_str()).help(Some(campaign.root.path.into()))
        })
        .collect()
}

fn missions() -> Vec<CompletionCandidate> {
    let all = Filter { over_too: true, ..Filter::default() };
    let asked = ask(async |client| Ok(client.missions(&all, Page::of(PAGE_DEFAULT, None)).await?.rows));
    let candidate = |mission: Mission| {
        let about = format!("{} {}", mission.status.as_str(), one_line(&mission.objective, 50));
        CompletionCandidate::new(mission.name.as_str()).help(Some(about.into()))
    };
    asked.into_iter().map(candidate).collect()
}

fn approvals() -> Vec<CompletionCandidate> {
    let asked = ask(async |client| Ok(client.approvals(true, Page::of(PAGE_DEFAULT, None)).await?.rows));
    let candidate = |approval: Approval| {
        CompletionCandidate::new(approval.id.short()).help(Some(one_line(&approval.asks, 60).into()))
    };
    asked.into_iter().map(candidate).collect()
}

/// Those that wait, of all that live.
fn messages() -> Vec<CompletionCandidate> {
    let asked = ask(async |client| {
        let filter = SessionFilter { scope: Scope::NotEnded, ..SessionFilter::default() };
        let live = client.sessions(&filter, Page::of(PAGE_DEFAULT, None)).await?.rows;
        let mut messages = Vec::new();
        for session in live.into_iter().filter(|session| session.messages_waiting > 0) {
            messages.extend(client.messages(&session.id.to_string(), Page::of(0, None)).await?.rows);
        }
        Ok(messages)
    });
    let waits = asked.into_iter().filter(|delivery| delivery.receipt == Receipt::Accepted);
    let candidate = |delivery: Delivery| {
        let text = one_line(&delivery.message.text, 60);
        CompletionCandidate::new(delivery.message.id.short()).help(Some(text.into()))
    };
    waits.map(candidate).collect()
}

fn providers() -> Vec<CompletionCandidate> {
    let asked = ask(async |client| Ok(client.providers().await?));
    let candidate = |status: provider::Status| {
        let told = status.problem.or(status.version).unwrap_or_default();
        CompletionCandidate::new(status.name).help(Some(one_line(&told, 60).into()))
    };
    asked.into_iter().map(candidate).collect()
}

fn agents() -> Vec<CompletionCandidate> {
    let asked = ask(async |client| Ok(client.agents(None, Page::of(PAGE_DEFAULT, None)).await?.rows));
    let candidate = |agent: Agent| {
        CompletionCandidate::new(agent.name.as_str()).help(Some(agent.profile.role.to_string().into()))
    };
    asked.into_iter().map(candidate).collect()
}

fn conversations() -> Vec<CompletionCandidate> {
    let filter = ConversationFilter { closed_too: true, ..ConversationFilter::default() };
    let asked =
        ask(async |client| Ok(client.conversations(&filter, Page::of(PAGE_DEFAULT, None)).await?.rows));
    let candidate = |conversation: Conversation| {
        let state = conversation.closed.map_or("open", |closed| closed.why.as_str());
        CompletionCandidate::new(conversation.name.as_str()).help(Some(state.into()))
    };
    asked.into_iter().map(candidate).collect()
}

fn tickets() -> Vec<CompletionCandidate> {
    let asked = ask(async |client| {
        Ok(client.tickets(&TicketFilter::default(), Page::of(PAGE_DEFAULT, None)).await?.rows)
    });
    let candidate = |ticket: Ticket| {
        let intent = one_line(&ticket.about.intent, 60);
        CompletionCandidate::new(screen::ticket::name(&ticket)).help(Some(intent.into()))
    };
    asked.into_iter().map(candidate).collect()
}

/// Machines with a name, which this one knows without asking anybody.
fn nodes() -> Vec<CompletionCandidate> {
    let home = ostler_client::home().ok();
    let known = home.and_then(|home| nodes::named(&home).ok()).unwrap_or_default();
    let all = known.into_keys().chain([Node::HERE.to_owned(), Node::ALL.to_owned()]);
    all.map(CompletionCandidate::new).collect()
}

/// Asks a daemon that runs, and takes no answer for nothing: a key must never start one, wait for one, or complain.
fn ask<T>(question: impl AsyncFnOnce(Client) -> Result<Vec<T>, Failure>) -> Vec<T> {
    let answered = commands::with_runtime(async {
        let asked = async { question(Client::connect(&ostler_client::home()?).await?).await };
        tokio::time::timeout(ANSWER_WITHIN, asked).await.unwrap_or_else(|_| Ok(Vec::new()))
    });
    answered.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_has_a_script() {
        for shell in shells() {
            let script = String::from_utf8(registration(shell).unwrap()).unwrap();
            assert!(script.contains("ostler") && script.contains(VARIABLE), "{shell}: {script}");
        }
    }

    /// What nobody can list: texts, numbers, times, and names that are yet to be given.
    const FREE_TEXT: &[&str] = &[
        "ADDRESS",
        "AMOUNT",
        "ANSWER",
        "ARGS",
        "BRANCH",
        "BUCKET=DOLLARS",
        "CHANNEL",
        "CMD",
        "COMMAND",
        "CURSOR",
        "FILE:LINE",
        "FORM",
        "HOST",
        "INTENT",
        "KEY",
        "KEY=VALUE",
        "KIND",
        "LABEL",
        "MODEL",
        "N",
        "NAME",
        "NAME=VALUE",
        "NOTE",
        "OFFSET",
        "PROMPT",
        "QUERY",
        "QUESTION",
        "REASON",
        "REF",
        "ROLE",
        "SEQ",
        "SETTING",
        "SIZE",
        "SPAN",
        "SURFACE",
        "TASK",
        "TEXT",
        "TURN",
        "TURN[..TURN]",
        "TYPE",
        "URL",
        "VALUE",
        "VARIABLE",
        "WHAT",
        "WHEN",
        "WHOM",
        "WHY",
        "WORD",
        "WORDS",
        "WORKER",
    ];

    #[test]
    fn every_value_is_offered_or_free_text() {
        let tree = offering(args::command("0.0.0"));
        let mut missing = std::collections::BTreeSet::new();
        let mut walk = vec![(String::from("ostler"), &tree)];
        while let Some((path, command)) = walk.pop() {
            for arg in command.get_arguments().filter(|arg| arg.get_action().takes_values()) {
                let is_offered = arg.get::<ArgValueCandidates>().is_some()
                    || arg.get::<ArgValueCompleter>().is_some()
                    || !arg.get_possible_values().is_empty()
                    || matches!(
                        arg.get_value_hint(),
                        clap::ValueHint::AnyPath | clap::ValueHint::FilePath | clap::ValueHint::DirPath
                    );
                let name = arg.get_value_names().map(|names| names.join(" ")).unwrap_or_default();
                if is_offered {
                    continue;
                }
                if !FREE_TEXT.contains(&name.as_str()) {
                    missing.insert(format!("{name} ({path} {})", arg.get_id()));
                }
            }
            let subs = command.get_subcommands().filter(|sub| sub.get_name() != "help");
            walk.extend(subs.map(|sub| (format!("{path} {}", sub.get_name()), sub)));
        }
        assert!(missing.is_empty(), "neither offered nor free text: {missing:#?}");
    }

    #[test]
    fn every_list_offers_its_columns() {
        let tree = offering(args::command("0.0.0"));
        let mut walk = vec![&tree];
        let mut lists = 0;
        while let Some(command) = walk.pop() {
            if let Some(arg) = command.get_arguments().find(|arg| arg.get_id() == "columns") {
                let name = command.get_display_name().unwrap_or_default();
                let offered = arg.get::<ArgValueCandidates>().map(ArgValueCandidates::candidates);
                assert!(offered.is_some_and(|all| all.len() > 1), "{name}");
                lists += 1;
            }
            walk.extend(command.get_subcommands().filter(|sub| sub.get_name() != "help"));
        }
        assert!(lists > 15, "{lists}");
    }

    #[test]
    fn who_and_campaign_are_asked_of_the_daemon() {
        let tree = offering(args::command("0.0.0"));
        let offers = |path: &[&str], name: &str| {
            let command = path.iter().fold(&tree, |command, word| command.find_subcommand(word).unwrap());
            let arg = command
                .get_arguments()
                .find(|arg| arg.get_value_names().is_some_and(|names| names.len() == 1 && names[0] == name));
            let arg = arg.unwrap();
            arg.get::<ArgValueCandidates>().is_some() || arg.get::<ArgValueCompleter>().is_some()
        };
        assert!(offers(&["logs"], "WHO") && offers(&["send"], "WHO") && offers(&["attach"], "WHO"));
        assert!(offers(&["allow"], "ID") && offers(&["deny"], "ID") && offers(&["approval", "show"], "ID"));
        assert!(offers(&["message", "show"], "MESSAGE") && offers(&["message", "ls"], "WHO"));
        assert!(offers(&["cost"], "WHO") && offers(&["usage", "audit"], "WHO") && offers(&["wait"], "WHO"));
        let run = tree.find_subcommand("run").unwrap();
        let provider = run.get_arguments().find(|arg| arg.get_id() == "provider").unwrap();
        assert!(provider.get::<ArgValueCandidates>().is_some());
        let of = |path: &[&str], id: &str| {
            let command = path.iter().fold(&tree, |command, word| command.find_subcommand(word).unwrap());
            let arg = command.get_arguments().find(|arg| arg.get_id() == id).unwrap();
            let offered = arg.get::<ArgValueCandidates>().map(ArgValueCandidates::candidates);
            let words = offered.unwrap_or_default().into_iter();
            words.map(|one| one.get_value().to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        assert!(of(&["ls"], "status").contains(&"WORKING".to_owned()));
        assert!(of(&["stop"], "attention").contains(&"waiting_approval".to_owned()));
        assert!(of(&["ls"], "outcome").contains(&"oom".to_owned()));
        assert!(of(&["config", "get"], "key").contains(&"limits.sessions".to_owned()));
        assert!(of(&["config", "set"], "settings").contains(&"watchdog.silent".to_owned()));
        let of_campaign = of(&["campaign", "set"], "settings");
        assert!(of_campaign.contains(&"net.mode=".to_owned()), "{of_campaign:?}");
        assert!(!of_campaign.contains(&"watchdog.silent".to_owned()), "{of_campaign:?}");
        let fleet = crate::testing::fleet();
        let typed = |campaign, typed: &str| -> Vec<String> {
            let all = beginning_with(typed, candidates(&fleet, campaign));
            all.iter().map(|one| one.get_value().to_string_lossy().into_owned()).collect()
        };
        assert_eq!(typed(Some("shop"), "shop/tri"), ["shop/triage"]);
        assert_eq!(typed(None, "tri"), ["triage"]);
        assert!(of(&["ls"], "columns").contains(&"ctx".to_owned()));
        assert!(
            !of(&["campaign", "ls"], "columns").is_empty() && !of(&["message", "ls"], "columns").is_empty()
        );
        assert!(offers(&["run"], "CAMPAIGN") && offers(&["campaign", "show"], "CAMPAIGN"));
    }
}
