//! The command line as a tree: what may be typed, and what is said when it makes no sense.

use std::ffi::OsString;

use clap::{
    Args, CommandFactory, FromArgMatches, Parser,
    builder::{
        Styles,
        styling::{AnsiColor, Effects},
    },
    error::{ContextKind, ContextValue, ErrorKind},
};
use ostler_domain::{Refusal, text::nearest};

use crate::{
    commands, exit_code,
    failure::Failure,
    output::{Format, Terminals, Ui, UiOptions},
};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Yellow.on_default())
    .usage(AnsiColor::Yellow.on_default())
    .literal(AnsiColor::Cyan.on_default())
    .placeholder(AnsiColor::White.on_default().effects(Effects::DIMMED));

/// Looks after your coding agents
#[derive(Debug, Parser)]
#[command(name = "ostler", styles = STYLES, disable_help_subcommand = false)]
pub(crate) struct Cli {
    #[command(flatten)]
    options: Options,
    /// None: the list of sessions.
    #[command(subcommand)]
    pub(crate) command: Option<commands::Command>,
}

#[derive(Debug, Args)]
struct Options {
    /// The form of what is said: table, wide, json, jsonl, name
    #[arg(short, long, global = true, display_order = 900, value_name = "FORM", hide_possible_values = true)]
    output: Option<Format>,
    /// Short for -o json
    #[arg(long, global = true, display_order = 901, conflicts_with = "output")]
    json: bool,
    /// Only the data, or only ids
    #[arg(short, long, global = true, display_order = 902)]
    quiet: bool,
    /// Ask nothing; what would be asked is refused
    #[arg(long, global = true, display_order = 903)]
    no_input: bool,
    /// Say more: which daemon was asked, how long it took, the name of what was refused; with run also what the agent prints on its standard error
    #[arg(short, long, global = true, display_order = 905)]
    verbose: bool,
    /// Another machine, by SSH: a name of `node ls`, or ssh://host; for ls also `all`
    #[arg(long, global = true, display_order = 904, value_name = "NODE")]
    node: Option<String>,
}

impl Cli {
    pub(crate) fn node(&self) -> Option<String> {
        self.options.node.clone()
    }

    pub(crate) fn ui_options(&self) -> UiOptions {
        let format = if self.options.json { Some(Format::Json) } else { self.options.output };
        UiOptions {
            format,
            quiet: self.options.quiet,
            no_input: self.options.no_input,
            verbose: self.options.verbose,
        }
    }
}

/// The groups of the help's first page. A test holds them against the tree.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "DAILY",
        &[
            "run", "ls", "show", "logs", "attach", "send", "stop", "allow", "deny", "approval", "message",
            "search", "blame",
        ],
    ),
    ("FIRST HOUR", &["init", "demo", "doctor"]),
    ("EMERGENCY", &["halt"]),
    (
        "SESSION (each also after the word `session`)",
        &[
            "pause",
            "resume",
            "restart",
            "interrupt",
            "kill",
            "model",
            "fork",
            "handoff",
            "done",
            "label",
            "diff",
            "rewind",
            "tape",
            "wait",
        ],
    ),
    ("INSIDE A SESSION (said by an agent, of itself)", &["step", "note", "output", "spawn", "mcp"]),
    (
        "NOUNS",
        &[
            "campaign",
            "agent",
            "conversation",
            "session",
            "chain",
            "seance",
            "ticket",
            "mission",
            "transcript",
            "retention",
            "worktree",
            "provider",
            "policy",
            "sandbox",
        ],
    ),
    ("MONEY", &["cost", "price", "usage"]),
    (
        "MACHINE",
        &[
            "config",
            "import",
            "events",
            "exec",
            "export",
            "daemon",
            "service",
            "node",
            "db",
            "sql",
            "audit",
            "du",
            "metrics",
            "api",
            "completion",
            "man",
            "version",
            "help",
        ],
    ),
];

/// The whole tree, for whoever is shown it.
pub(crate) fn command(version: &'static str) -> clap::Command {
    let mut command = Cli::command().version(version);
    command.build();
    let groups = groups(&command);
    command
        .help_template(format!("{{about}}\n\n{{usage-heading}} {{usage}}\n\n{groups}Options:\n{{options}}\n"))
}

fn groups(command: &clap::Command) -> String {
    let about = |name: &str| {
        let found = command.find_subcommand(name);
        found.and_then(|found| found.get_about()).map(ToString::to_string).unwrap_or_default()
    };
    let mut text = String::new();
    for (title, names) in GROUPS {
        text.push_str(&format!("{title}\n"));
        for name in *names {
            text.push_str(&format!("  {name:<10} {}\n", about(name)));
        }
        text.push('\n');
    }
    text
}

