//! Shell completion: the shell asks this program, and the program asks the daemon for names and ids.

mod asked;

use std::io;

use clap::Arg;
use clap_complete::{
    CompleteEnv,
    engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter},
    env::Shells,
};
use ostler_domain::{
    Kind, agent,
    config::{KEYS, Key},
    conversation,
    mission::plan::{Template, templates},
    notice::Occasion,
    policy,
    session::{Attention, Outcome, Status},
};

use self::asked::{
    agents, approvals, campaigns, conversations, messages, missions, nodes, providers, sessions, shares,
    tickets, tokens,
};
use crate::{args, commands};

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
    ("access", &["observe", "interact", "manage"]),
    ("level", &["error", "warn", "info", "debug", "trace"]),
];

/// Where the dashboard can be opened.
const PAGES: [&str; 8] =
    ["/", "/sessions", "/missions", "/search", "/cost", "/tickets", "/campaigns", "/machine"];

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
        ("WHOM", _) => arg.add(ArgValueCandidates::new(|| agents().into_iter().chain(providers()).collect())),
        ("CAMPAIGN", _) => arg.add(ArgValueCandidates::new(campaigns)),
        ("ID", _) => arg.add(ArgValueCandidates::new(approvals)),
        ("MISSION", _) => arg.add(ArgValueCandidates::new(missions)),
        ("MESSAGE", _) => arg.add(ArgValueCandidates::new(messages)),
        ("AGENT", _) | (_, "agent") => arg.add(ArgValueCandidates::new(agents)),
        ("CONVERSATION", _) => arg.add(ArgValueCandidates::new(conversations)),
        ("TICKET", _) => arg.add(ArgValueCandidates::new(tickets)),
        ("NODE", _) => arg.add(ArgValueCandidates::new(nodes)),
        ("TOKEN", _) => arg.add(ArgValueCandidates::new(tokens)),
        ("SHARE", _) => arg.add(ArgValueCandidates::new(shares)),
        ("OCCASION", _) => {
            arg.add(ArgValueCandidates::new(|| of_words(Occasion::ALL, |occasion| occasion.as_str())))
        }
        ("PAGE", _) => arg.add(ArgValueCandidates::new(|| of_words(&PAGES, |page| page))),
        ("NAME", "name") if noun == "node" && !is_new => arg.add(ArgValueCandidates::new(nodes)),
        ("NAME", "name") if noun == "provider" && !is_new => arg.add(ArgValueCandidates::new(providers)),
        (_, "provider") => arg.add(ArgValueCandidates::new(providers)),
        ("FILE" | "DIR" | "PATH" | "DEST" | "PROGRAM", _) => {
            arg.add(ArgValueCompleter::new(PathCompleter::any()))
        }
        ("FILE|TEMPLATE", _) => {
            let files = ArgValueCompleter::new(PathCompleter::any());
            arg.add(ArgValueCandidates::new(mission_templates)).add(files)
        }
        ("TEMPLATE", _) => arg.add(ArgValueCandidates::new(mission_templates)),
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
        ("SETTING", _) if noun == "conversation" => {
            let keys = || conversation::keys().into_iter().chain(["label"]);
            arg.add(ArgValueCandidates::new(move || of_words(&assigned(keys()), String::as_str)))
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

fn mission_templates() -> Vec<CompletionCandidate> {
    let candidate =
        |template: &Template| CompletionCandidate::new(template.name).help(Some(template.about().into()));
    templates().iter().map(candidate).collect()
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

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use ostler_client::{Agent, Session};

    use super::{
        asked::{beginning_with, candidates, with_agents},
        *,
    };
    use crate::words;

    #[test]
    fn every_shell_has_a_script() {
        for shell in shells() {
            let script = String::from_utf8(registration(shell).unwrap()).unwrap();
            assert!(script.contains("ostler") && script.contains(VARIABLE), "{shell}: {script}");
        }
    }

    #[test]
    fn an_agent_is_offered_once_though_a_session_has_its_name() {
        let agent = |name: &str| Agent {
            id: ostler_domain::AgentId::new(words::now(), 1),
            campaign: ostler_domain::CampaignId::new(words::now(), 1),
            name: name.parse().unwrap(),
            added: words::now(),
            profile: agent::Profile::default(),
        };
        let all = with_agents(vec![CompletionCandidate::new("api")], &[agent("api"), agent("apron")], None);
        let all: Vec<_> = all.iter().map(|one| one.get_value().to_string_lossy().into_owned()).collect();
        assert_eq!(all, ["api", "apron"]);
        let of_shop = with_agents(Vec::new(), &[agent("api")], Some("shop"));
        assert_eq!(of_shop[0].get_value(), OsStr::new("shop/api"));
    }

    #[test]
    fn a_name_that_several_sessions_of_one_conversation_had_is_offered_once() {
        let one = crate::testing::session(1, "one");
        let again = Session { id: ostler_domain::SessionId::new(crate::testing::NOW, 99), ..one.clone() };
        let other = ostler_domain::ConversationId::new(crate::testing::NOW, 98);
        let elsewhere = Session { conversation: other, ..again.clone() };
        let values = |sessions: &[Session]| {
            let all = candidates(sessions, None);
            all.iter().map(|one| one.get_value().to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(values(&[again, one.clone()]), ["one"]);
        assert!(!values(&[elsewhere, one]).contains(&"one".to_owned()), "it would mean two");
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
        "PROFILE",
        "PROMPT",
        "QUERY",
        "QUESTION",
        "REASON",
        "REF",
        "ROLE",
        "SEQ",
        "SHA256",
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
        assert!(offers(&["handoff"], "WHOM") && offers(&["conversation", "set"], "SETTING"));
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
