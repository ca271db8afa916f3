//! The commands: one file each, with its arguments and what it does.

mod agent;
mod answer;
mod api;
mod approval;
mod attach;
mod attack;
mod audit;
mod blame;
mod campaign;
mod chain;
mod chosen;
mod columns;
mod completion;
mod config;
mod conversation;
pub(crate) mod cost;
mod daemon;
mod daemon_logs;
mod damage;
mod db;
mod demo;
mod diff;
mod doctor;
mod done;
mod du;
pub(crate) mod ended;
mod events;
mod exec;
mod export;
mod fork;
mod halt;
mod handoff;
mod hub;
mod hub_nodes;
mod import;
mod init;
mod inside;
mod interrupt;
mod kill;
mod label;
mod logs;
mod lost;
mod ls;
mod ls_nodes;
pub(crate) mod man;
mod many;
mod message;
mod metrics;
pub(crate) mod mission;
mod model;
mod native;
mod node;
mod notify;
pub(crate) mod open;
mod pause;
mod policy;
mod price;
mod provider;
mod restart;
mod resume;
mod retention;
mod rewind;
mod run;
mod sandbox;
mod seance;
mod search;
mod send;
pub(crate) mod service;
mod share;
mod show;
mod sql;
mod stop;
mod tape;
mod ticket;
mod token;
mod top;
mod trace;
mod transcript;
pub(crate) mod trial;
mod usage;
pub(crate) mod userns;
mod version;
mod wait;
mod worktree;

pub(crate) use columns::{columns, empty_table};
pub(crate) use config::provider_settings;
pub(crate) use daemon::{is_gone, start_time};

use clap::{Args, Subcommand};
use ostler_client::SessionSocket;
use ostler_domain::Refusal;

use crate::{app::App, failure::Failure, nodes, output::Format};

