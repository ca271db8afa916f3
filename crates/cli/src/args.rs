//! The command line as a tree: what may be typed, and what is said when it makes no sense.

mod explain;
mod groups;

use std::ffi::OsString;

use clap::{
    ArgMatches, Args, CommandFactory, FromArgMatches, Parser,
    builder::{
        Styles,
        styling::{AnsiColor, Effects},
    },
    error::{ContextKind, ContextValue, ErrorKind},
};
use ostler_client::SessionSocket;

pub(crate) use self::explain::explain;
use self::groups::{GROUPS, INSIDE, groups};
use crate::{
    commands,
    output::{Format, UiOptions},
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
    /// None: the live screen, or the list of sessions.
    #[command(subcommand)]
    pub(crate) command: Option<commands::Command>,
    /// Which that is, by its names in the tree: `ostler-campaign-ls`.
    #[arg(skip)]
    pub(crate) path: String,
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
    fn matched(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut path = "ostler".to_owned();
        let mut below = matches;
        while let Some((name, verb)) = below.subcommand() {
            path = format!("{path}-{name}");
            below = verb;
        }
        Ok(Self { path, ..Self::from_arg_matches(matches)? })
    }

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

/// The whole tree, for whoever is shown it.
pub(crate) fn command(version: &'static str) -> clap::Command {
    let is_inside = SessionSocket::of_this_process().is_some();
    let mut command = Cli::command().version(version);
    command.build();
    let groups = groups(&command, if is_inside { INSIDE } else { GROUPS });
    command
        .help_template(format!("{{about}}\n\n{{usage-heading}} {{usage}}\n\n{groups}Options:\n{{options}}\n"))
}

/// What is typed behind the program's name, without flags and without the values of those that go before any command.
pub(crate) fn plain_words(args: &[OsString]) -> impl Iterator<Item = &str> {
    let mut is_value = false;
    args.iter().skip(1).filter_map(|arg| arg.to_str()).filter(move |word| {
        let is_of_flag = std::mem::replace(&mut is_value, ["-o", "--output", "--node"].contains(word));
        !is_of_flag && !word.starts_with('-')
    })
}

pub(crate) fn parse(args: &[OsString], version: &'static str) -> Result<Cli, clap::Error> {
    // Most of the time that a listing takes would go into a tree of which it needs one leaf.
    if let Ok(matches) = Cli::command().version(version).try_get_matches_from_mut(args) {
        return Cli::matched(&matches).map_err(|error| error.format(&mut command(version)));
    }
    let mut command = command(version);
    let matches = match command.try_get_matches_from_mut(args) {
        Err(error) if is_about_consent(&error) => command.try_get_matches_from_mut(without_consent(args)),
        outcome => outcome,
    }?;
    Cli::matched(&matches).map_err(|error| error.format(&mut command))
}

/// Those that ask have it in their help; all others take it too, so that nobody has to know which do.
const CONSENT: [&str; 2] = ["-y", "--yes"];

fn is_about_consent(error: &clap::Error) -> bool {
    error.kind() == ErrorKind::UnknownArgument
        && matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(unknown)) if CONSENT.contains(&unknown.as_str()))
}