pub(crate) fn parse(args: &[OsString], version: &'static str) -> Result<Cli, clap::Error> {
    // Most of the time that a listing takes would go into a tree of which it needs one leaf.
    if let Ok(matches) = Cli::command().version(version).try_get_matches_from_mut(args) {
        return Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command(version)));
    }
    let mut command = command(version);
    let matches = command.try_get_matches_from_mut(args)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Shows help, or says in our own form what cannot be meant. Returns the exit code.
pub(crate) fn explain(error: &clap::Error, args: &[OsString], terminals: Terminals) -> u8 {
    let options = UiOptions { format: meant_format(args), ..UiOptions::default() };
    let is_help = matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if !is_help {
        return Ui::new(terminals, options).finish(Err(Failure::from(refusal(error, args))));
    }
    let asked = error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    let ui = Ui::new(terminals, options);
    let outcome = ui.help(&error.render(), asked);
    ui.finish(outcome.map(|()| if asked { exit_code::OK } else { exit_code::USAGE }))
}

/// The form asked for on a command line that does not parse.
fn meant_format(args: &[OsString]) -> Option<Format> {
    let texts: Vec<_> = args.iter().filter_map(|arg| arg.to_str()).collect();
    let is_json = texts.iter().enumerate().any(|(n, text)| match *text {
        "--json" | "-ojson" | "-ojsonl" | "-o=json" | "-o=jsonl" | "--output=json" | "--output=jsonl" => true,
        "-o" | "--output" => texts.get(n + 1).is_some_and(|form| form.starts_with("json")),
        _ => false,
    });
    is_json.then_some(Format::Json)
}

fn refusal(error: &clap::Error, args: &[OsString]) -> Refusal {
    let text = error.render().to_string();
    let sentence = text.split("\n\n").next().unwrap_or_default();
    let sentence = sentence.strip_prefix("error: ").unwrap_or(sentence);
    let mut refusal = Refusal::invalid(ostler_domain::text::one_line(sentence, 400));
    let tree = command("");
    let meant = meant_command(&tree, args);
    let path = meant.iter().map(|command| command.get_name()).collect::<Vec<_>>().join(" ");
    let suggestions = |kind| match error.get(kind) {
        Some(ContextValue::String(one)) => vec![one.clone()],
        Some(ContextValue::Strings(many)) => many.clone(),
        _ => Vec::new(),
    };
    // The nearest comes last from the parser, and aliases that help does not show among them.
    let verbs = suggestions(ContextKind::SuggestedSubcommand).into_iter().rev();
    let is_shown = |verb: &String| {
        let parent = meant.last();
        parent.is_some_and(|parent| {
            parent.get_subcommands().any(|sub| sub.get_name() == verb && !sub.is_hide_set())
        })
    };
    // `help WORD` is not looked up by the parser.
    let after_help = || {
        let mut words =
            args.iter().skip(1).filter_map(|arg| arg.to_str()).filter(|word| !word.starts_with('-'));
        let word = words.next().filter(|first| *first == "help").and_then(|_| words.next())?;
        let known = tree.get_subcommands().filter(|sub| !sub.is_hide_set()).map(clap::Command::get_name);
        nearest(word, known).map(str::to_owned)
    };
    if let Some(verb) = after_help() {
        refusal = refusal.hint(format!("ostler help {verb}"), "may be what you meant");
    }
    for verb in verbs.filter(is_shown) {
        refusal = refusal.hint(format!("{path} {verb}"), "is a command that exists");
    }
    for flag in suggestions(ContextKind::SuggestedArg) {
        refusal = refusal.hint(flag, "is a flag that exists");
    }
    if meant.len() > 1 {
        refusal.hint(format!("{path} --help"), "says what it takes")
    } else {
        refusal.hint("ostler help", "lists the commands")
    }
}

