//! What is said of a command line that asks for help, or that cannot be meant.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use ostler_domain::{Refusal, text::nearest};

use super::{command, plain_words};
use crate::{
    exit_code,
    failure::Failure,
    output::{Format, Terminals, Ui, UiOptions},
};

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
pub(super) fn meant_format(args: &[OsString]) -> Option<Format> {
    let texts: Vec<_> = args.iter().filter_map(|arg| arg.to_str()).collect();
    let is_json = texts.iter().enumerate().any(|(n, text)| match *text {
        "--json" | "-ojson" | "-ojsonl" | "-o=json" | "-o=jsonl" | "--output=json" | "--output=jsonl" => true,
        "-o" | "--output" => texts.get(n + 1).is_some_and(|form| form.starts_with("json")),
        _ => false,
    });
    is_json.then_some(Format::Json)
}

pub(super) fn refusal(error: &clap::Error, args: &[OsString]) -> Refusal {
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
        let mut words = plain_words(args);
        let word = words.next().filter(|first| *first == "help").and_then(|_| words.next())?;
        let known = tree.get_subcommands().filter(|sub| !sub.is_hide_set()).map(clap::Command::get_name);
        nearest(word, known).map(str::to_owned)
    };
    let of_help = after_help();
    if let Some(verb) = &of_help {
        refusal = refusal.hint(format!("ostler help {verb}"), "may be what you meant");
    }
    // The parser looks for words that share letters with what was typed; a slip of the finger is near otherwise.
    let slip = || {
        let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else {
            return None;
        };
        let known = meant.last()?.get_subcommands().filter(|sub| !sub.is_hide_set());
        nearest(typed, known.map(clap::Command::get_name)).map(str::to_owned)
    };
    let slip = slip().filter(|_| of_help.is_none());
    let others = verbs.filter(is_shown).filter(|verb| Some(verb) != slip.as_ref()).collect::<Vec<_>>();
    for verb in slip.iter().chain(&others) {
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
    // Help is asked of a command, and has none itself.
    for word in plain_words(args).filter(|word| *word != "help") {
        match path.last().and_then(|last| last.find_subcommand(word)) {
            Some(sub) => path.push(sub),
            None => break,
        }
    }
    path
}