fn without_consent(args: &[OsString]) -> Vec<&OsString> {
    let end = args.iter().position(|arg| arg == "--").unwrap_or(args.len());
    let is_consent = |arg: &OsString| CONSENT.iter().any(|consent| arg == consent);
    let place = args[..end].iter().position(is_consent);
    let is_kept = |(at, arg)| (Some(at) != place).then_some(arg);
    args.iter().enumerate().filter_map(is_kept).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::parser::ValueSource;
    use insta::assert_snapshot;

    use super::{
        explain::{meant_format, refusal},
        *,
    };

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

    #[test]
    fn whoever_says_yes_where_nothing_is_asked_is_not_refused() {
        for line in
            ["ostler campaign set shop budget=1usd -y", "ostler --yes halt", "ostler send api hi --yes"]
        {
            assert!(parsed(line).is_ok(), "{line}");
        }
        let about = |line: &str| parsed(line).unwrap_err().to_string();
        assert!(
            about("ostler campaign set -y").contains("<CAMPAIGN>"),
            "{}",
            about("ostler campaign set -y")
        );
        assert!(about("ostler ls --yess").contains("--yess"));
        let after = ["ostler", "exec", "--", "apt", "-y"].map(OsString::from);
        assert_eq!(without_consent(&after).len(), after.len());
    }

    /// Every command, with every flag of it at least once.
    #[test]
    fn every_command_parses() {
        let (mut typed, mut faults) = (BTreeSet::new(), Vec::new());
        let tree = command("0.0.0");
        for line in include_str!("testing/command_lines.txt").lines().filter(|line| !line.is_empty()) {
            // As `parse` does it: of the whole tree only what the line needs is made.
            let matches = Cli::command().version("0.0.0").try_get_matches_from(line.split_whitespace());
            match matches.and_then(|matches| Cli::from_arg_matches(&matches).map(|_| matches)) {
                Ok(matches) => typed.extend(named_by(&tree, &matches)),
                Err(error) => faults.push(format!("{line}: {error}")),
            }
        }
        let untyped = all_of(&tree, "ostler").into_iter().filter(|one| !typed.contains(one));
        faults.extend(untyped.map(|one| format!("no line has: {one}")));
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    /// A verb of sessions is the same with the word before it.
    fn of_path(path: &str) -> String {
        path.replace("ostler session ", "ostler ")
    }

    /// Every command of the tree that does something, and each of its flags behind it.
    fn all_of(command: &clap::Command, path: &str) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        if !command.is_subcommand_required_set() {
            all.insert(of_path(path));
        }
        let is_own = |flag: &&clap::Arg| !flag.is_global_set() && flag.get_long().is_some();
        for flag in command.get_arguments().filter(is_own) {
            let built_in = ["help", "version"].contains(&flag.get_id().as_str());
            if !built_in {
                all.insert(format!("{} --{}", of_path(path), flag.get_long().unwrap_or_default()));
            }
        }
        for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
            all.extend(all_of(sub, &format!("{path} {}", sub.get_name())));
        }
        all
    }

    /// The command that a line names, with the flags that it has.
    fn named_by(tree: &clap::Command, matches: &clap::ArgMatches) -> Vec<String> {
        let (mut command, mut matches, mut path) = (tree, matches, String::from("ostler"));
        let mut named = Vec::new();
        loop {
            for flag in command.get_arguments().filter(|flag| !flag.is_global_set()) {
                let id = flag.get_id().as_str();
                let is_known = matches.try_contains_id(id).is_ok();
                let is_typed = is_known && matches.value_source(id) == Some(ValueSource::CommandLine);
                if let Some(long) = flag.get_long().filter(|_| is_typed) {
                    named.push(format!("{} --{long}", of_path(&path)));
                }
            }
            let Some((name, inner)) = matches.subcommand() else { break };
            path = format!("{path} {name}");
            (command, matches) = (command.find_subcommand(name).unwrap(), inner);
        }
        named.push(of_path(&path));
        named
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
                    let value = if flag.get_action().takes_values() { VALUE } else { "" };
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

    /// Stands for what a flag wants to be told.
    const VALUE: &str = " VALUE";
    const VALUES: [&str; 2] = [" x", " 30m"];

    /// What a command wants to be told, so that it parses: the first of these that does.
    const OPERANDS: [&str; 10] =
        ["", "x", "x y", "x y z", "k=v", "claude", "x k=v", "ls", "show x", "desktop"];

    #[test]
    fn aliases_mean_what_they_stand_for() {
        let all = aliases();
        assert!(all.len() > 30, "{all:?}");
        for (alias, name) in all {
            let line = |words: &str, (operands, value): (&str, &str)| {
                format!("{} {operands}", words.replace(VALUE, value)).trim_end().to_owned()
            };
            let told = OPERANDS.iter().flat_map(|operands| VALUES.map(|value| (*operands, value)));
            let told = told.into_iter().find(|told| parsed(&line(&name, *told)).is_ok());
            let told = told.unwrap_or_else(|| panic!("{name} parses with none of {OPERANDS:?}"));
            assert_eq!(
                format!("{:?}", parsed(&line(&alias, told)).unwrap_or_else(|e| panic!("{alias}: {e}"))),
                format!("{:?}", parsed(&line(&name, told)).unwrap()),
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
            ("ostler mission watch", "ostler mission watch checkout-v2"),
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
    fn a_flag_behind_settings_is_a_flag() {
        for line in include_str!("testing/command_lines.txt").lines().filter(|line| line.contains(" set ")) {
            let parsed = format!("{:?}", parsed(line).unwrap().command);
            assert!(!parsed.contains("\"-q\"") && !parsed.contains("\"--json\""), "{line}: {parsed}");
        }
    }

    #[test]
    fn help_inside_a_session_lists_what_may_be_done_there() {
        let tree = command("0.0.0");
        let shown = groups(&tree, INSIDE);
        for (_, names) in INSIDE {
            for name in *names {
                assert!(tree.find_subcommand(name).is_some(), "{name}");
            }
        }
        assert!(
            shown.contains("\n  handoff") && !shown.contains("\n  run") && !shown.contains("\n  stop"),
            "{shown}"
        );
    }

    #[test]
    fn every_list_takes_the_flags_of_all() {
        fn check(command: &clap::Command, path: &str, lists: &mut usize) {
            if command.get_name() == "ls" {
                *lists += 1;
                for flag in ["columns", "no_headers", "limit", "watch"] {
                    let has = command.get_arguments().any(|arg| arg.get_id() == flag);
                    assert!(has, "{path} has no --{flag}");
                }
            }
            let below = command.get_subcommands().filter(|one| one.get_name() != "help");
            below.for_each(|one| check(one, &format!("{path} {}", one.get_name()), lists));
        }
        let (mut tree, mut lists) = (command("0.0.0"), 0);
        tree.build();
        check(&tree, "ostler", &mut lists);
        assert!(lists >= 17, "{lists}");
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
        crate::failure::lines(&refusal, 2, None)
            .iter()
            .map(|line| line.show(&look))
            .collect::<Vec<_>>()
            .join("\n")
    }

    #[test]
    fn mistakes_are_answered_with_what_is_near() {
        assert_snapshot!(
            [
                "ostler lss",
                "ostler rnu x",
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
    fn a_command_is_known_behind_the_flags_of_all() {
        for line in ["ostler --node far exec -- ls", "ostler -o json -q exec ls", "ostler --node=far exec"] {
            let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            assert_eq!(plain_words(&args).next(), Some("exec"), "{line}");
        }
        let said = complaint("ostler --node far campaign frobnicate");
        assert!(said.contains("ostler campaign --help"), "{said}");
    }

    /// What hints say of another machine's commands is true of each.
    #[test]
    fn hints_about_another_machine_are_typed_where_they_work() {
        let there = ostler_screen::Look { node: Some("far".to_owned()), ..crate::output::Look::plain(None) };
        let lines = include_str!("testing/command_lines.txt").lines();
        for line in lines.filter(|line| line.starts_with("ostler ") && !line.contains("--node")) {
            let command = parsed(line).unwrap().command.unwrap();
            let is_asked = there.command(line).starts_with("ostler --node far ");
            assert_eq!(is_asked, command.is_of_any_machine(), "{line}: {}", there.command(line));
        }
    }

    #[test]
    fn help_of_what_is_none_names_what_was_meant() {
        let args: Vec<OsString> = ["ostler", "help", "serach"].map(OsString::from).to_vec();
        let refused = refusal(&parse(&args, "0.0.0").unwrap_err(), &args);
        assert_eq!(refused.hints[0].command, "ostler help search", "{refused:?}");
        // What is offered instead is no dead end.
        for (line, offered) in [
            ("ostler help nosuch", "ostler help   lists the commands"),
            ("ostler help --help", "ostler help   lists the commands"),
            ("ostler help campaign frob", "ostler campaign --help"),
            ("ostler campaign help frob", "ostler campaign --help"),
        ] {
            let said = complaint(line);
            assert!(said.contains(offered) && !said.contains("help --help"), "{said}");
        }
    }
}