#[derive(Debug, Subcommand)]
// The flags of sixty commands are not made to read those of one.
#[command(defer = true)]
pub(crate) enum Command {
    #[command(flatten)]
    Session(SessionCommand),
    /// The live screen: who needs you, what agents do now, and keys that answer them
    Top(top::TopArgs),
    /// Let agents do what they ask for
    Allow(answer::AllowArgs),
    /// Do not let agents do what they ask for
    Deny(answer::DenyArgs),
    /// What agents ask leave for: ls, show, allow, deny; -i answers one by one
    #[command(alias = "approvals")]
    Approval(approval::ApprovalArgs),
    /// What was said to agents and waits to be delivered: ls, show, edit, rm, move, clear
    #[command(alias = "queue")]
    Message(message::MessageArgs),
    /// Five scripted agents at work, the daemon killed, nothing lost: no key, no network
    Demo(demo::DemoArgs),
    /// The first command: what is installed, whether the sandbox works, this directory as a campaign
    Init(init::InitArgs),
    /// Look at this machine: what works, what does not, and what cures it
    Doctor(doctor::DoctorArgs),
    /// Kill all agents at once and let none start; --freeze, --release
    Halt(halt::HaltArgs),
    /// What can be done with a session; each also without the word
    #[command(name = "session", alias = "sessions")]
    SessionNoun(SessionNoun),
    /// Directories that agents may work in
    Campaign(campaign::CampaignArgs),
    /// Named identities in campaigns: add, ls, show, set, rm
    Agent(agent::AgentArgs),
    /// Dialogues and their keys: ls, show, open, set, label, reset, fork, archive, reopen, rm, prune
    Conversation(conversation::ConversationArgs),
    /// Lives joined by handoff, crash and restart: show, seance
    Chain(chain::ChainArgs),
    /// Ask what the sessions of a chain knew; answered from the record, with citations
    Seance(seance::SeanceArgs),
    /// Work to be done and what came of it: add, ls, show, set, start, done, fail, cancel, reopen, archive, link, …
    Ticket(ticket::TicketArgs),
    /// Teams of agents with one objective: start, plan, ls, show, graph, logs, pause, resume, cancel, retry, add, rm, …
    Mission(mission::MissionArgs),
    /// What was said, whole: show, export, verify, append, image
    Transcript(transcript::TranscriptArgs),
    /// Write what is recorded as files of other programs
    Export(export::ExportArgs),
    /// How long what was said is kept: plan, run, hold, restore, ls
    Retention(retention::RetentionArgs),
    /// Git work trees that sessions have of their own: ls, gc
    Worktree(worktree::WorktreeArgs),
    /// What config.toml says: show, get, set, unset, edit, path
    Config(config::ConfigArgs),
    /// Agent programs: ls, show, test, login, add
    Provider(provider::ProviderArgs),
    /// What is in force, and why a decision falls: show, test
    Policy(policy::PolicyArgs),
    /// What confines agents: show, check, trace, suggest, allow-userns
    Sandbox(sandbox::SandboxArgs),
    /// What was used, and what it costs; --by day, model, provider, campaign, agent, session, ticket, chain, mission
    Cost(cost::CostArgs),
    /// What models cost: ls, set, update
    Price(price::PriceArgs),
    /// Where tokens are counted: audit
    Usage(usage::UsageArgs),
    /// Bring in what Claude Code, Codex and OpenClaw did before, or do outside of Ostler: claude, codex, openclaw, all
    Import(import::ImportArgs),
    /// The log itself, for programs; -f follows
    Events(events::EventsArgs),
    /// Short for `events -f`
    #[command(hide = true)]
    Watch(events::EventsArgs),
    /// Short for `ls -a`
    #[command(hide = true)]
    Find(ls::LsArgs),
    /// Run a command in a campaign's sandbox
    Exec(exec::ExecArgs),
    /// The daemon: start, stop, restart, status, logs, run
    Daemon(daemon::DaemonArgs),
    /// The daemon as a service of systemd: install, uninstall, status
    Service(service::ServiceArgs),
    /// Other machines, reached by SSH: add, ls, show, drain, rm
    Node(node::NodeArgs),
    /// The store: check, reindex, backup, vacuum
    Db(db::DbArgs),
    /// The log of who was let to do what: verify
    Audit(audit::AuditArgs),
    /// What takes the space on the disk: the record, tapes, homes
    Du(du::DuArgs),
    /// What is measured, in the text format of Prometheus
    Metrics(metrics::MetricsArgs),
    /// The dashboard, in a browser
    Open(open::OpenArgs),
    /// Who is told when nobody looks: phone, desktop, terminal, webhook, hook
    Notify(notify::NotifyArgs),
    /// A part of this machine for somebody else, for a while; ls, rm
    Share(share::ShareArgs),
    /// Several machines' sessions in one place: run, node, viewer
    Hub(hub::HubArgs),
    /// The protocol, for programs of your own: proto, descriptor, openapi, token
    Api(api::ApiArgs),
    /// Say that a part of the work begins, ends or fails
    Step(inside::StepArgs),
    /// Say how things stand
    Note(inside::NoteArgs),
    /// Who made a line of a file what it is: session, turn, prompt, cost
    Blame(blame::BlameArgs),
    /// Say what came out of the work
    Output(inside::OutputArgs),
    /// Start a helper with a task of its own
    Spawn(inside::SpawnArgs),
    /// The same as tools of MCP on standard streams, for an agent's model
    Mcp(inside::McpArgs),
    /// Full text over what was said and done
    Search(search::SearchArgs),
    /// Questions in SQL over the record's views; -o table, json, jsonl, csv
    Sql(sql::SqlArgs),
    /// Print the script that lets a shell complete names and ids
    Completion(completion::CompletionArgs),
    /// Read the manual of a command, or write all pages
    Man(man::ManArgs),
    /// Print the version
    Version(version::VersionArgs),
}

/// What is done when nothing is said: who runs, and who needs you; on a terminal as the live screen.
impl Default for Command {
    fn default() -> Self {
        Command::Session(SessionCommand::Ls(ls::LsArgs::default()))
    }
}

