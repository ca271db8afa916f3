//! Shell completion: the shell asks this program, and the program asks the daemon for names and ids.

use std::{collections::BTreeMap, io, time::Duration};

use clap::Arg;
use clap_complete::{
    CompleteEnv,
    engine::{ArgValueCandidates, CompletionCandidate},
    env::Shells,
};
use ostler_client::{Client, Session};
use ostler_domain::{
    limits::PAGE_DEFAULT,
    query::{Page, Scope, SessionFilter},
};

use crate::{args, commands, failure::Failure, words};

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

/// Values of arguments are known by what the help calls them.
fn offering(command: clap::Command) -> clap::Command {
    let offer = |arg: Arg| match arg.get_value_names() {
        Some([name]) if name == "WHO" => arg.add(ArgValueCandidates::new(sessions)),
        Some([name]) if name == "CAMPAIGN" => arg.add(ArgValueCandidates::new(campaigns)),
        _ => arg,
    };
    command.mut_args(offer).mut_subcommands(offering)
}

/// Names first, as they are what people type; an id where a name is not alone.
fn sessions() -> Vec<CompletionCandidate> {
    let asked = ask(async |client| {
        let filter = SessionFilter { scope: Scope::All, ..SessionFilter::default() };
        Ok(client.sessions(&filter, Page::of(PAGE_DEFAULT, None)).await?.rows)
    });
    candidates(&asked)
}

fn candidates(sessions: &[Session]) -> Vec<CompletionCandidate> {
    let mut alike: BTreeMap<&str, usize> = BTreeMap::new();
    for session in sessions {
        *alike.entry(session.name.as_str()).or_default() += 1;
    }
    let candidate = |session: &Session| {
        let name = session.name.as_str();
        let typed = if alike[name] == 1 { name.to_owned() } else { session.id.short() };
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

    #[test]
    fn who_and_campaign_are_asked_of_the_daemon() {
        let tree = offering(args::command("0.0.0"));
        let offers = |path: &[&str], name: &str| {
            let command = path.iter().fold(&tree, |command, word| command.find_subcommand(word).unwrap());
            let arg = command
                .get_arguments()
                .find(|arg| arg.get_value_names().is_some_and(|names| names.len() == 1 && names[0] == name));
            arg.unwrap().get::<ArgValueCandidates>().is_some()
        };
        assert!(offers(&["logs"], "WHO") && offers(&["send"], "WHO") && offers(&["attach"], "WHO"));
        assert!(offers(&["run"], "CAMPAIGN") && offers(&["campaign", "show"], "CAMPAIGN"));
    }
}