/// The command that the arguments begin to name, from the root on.
fn meant_command<'a>(tree: &'a clap::Command, args: &[OsString]) -> Vec<&'a clap::Command> {
    let mut path = vec![tree];
    for word in args.iter().skip(1).filter_map(|arg| arg.to_str()).filter(|word| !word.starts_with('-')) {
        match path.last().and_then(|last| last.find_subcommand(word)) {
            Some(sub) => path.push(sub),
            None => break,
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use insta::assert_snapshot;

    use super::*;

    fn parsed(line: &str) -> Result<Cli, clap::Error> {
        let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        parse(&args, "0.0.0")
    }

    #[test]
    fn the_tree_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn what_is_not_asked_for_is_not_made() {
        let mut tree = Cli::command();
        tree.try_get_matches_from_mut(["ostler", "ls"]).unwrap();
        let own =
            |command: &clap::Command| command.get_arguments().filter(|flag| !flag.is_global_set()).count();
        let flags = |name: &str| own(tree.find_subcommand(name).unwrap());
        assert!(flags("ls") > 10);
        assert_eq!((flags("run"), flags("cost"), flags("campaign")), (0, 0, 0));
    }

    /// Every command, with every flag of it at least once.
    #[test]
    fn every_command_parses() {
        for line in include_str!("testing/command_lines.txt").lines().filter(|line| !line.is_empty()) {
            assert!(parsed(line).is_ok(), "{line}: {}", parsed(line).unwrap_err());
        }
    }

    /// Every other name that the tree has for a command or a flag, however deep, with the name that it stands for.
    fn aliases() -> Vec<(String, String)> {
        fn walk(command: &clap::Command, path: &str, found: &mut Vec<(String, String)>) {
            for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
                let own = format!("{path} {}", sub.get_name());
                found.extend(sub.get_all_aliases().map(|alias| (format!("{path} {alias}"), own.clone())));
                for flag in sub.get_arguments() {
                    let long = flag.get_long().unwrap_or_default();
                    let aliases = flag.get_all_aliases().unwrap_or_default().into_iter();
                    let value = if flag.get_action().takes_values() { " x" } else { "" };
                    found.extend(
                        aliases.map(|alias| {
                            (format!("{own} --{alias}{value}"), format!("{own} --{long}{value}"))
                        }),
                    );
                }
                walk(sub, &own, found);
            }
        }
        let mut found = Vec::new();
        walk(&command("0.0.0"), "ostler", &mut found);
        found
    }

    /// What a command wants to be told, so that it parses: the first of these that does.
    const OPERANDS: [&str; 9] = ["", "x", "x y", "x y z", "k=v", "claude", "x k=v", "ls", "show x"];

    #[test]
    fn aliases_mean_what_they_stand_for() {
        let all = aliases();
        assert!(all.len() > 30, "{all:?}");
        for (alias, name) in all {
            let line = |words: &str, operands: &str| format!("{words} {operands}").trim_end().to_owned();
            let operands = OPERANDS.iter().find(|operands| parsed(&line(&name, operands)).is_ok());
            let operands = operands.unwrap_or_else(|| panic!("{name} parses with none of {OPERANDS:?}"));
            assert_eq!(
                format!("{:?}", parsed(&line(&alias, operands)).unwrap_or_else(|e| panic!("{alias}: {e}"))),
                format!("{:?}", parsed(&line(&name, operands)).unwrap()),
                "{alias}"
            );
        }
    }

    /// Names of issues and of other tools: hidden commands that stand for a command with a flag, or for a deeper one.
    #[test]
    fn hidden_commands_stand_for_others() {
        let tree = command("0.0.0");
        let mut hidden = BTreeSet::new();
        let mut walk = vec![(String::from("ostler"), &tree)];
        while let Some((path, command)) = walk.pop() {
            for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
                let own = format!("{path} {}", sub.get_name());
                if sub.is_hide_set() {
                    hidden.insert(own.clone());
                }
                walk.push((own, sub));
            }
        }
        // Each with a line that it parses; what they do is tried by `screens::aliases_with_a_flag_in_them_do_what_they_stand_for`.
        let known = [
            ("ostler find", "ostler find --agent api --since 24h"),
            ("ostler watch", "ostler watch"),
            ("ostler session find", "ostler sessions find --agent api --since 24h"),
            ("ostler session chain", "ostler sessions chain bead:gt-xyz"),
        ];
        assert_eq!(hidden, known.iter().map(|(name, _)| (*name).to_owned()).collect::<BTreeSet<_>>());
        for (_, line) in known.into_iter().chain([
            ("", "ostler sessions list --agent api --rig shop --since 1h"),
            ("", "ostler sessions show k7q4x"),
        ]) {
            assert!(parsed(line).is_ok(), "{line}: {}", parsed(line).unwrap_err());
        }
    }

    #[test]
    fn session_verbs_work_with_and_without_the_word() {
        let tree = command("0.0.0");
        let session = tree.find_subcommand("session").unwrap();
        for verb in session.get_subcommands().filter(|verb| verb.get_name() != "help") {
            assert!(tree.find_subcommand(verb.get_name()).is_some(), "{}", verb.get_name());
        }
    }

    /// What the help says of a group is true of each in it, and all of which it is true are in it, or are daily.
    #[test]
    fn what_is_said_to_work_after_the_word_session_does() {
        let tree = command("0.0.0");
        let session = tree.find_subcommand("session").unwrap();
        let of = |part: &str| -> BTreeSet<&str> {
            let group = GROUPS.iter().find(|(title, _)| title.starts_with(part)).unwrap();
            group.1.iter().copied().collect()
        };
        let verbs: BTreeSet<_> = session
            .get_subcommands()
            .filter(|verb| !verb.is_hide_set() && verb.get_name() != "help")
            .map(clap::Command::get_name)
            .collect();
        let shown = of("SESSION (each also");
        assert_eq!(shown.difference(&verbs).collect::<Vec<_>>(), Vec::<&&str>::new());
        let told: BTreeSet<_> = shown.union(&of("DAILY")).copied().collect();
        assert_eq!(verbs.difference(&told).collect::<Vec<_>>(), Vec::<&&str>::new());
    }

    /// `Directories: add, ls` names verbs that exist, and all of them that are shown; `…` stands for the rest.
    #[test]
    fn a_nouns_line_names_its_verbs() {
        let tree = command("0.0.0");
        for noun in tree.get_subcommands().filter(|noun| !noun.is_hide_set()) {
            let shown = |verb: &&clap::Command| !verb.is_hide_set() && verb.get_name() != "help";
            let verbs: BTreeSet<_> =
                noun.get_subcommands().filter(shown).map(clap::Command::get_name).collect();
            let about = noun.get_about().unwrap().to_string();
            let Some((_, list)) = about.split_once(": ") else { continue };
            let list = list.split(';').next().unwrap_or_default();
            let named: Vec<_> = list.split(", ").map(str::trim).collect();
            let is_list_of_verbs = named.iter().any(|name| verbs.contains(name));
            if verbs.is_empty() || !is_list_of_verbs {
                continue;
            }
            let is_whole = !named.contains(&"…");
            let named: BTreeSet<_> = named.into_iter().filter(|name| *name != "…").collect();
            assert!(named.is_subset(&verbs), "{}: {named:?} {verbs:?}", noun.get_name());
            assert!(!is_whole || named == verbs, "{}: {named:?} {verbs:?}", noun.get_name());
        }
    }

    #[test]
    fn help_lists_exactly_what_exists() {
        let tree = command("0.0.0");
        let shown: BTreeSet<_> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let exist: BTreeSet<_> =
            tree.get_subcommands().filter(|sub| !sub.is_hide_set()).map(clap::Command::get_name).collect();
        assert_eq!(shown, exist);
    }

    #[test]
    fn everything_has_a_help_text() {
        fn check(command: &clap::Command) {
            for sub in command.get_subcommands() {
                assert!(sub.get_about().is_some(), "{}", sub.get_name());
                for arg in sub.get_arguments() {
                    assert!(arg.get_help().is_some(), "{} {}", sub.get_name(), arg.get_id());
                }
                check(sub);
            }
        }
        check(&command("0.0.0"));
    }

    #[test]
    fn the_first_page() {
        assert_snapshot!(command("0.0.0").render_help());
    }

    #[test]
    fn the_help_of_run() {
        let mut tree = command("0.0.0");
        assert_snapshot!(tree.find_subcommand_mut("run").unwrap().render_help());
    }

    fn complaint(line: &str) -> String {
        let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let refusal = refusal(&parsed(line).unwrap_err(), &args);
        let look = crate::output::Look::plain(None);
        crate::failure::lines(&refusal, 2).iter().map(|line| line.show(&look)).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn mistakes_are_answered_with_what_is_near() {
        assert_snapshot!(
            [
                "ostler lss",
                "ostler xyzzy",
                "ostler run --budgt 5k x",
                "ostler run --budget 2eur x",
                "ostler run --approve maybe x",
                "ostler stop",
                "ostler ls --status GONE",
                "ostler campaign frobnicate",
                "ostler wait x --timeout soon",
            ]
            .map(complaint)
            .join("\n\n")
        );
    }

    #[test]
    fn the_form_is_known_even_when_nothing_else_is() {
        let format = |line: &str| {
            let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            meant_format(&args)
        };
        assert_eq!(format("ostler lss --json"), Some(Format::Json));
        assert_eq!(format("ostler lss -o jsonl"), Some(Format::Json));
        assert_eq!(format("ostler lss -o table"), None);
    }

    #[test]
    fn help_of_what_is_none_names_what_was_meant() {
        let args: Vec<OsString> = ["ostler", "help", "serach"].map(OsString::from).to_vec();
        let refused = refusal(&parse(&args, "0.0.0").unwrap_err(), &args);
        assert_eq!(refused.hints[0].command, "ostler help search", "{refused:?}");
    }
}