impl Command {
    /// Whether it only asks a daemon, wherever that is. Others look at this machine's files and programs.
    pub(crate) fn is_of_any_machine(&self) -> bool {
        match self {
            Command::Session(_)
            | Command::SessionNoun(_)
            | Command::Top(_)
            | Command::Allow(_)
            | Command::Deny(_)
            | Command::Approval(_)
            | Command::Message(_)
            | Command::Halt(_)
            | Command::Campaign(_)
            | Command::Chain(_)
            | Command::Seance(_)
            | Command::Agent(_)
            | Command::Conversation(_)
            | Command::Ticket(_)
            | Command::Mission(_)
            | Command::Transcript(_)
            | Command::Retention(_)
            | Command::Worktree(_)
            | Command::Export(_)
            | Command::Policy(_)
            | Command::Cost(_)
            | Command::Usage(_)
            | Command::Events(_)
            | Command::Watch(_)
            | Command::Find(_)
            | Command::Metrics(_)
            | Command::Audit(_)
            | Command::Search(_)
            | Command::Sql(_) => true,
            Command::Provider(args) => args.is_of_any_machine(),
            Command::Node(args) => args.is_of_any_machine(),
            Command::Demo(_)
            | Command::Init(_)
            | Command::Doctor(_)
            | Command::Config(_)
            | Command::Sandbox(_)
            | Command::Price(_)
            | Command::Exec(_)
            | Command::Blame(_)
            | Command::Daemon(_)
            | Command::Service(_)
            | Command::Db(_)
            | Command::Import(_)
            | Command::Du(_)
            | Command::Open(_)
            | Command::Notify(_)
            | Command::Hub(_)
            | Command::Share(_)
            | Command::Api(_)
            | Command::Step(_)
            | Command::Note(_)
            | Command::Output(_)
            | Command::Spawn(_)
            | Command::Mcp(_)
            | Command::Completion(_)
            | Command::Man(_)
            | Command::Version(_) => false,
        }
    }
}

/// Who is told when nobody looks. Where the file cannot be understood, the daemon says so; here nobody is told.
pub(crate) fn channels(app: &App) -> Vec<ostler_domain::notice::Channel> {
    let config = config::current(app).unwrap_or_default();
    config.channels().unwrap_or_default()
}

#[derive(Debug, Args)]
pub(crate) struct SessionNoun {
    #[command(subcommand)]
    verb: NounVerb,
}

