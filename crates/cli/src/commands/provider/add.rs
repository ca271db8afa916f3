//! `ostler provider add`: an agent that speaks ACP, as configuration.

use clap::Args;
use ostler_domain::{Reason, Refusal, provider::ACP_PREFIX};

use crate::{
    app::App,
    commands::config,
    exit_code,
    failure::Failure,
    input,
    output::{Line, Tone},
    parse,
};

#[derive(Debug, Args)]
pub(super) struct AddArgs {
    /// acp:NAME
    name: String,
    /// Its program: a path, or a name on the search path [default: NAME]
    #[arg(long, value_name = "PROGRAM")]
    program: Option<String>,
    /// Where its model is called
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// The variable that has its key
    #[arg(long, value_name = "VARIABLE")]
    api_key_env: Option<String>,
    /// The file that has its key
    #[arg(long, value_name = "PATH", conflicts_with = "api_key_env")]
    api_key_file: Option<String>,
    /// The command that prints its key
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["api_key_env", "api_key_file"])]
    api_key_command: Option<String>,
    /// The model of sessions that name none
    #[arg(short, long)]
    model: Option<String>,
    /// Set an environment variable of the agent; {base_url} and {key} become the model gateway's
    #[arg(long, value_parser = parse::variable, value_name = "NAME=VALUE")]
    env: Vec<(String, String)>,
    /// Put this in the place of what is configured for it already
    #[arg(long)]
    replace: bool,
    /// Its arguments; {base_url} and {key} likewise
    #[arg(last = true)]
    args: Vec<String>,
}

pub(super) async fn run(app: &App, args: AddArgs) -> Result<u8, Failure> {
    let own = args.name.strip_prefix(ACP_PREFIX).unwrap_or_default();
    if own.is_empty() || !own.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)) {
        return Err(Refusal::invalid(format!("\"{}\" is no name of such a provider", args.name))
            .because(
                "agents that speak the Agent Client Protocol are added, as acp:NAME; the others are built in",
            )
            .hint("ostler provider ls", "lists them")
            .into());
    }
    if !args.replace && config::has_provider(app, &args.name)? {
        let question = format!("{} is configured already. Put this in its place?", args.name);
        if !input::agrees(&app.ui, &question) {
            return Err(Refusal::new(Reason::WrongState, format!("{} is configured already", args.name))
                .because("nothing of what was said about it before would be left")
                .hint(format!("ostler config get providers.{}", args.name), "says what there is")
                .hint(format!("ostler provider add {} --replace …", args.name), "puts this in its place")
                .into());
        }
    }
    let list = serde_json::to_string(&args.args).unwrap_or_default();
    let mut settings = Vec::new();
    settings.extend(args.program.map(|program| ("program".to_owned(), program)));
    settings.extend((!args.args.is_empty()).then(|| ("args".to_owned(), list)));
    settings.extend(args.base_url.map(|url| ("base_url".to_owned(), url)));
    settings.extend(args.api_key_env.map(|variable| ("api_key_env".to_owned(), variable)));
    settings.extend(args.api_key_file.map(|path| ("api_key_file".to_owned(), path)));
    settings.extend(args.api_key_command.map(|command| ("api_key_command".to_owned(), command)));
    settings.extend(args.model.map(|model| ("model".to_owned(), model)));
    settings.extend(args.env.into_iter().map(|(name, value)| (format!("env.{name}"), value)));
    if settings.is_empty() {
        settings.push(("program".to_owned(), own.to_owned()));
    }
    config::set_provider(app, &args.name, settings.into_iter())?;
    if !app.ui.is_quiet() {
        let test = format!("ostler provider test {}", args.name);
        app.ui.remark(&Line::of(format!("{} is configured   ", args.name)).with(Tone::Accent, test));
        if let Some(problem) = problem(app, &args.name).await {
            app.ui.remark(&Line::toned(Tone::Warn, "but it cannot be started yet: ").plain(problem));
        }
    }
    Ok(exit_code::OK)
}

/// What keeps it from being started. That is found where it would be: the daemon's search path is not the caller's.
async fn problem(app: &App, name: &str) -> Option<String> {
    let all = app.running_client().await.ok()?.providers().await.ok()?;
    all.into_iter().find(|status| status.name == name)?.problem
}
