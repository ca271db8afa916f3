//! `ostler provider login`: the program's own login, in a home of Ostler's that no agent sees; or one that exists already.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use clap::Args;
use ostler_client::{CallerKeys, Client};
use ostler_domain::{
    Name, Reason, Refusal,
    provider::{ITS_LOGIN, Status},
};

use crate::{
    app::App,
    exit_code,
    failure::Failure,
    output::{Line, Tone},
};

#[derive(Debug, Args)]
pub(super) struct LoginArgs {
    /// Its name
    name: String,
    /// Take over the login of this directory or file, such as ~/.claude, instead: only that one file is copied
    #[arg(long, value_name = "PATH")]
    from: Option<PathBuf>,
    /// The account that is to have it: a profile of config.toml with login = true
    #[arg(long)]
    profile: Option<Name>,
    /// Added to the words with which its program logs in, such as --device-auth for codex on a machine without a browser
    #[arg(last = true, conflicts_with = "from")]
    args: Vec<String>,
}

pub(super) async fn run(app: &App, client: &Client, args: LoginArgs) -> Result<u8, Failure> {
    let plan = client.prepare_login(&args.name, args.profile.as_ref()).await?;
    let file = Path::new(&plan.file);
    let before = fs::read(file).ok();
    match &args.from {
        Some(from) => {
            if let Err(refusal) = take_over(from, file) {
                drop_empty(file);
                return Err(with_ways(refusal, &args, file).into());
            }
        }
        None if !app.ui.has_person() => {
            return Err(Refusal::invalid("a login is done on a terminal")
                .hint(format!("ostler provider login {} --from DIR", args.name), "takes over one that exists")
                .into());
        }
        None => {
            let mut program = Command::new(&plan.program);
            program.args(&plan.args).args(&args.args).envs(&plan.environment);
            // It would take a key for the login that is wanted.
            for variable in CallerKeys::USUAL {
                program.env_remove(variable);
            }
            let ended = program.status();
            let ended =
                ended.map_err(|error| missing(&args.name, &format!("it cannot be started: {error}")))?;
            if !ended.success() {
                // It may have left the cursor behind a question.
                app.ui.remark(&Line::new());
                return Err(missing(&args.name, &format!("its login ended with {ended}")).into());
            }
        }
    }
    let known = client.providers().await?.into_iter().find(|status| status.name == args.name);
    let is_logged_in = |status: &Status| match &args.profile {
        None => status.is_logged_in,
        Some(profile) => {
            status.profiles.iter().any(|account| account.name == profile.as_str() && account.is_logged_in)
        }
    };
    match known {
        Some(status) if is_logged_in(&status) => {
            if app.ui.is_json() {
                app.ui.json(&status)?;
            } else if !app.ui.is_quiet() {
                let test = format!("ostler provider test {}", args.name);
                let (who, used, next) = match &args.profile {
                    None => (args.name.clone(), use_of(&status), test),
                    Some(profile) => (
                        format!("{} of {}", profile, args.name),
                        "sessions of that profile use it".to_owned(),
                        format!("ostler run -p {} --auth-profile {profile} \"…\"", args.name),
                    ),
                };
                let line = Line::toned(Tone::Good, "✓").plain(format!(" {who} is logged in"));
                app.ui.data(&line.faint(format!("   {used}")))?;
                app.ui.remark(&Line::of("  ").with(Tone::Accent, next));
            }
            Ok(exit_code::OK)
        }
        _ => {
            let refusal = match &args.from {
                Some(from) => {
                    put_back(file, before)?;
                    let why = format!("{} cannot be read as a login of it", source(from, file).display());
                    with_ways(logged_out(&args.name, &why), &args, file)
                }
                None => missing(&args.name, &format!("{} has no login in it", plan.file)),
            };
            Err(refusal.into())
        }
    }
}

/// Who uses the login: a key or an address of the model that is configured comes before it.
fn use_of(status: &Status) -> String {
    match (&status.base_url, status.key.as_str()) {
        (_, key) if key.starts_with(ITS_LOGIN) => "sessions use it".to_owned(),
        (Some(url), _) => format!("but sessions do not use it: they call {url}, as configured"),
        (None, key) => format!("but sessions use {key}, as configured"),
    }
}

/// What was no login does not take the place of one.
fn put_back(file: &Path, before: Option<Vec<u8>>) -> Result<(), Refusal> {
    match before {
        Some(login) => write(file, &login),
        None => fs::remove_file(file).inspect(|()| drop_empty(file)),
    }
    .map_err(|error| Refusal::internal(format!("{} cannot be put back: {error}", file.display())))
}

/// The directories that were made for a login that did not come. What is in use has something in it, and stays.
fn drop_empty(file: &Path) {
    for dir in file.ancestors().skip(1).take(2) {
        let _ = fs::remove_dir(dir);
    }
}

/// The file that is meant: a directory has it by its own name.
fn source(from: &Path, file: &Path) -> PathBuf {
    if from.is_dir() { from.join(file.file_name().unwrap_or_default()) } else { from.to_owned() }
}

fn missing(name: &str, why: &str) -> Refusal {
    logged_out(name, why).hint(format!("ostler provider login {name}"), "tries again")
}

fn logged_out(name: &str, why: &str) -> Refusal {
    Refusal::new(Reason::ProviderAuth, format!("{name} is not logged in")).because(why)
}

/// What else may be done where a login cannot be taken over.
fn with_ways(refusal: Refusal, args: &LoginArgs, file: &Path) -> Refusal {
    let profile = args.profile.as_ref().map(|profile| format!(" --profile {profile}")).unwrap_or_default();
    let command = format!("ostler provider login {}{profile}", args.name);
    let looked_for = file.file_name().unwrap_or_default().to_string_lossy();
    refusal
        .hint(format!("{command} --from PATH"), format!("takes over {looked_for}, or the one in a directory"))
        .hint(command, "runs its own login, on a terminal")
}

/// Copies the one file, private from its first byte, whole or not at all.
fn take_over(from: &Path, file: &Path) -> Result<(), Refusal> {
    let from = source(from, file);
    fs::read(&from).and_then(|login| write(file, &login)).map_err(|error| {
        Refusal::new(Reason::ProviderAuth, format!("the login cannot be taken over: {error}"))
            .because(format!("it was looked for in {}", from.display()))
    })
}

fn write(file: &Path, login: &[u8]) -> io::Result<()> {
    let half = file.with_extension("half");
    let mut copy = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&half)?;
    copy.write_all(login)?;
    copy.sync_all()?;
    fs::rename(half, file)
}