#[derive(Debug, Subcommand)]
enum NounVerb {
    #[command(flatten)]
    Session(SessionCommand),
    /// Short for `ls -a`
    #[command(hide = true)]
    Find(ls::LsArgs),
    /// Short for `chain show`
    #[command(hide = true)]
    Chain(chain::ChainShowArgs),
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum SessionCommand {
    /// Start a session; stream the turn, print the answer
    #[command(alias = "create")]
    Run(run::RunArgs),
    /// Sessions, those that need you first
    #[command(visible_alias = "ps", alias = "list")]
    Ls(ls::LsArgs),
    /// Everything about one thing, by any id or name; why it ended
    #[command(alias = "get")]
    Show(show::ShowArgs),
    /// What was done, readable; -f follows
    Logs(logs::LogsArgs),
    /// Live view with an input line; answers approvals. Ctrl-C leaves, the agent goes on
    Attach(attach::AttachArgs),
    /// Say something to a conversation; wakes it if it sleeps
    Send(send::SendArgs),
    /// End in an orderly way; --turn only ends the turn, --now kills
    Stop(stop::StopArgs),
    /// End at once
    Kill(kill::KillArgs),
    /// End the turn, not the session
    Interrupt(interrupt::InterruptArgs),
    /// Freeze the agent where it stands
    Pause(pause::PauseArgs),
    /// Go on: raises what held it, tries a failed turn again, starts anew what has ended
    Resume(resume::ResumeArgs),
    /// Replace the process; the conversation goes on
    Restart(restart::RestartArgs),
    /// Go on with another model
    Model(model::ModelArgs),
    /// Begin a new conversation as a copy of another one, which stays as it is
    Fork(fork::ForkArgs),
    /// End it and have another session go on with its work, told what is known
    Handoff(handoff::HandoffArgs),
    /// Say that its work is done: it ends in an orderly way. An agent says it of itself
    Done(done::DoneArgs),
    /// Give it a label; an empty one takes it away
    Label(label::LabelArgs),
    /// What it changed, or what a turn did
    Diff(diff::DiffArgs),
    /// Put files back to how a turn left them
    Rewind(rewind::RewindArgs),
    /// What crossed the agent's border, byte for byte
    Tape(tape::TapeArgs),
    /// Wait for the end; the exit code says how it ended
    Wait(wait::WaitArgs),
}

/// Runs a command and returns its exit code. `verb` is what was typed first.
pub(crate) fn run(app: &App, typed: Option<Command>, verb: &str) -> Result<u8, Failure> {
    let is_plain = typed.is_none();
    let command = typed.unwrap_or_default();
    if let Command::Version(args) = command {
        return version::run(app, &args);
    }
    if app.ui.format() == Some(Format::Csv) && !matches!(command, Command::Sql(_)) {
        return Err(Failure::usage("-o csv is for ostler sql; others have -o json and -o jsonl"));
    }
    if let Some(socket) = SessionSocket::of_this_process() {
        return inside::run(app, &socket, command, verb);
    }
    if let Some(node) = app.node().filter(|_| !command.is_of_any_machine()) {
        let program = nodes::program_there(&app.home()?, node).unwrap_or_else(|| "HOST ostler".to_owned());
        return Err(Refusal::invalid(format!("ostler {verb} works on this machine only"))
            .hint(format!("ssh -t {program} {verb} …"), "does it over there")
            .into());
    }
    match command {
        Command::Completion(args) => completion::run(app, &args),
        Command::Man(args) => man::run(app, &args),
        Command::Demo(args) => crate::demo::run(app, args.keep, args.dashboard),
        Command::Price(args) => price::run(app, args),
        Command::Config(args) => config::run(app, args),
        Command::Hub(args) => hub::run(app, args),
        _ if is_plain => with_runtime(app.unless_it_hangs(top::or_list(app))),
        other => with_runtime(app.unless_it_hangs(ask_the_daemon(app, other))),
    }
}

async fn ask_the_daemon(app: &App, command: Command) -> Result<u8, Failure> {
    match command {
        Command::Session(verb) | Command::SessionNoun(SessionNoun { verb: NounVerb::Session(verb) }) => {
            session(app, verb).await
        }
        Command::SessionNoun(SessionNoun { verb: NounVerb::Find(args) }) => ls::run(app, args.of_all()).await,
        Command::SessionNoun(SessionNoun { verb: NounVerb::Chain(args) }) => chain::of(app, args).await,
        Command::Top(_) => top::run(app).await,
        Command::Allow(args) => answer::allow(app, args).await,
        Command::Deny(args) => answer::deny(app, args).await,
        Command::Approval(args) => approval::run(app, args).await,
        Command::Message(args) => message::run(app, args).await,
        Command::Policy(args) => policy::run(app, args).await,
        Command::Doctor(args) => doctor::run(app, args).await,
        Command::Halt(args) => halt::run(app, args).await,
        Command::Campaign(args) => campaign::run(app, args).await,
        Command::Agent(args) => agent::run(app, args).await,
        Command::Chain(args) => chain::run(app, args).await,
        Command::Seance(args) => seance::run(app, args).await,
        Command::Conversation(args) => conversation::run(app, args).await,
        Command::Ticket(args) => ticket::run(app, args).await,
        Command::Mission(args) => mission::run(app, args).await,
        Command::Transcript(args) => transcript::run(app, args).await,
        Command::Export(args) => export::run(app, args).await,
        Command::Retention(args) => retention::run(app, args).await,
        Command::Worktree(args) => worktree::run(app, args).await,
        Command::Init(args) => init::run(app, args).await,
        Command::Config(args) => config::run(app, args),
        Command::Provider(args) => provider::run(app, args).await,
        Command::Sandbox(args) => sandbox::run(app, args).await,
        Command::Cost(args) => cost::run(app, args).await,
        Command::Usage(args) => usage::run(app, args).await,
        Command::Import(args) => import::run(app, args).await,
        Command::Events(args) => events::run(app, args).await,
        Command::Watch(args) => events::run(app, args.following()).await,
        Command::Find(args) => ls::run(app, args.of_all()).await,
        Command::Exec(args) => exec::run(app, args).await,
        Command::Daemon(args) => daemon::run(app, args).await,
        Command::Db(args) => db::run(app, args).await,
        Command::Audit(args) => audit::run(app, args).await,
        Command::Du(args) => du::run(app, args).await,
        Command::Metrics(args) => metrics::run(app, args).await,
        Command::Open(args) => open::run(app, args).await,
        Command::Notify(args) => notify::run(app, args).await,
        Command::Share(args) => share::run(app, args).await,
        Command::Hub(args) => hub::run(app, args),
        Command::Api(args) => api::run(app, args).await,
        Command::Service(args) => service::run(app, args).await,
        Command::Node(args) => node::run(app, args).await,
        Command::Blame(args) => blame::run(app, args).await,
        Command::Search(args) => search::run(app, args).await,
        Command::Sql(args) => sql::run(app, args).await,
        Command::Version(args) => version::run(app, &args),
        Command::Step(_) => Err(inside::outside("step")),
        Command::Note(_) => Err(inside::outside("note")),
        Command::Output(_) => Err(inside::outside("output")),
        Command::Spawn(_) => Err(inside::outside("spawn")),
        Command::Mcp(_) => Err(inside::outside("mcp")),
        Command::Price(args) => price::run(app, args),
        Command::Completion(args) => completion::run(app, &args),
        Command::Man(args) => man::run(app, &args),
        Command::Demo(_) => Err(Refusal::internal("the demo has a runtime of its own").into()),
    }
}

async fn session(app: &App, verb: SessionCommand) -> Result<u8, Failure> {
    match verb {
        SessionCommand::Run(args) => run::run(app, args).await,
        SessionCommand::Ls(args) => ls::run(app, args).await,
        SessionCommand::Show(args) => show::run(app, args).await,
        SessionCommand::Logs(args) => logs::run(app, args).await,
        SessionCommand::Attach(args) => attach::run(app, args).await,
        SessionCommand::Send(args) => send::run(app, args).await,
        SessionCommand::Stop(args) => stop::run(app, args).await,
        SessionCommand::Kill(args) => kill::run(app, args).await,
        SessionCommand::Interrupt(args) => interrupt::run(app, args).await,
        SessionCommand::Pause(args) => pause::run(app, args).await,
        SessionCommand::Resume(args) => resume::run(app, args).await,
        SessionCommand::Restart(args) => restart::run(app, args).await,
        SessionCommand::Model(args) => model::run(app, args).await,
        SessionCommand::Fork(args) => fork::run(app, args).await,
        SessionCommand::Handoff(args) => handoff::run(app, args).await,
        SessionCommand::Done(args) => done::run(app, args).await,
        SessionCommand::Label(args) => label::run(app, args).await,
        SessionCommand::Diff(args) => diff::run(app, args).await,
        SessionCommand::Rewind(args) => rewind::run(app, args).await,
        SessionCommand::Tape(args) => tape::run(app, args).await,
        SessionCommand::Wait(args) => wait::run(app, args).await,
    }
}

/// Runs what waits for the daemon, on this thread.
pub(crate) fn with_runtime<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| Refusal::internal(format!("the runtime cannot be built: {error}")))?;
    runtime.block_on(work)
}
