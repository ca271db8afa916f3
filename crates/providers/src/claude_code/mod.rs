//! Claude Code: `claude -p` with stream-json both ways and the control protocol. Measured with 2.1.325.

mod dialogue;
mod login;

pub(crate) use dialogue::tools;

use std::collections::BTreeMap;

use ostler_domain::{
    gateway::KeyScheme,
    session::{Approve, Begin},
};
use ostler_tape::frame::{Rung, RungAction};
use serde_json::json;

use crate::{
    Capabilities, CommandSpec, Dialogue, DialogueState, Launch, LaunchError, LoginSpec, Memory,
    NativeCommand, ProgramSpec, Provider, Say, Terms, UnknownState, UsageSource, Version, mcp,
};

pub struct ClaudeCode;

/// The oldest version that was seen to speak the protocol.
const LEAST: Version = Version(2, 1, 197);
/// Where the program itself lies in npm's packages: the launcher beside it needs a Node, the program does not.
const NATIVES: [&str; 4] = [
    "@anthropic-ai/claude-code-linux-x64/claude",
    "@anthropic-ai/claude-code-linux-arm64/claude",
    "@anthropic-ai/claude-code-linux-x64-musl/claude",
    "@anthropic-ai/claude-code-linux-arm64-musl/claude",
];
/// All of its state, below the agent's home.
const STATE_DIR: &str = ".claude";
/// Settings of a session, and the option that each becomes.
const SETTINGS: [(&str, &str); 4] = [
    ("effort", "--effort"),
    ("max_turns", "--max-turns"),
    ("tools", "--tools"),
    ("disallowed_tools", "--disallowedTools"),
];
/// How much its model can be told to think.
const EFFORTS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];
/// No telemetry, no update of itself, also while it logs in.
const QUIET: [(&str, &str); 3] =
    [("DISABLE_TELEMETRY", "1"), ("DISABLE_AUTOUPDATER", "1"), ("DISABLE_ERROR_REPORTING", "1")];
/// Nothing that is not the model; and the events that say when it is idle.
const ENVIRONMENT: [(&str, &str); 3] = [
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", "1"),
    ("CLAUDE_CODE_STARTUP_FAILURE_RESULTS", "1"),
];
/// How long each step of the way down may take: measured at 0.3 s, 1.6 s with a tool that ignores SIGTERM.
const RUNG_MS: u64 = 5_000;
const SIGTERM: i32 = 15;

impl Provider for ClaudeCode {
    fn name(&self) -> &str {
        "claude-code"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            resume: true,
            fork: true,
            steer: true,
            interrupt: true,
            approvals: true,
            hears_why: true,
            partial_output: true,
            model_change: true,
            usage: UsageSource::Report,
        }
    }

    fn program(&self) -> Option<ProgramSpec> {
        Some(ProgramSpec {
            name: "claude".to_owned(),
            natives: NATIVES.map(Into::into).to_vec(),
            least: Some(LEAST),
            install: Some("npm install -g @anthropic-ai/claude-code".to_owned()),
        })
    }

    fn default_base_url(&self) -> Option<&str> {
        Some("https://api.anthropic.com")
    }

    fn models_path(&self) -> Option<&str> {
        Some("/v1/models")
    }

    fn login(&self) -> Option<&LoginSpec> {
        Some(&login::LOGIN)
    }

    fn key_variable(&self) -> Option<&str> {
        Some("ANTHROPIC_API_KEY")
    }

    fn key_scheme(&self) -> Option<KeyScheme> {
        Some(KeyScheme::ApiKey)
    }

    fn unknown_setting<'a>(&self, config: &'a BTreeMap<String, String>) -> Option<&'a str> {
        config.keys().map(String::as_str).find(|key| !SETTINGS.iter().any(|(known, _)| known == key))
    }

    fn can_go_without_tools(&self) -> bool {
        true
    }

    fn thinking(&self, level: &str) -> Option<(&'static str, String)> {
        let effort = match level {
            "minimal" => "low",
            level => EFFORTS.iter().find(|known| **known == level)?,
        };
        Some(("effort", effort.to_owned()))
    }

    fn command(&self, launch: &Launch) -> Result<CommandSpec, LaunchError> {
        if let Some(key) = self.unknown_setting(&launch.terms.config) {
            return Err(LaunchError::UnknownSetting { key: key.to_owned() });
        }
        let program = launch.program.as_ref().ok_or(LaunchError::NoProgram)?.path.clone();
        Ok(CommandSpec {
            program,
            args: arguments(launch),
            env: environment(launch),
            ..CommandSpec::default()
        })
    }

    fn opening(&self, terms: &Terms) -> Vec<Say> {
        dialogue::opening(own_id(terms), terms)
    }

    fn dialogue(&self, state: Option<&DialogueState>) -> Result<Box<dyn Dialogue>, UnknownState> {
        Ok(Box::new(dialogue::ClaudeDialogue::restore(state)?))
    }

    /// The daemon says `end_session` first. Alone, an end of input lets an idle agent go and a busy one finish its turn,
    /// so it is not waited for longer than the others.
    fn has_plans(&self) -> bool {
        true
    }

    fn stop_ladder(&self) -> Vec<Rung> {
        [RungAction::CloseInput, RungAction::Signal(SIGTERM), RungAction::Kill]
            .map(|action| Rung { action, wait_ms: RUNG_MS })
            .to_vec()
    }

    /// Without a project's settings it does not read its instructions either.
    fn instruction_files(&self) -> &[&str] {
        &["CLAUDE.md", "AGENTS.md"]
    }

    fn native(&self, provider_id: &str, home: &std::path::Path) -> Option<NativeCommand> {
        Some(NativeCommand {
            env: vec![("CLAUDE_CONFIG_DIR".to_owned(), home.join(STATE_DIR).to_string_lossy().into_owned())],
            words: ["claude", "--resume", provider_id].map(str::to_owned).to_vec(),
        })
    }

    fn memory(&self, provider_id: &str) -> Option<Memory> {
        let below = std::path::Path::new(STATE_DIR).join("projects");
        Some(Memory { below, name_ends: format!("{provider_id}.jsonl") })
    }
}

/// The id that the dialogue will have: ours where it is new, the provider's where it goes on.
fn own_id(terms: &Terms) -> String {
    match &terms.begin {
        Begin::Resume { provider_id, .. } => provider_id.clone(),
        Begin::Fresh | Begin::Fork { .. } | Begin::Reseed { .. } => dialogue::uuid(terms.session.bits()),
    }
}

fn arguments(launch: &Launch) -> Vec<String> {
    let terms = &launch.terms;
    let mut args: Vec<String> = [
        "-p",
        "--output-format",
        "stream-json",
        "--input-format",
        "stream-json",
        "--verbose",
        "--include-partial-messages",
        "--forward-subagent-text",
        // What a project says about hooks and servers would run code that nobody has looked at.
        "--setting-sources",
        "user",
        "--strict-mcp-config",
    ]
    .map(str::to_owned)
    .to_vec();
    let mut add = |option: &str, value: &str| args.extend([option.to_owned(), value.to_owned()]);
    match &terms.begin {
        Begin::Fresh | Begin::Reseed { .. } => add("--session-id", &own_id(terms)),
        Begin::Resume { provider_id, .. } => add("--resume", provider_id),
        Begin::Fork { provider_id, .. } => {
            add("--resume", provider_id);
            add("--session-id", &own_id(terms));
        }
    }
    if let Some(model) = &terms.model {
        add("--model", model);
    }
    if let Some(ostler) = &terms.mcp {
        let server = json!({"type": "stdio", "command": ostler, "args": [mcp::ARG]});
        add("--mcp-config", &json!({"mcpServers": {mcp::NAME: server}}).to_string());
        // What a session may do of itself is not a person's to allow, unless that is wanted of everything.
        if terms.approve != Approve::Ask {
            add("--allowedTools", &format!("mcp__{}", mcp::NAME));
        }
    }
    if terms.no_tools {
        add("--tools", "");
    }
    add("--permission-mode", if asks(launch) { "default" } else { "bypassPermissions" });
    // Also who needs no leave may have a question: without somebody to put it to, its model has no tool to ask one.
    add("--permission-prompt-tool", "stdio");
    if let Some(instructions) = &terms.instructions {
        add("--append-system-prompt", instructions);
    }
    for (key, option) in SETTINGS {
        if let Some(value) = terms.config.get(key).filter(|_| !(terms.no_tools && key == "tools")) {
            add(option, value);
        }
    }
    if matches!(terms.begin, Begin::Fork { .. }) {
        args.push("--fork-session".to_owned());
    }
    args.extend(launch.settings.args.iter().cloned());
    args
}

/// Whether it asks before it acts. Only a sandbox makes it safe not to.
fn asks(launch: &Launch) -> bool {
    !(launch.is_confined && launch.terms.approve == Approve::All)
}

fn environment(launch: &Launch) -> Vec<(String, String)> {
    let mut env: Vec<(String, String)> = QUIET
        .iter()
        .chain(&ENVIRONMENT)
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let mut add = |name: &str, value: String| env.push((name.to_owned(), value));
    add("CLAUDE_CONFIG_DIR", launch.home.join(STATE_DIR).to_string_lossy().into_owned());
    if launch.is_confined {
        // Inside, the program may look like root's, for which it refuses to go without asking unless told this.
        add("IS_SANDBOX", "1".to_owned());
        add("CLAUDE_CODE_TMPDIR", "/tmp".to_owned());
    }
    if let Some(access) = &launch.model_access {
        add("ANTHROPIC_BASE_URL", access.base_url.clone());
        add("ANTHROPIC_API_KEY", access.key.clone());
    }
    env
}

#[cfg(test)]
mod tests {
    use ostler_domain::{SessionId, Time, provider::Settings};

    use super::*;
    use crate::{FoundProgram, ModelAccess};

    fn launch(begin: Begin, approve: Approve) -> Launch {
        Launch {
            terms: Terms {
                session: SessionId::new(Time::from_micros(1_763_000_000_000_000), 7),
                working_dir: "/srv/shop".into(),
                model: Some("sonnet".to_owned()),
                begin,
                approve,
                instructions: None,
                mcp: Some("/run/ostler/ostler".into()),
                config: [("effort".to_owned(), "high".to_owned())].into(),
                no_tools: false,
            },
            ostler: "/run/ostler/ostler".into(),
            program: Some(FoundProgram {
                path: "/opt/claude".into(),
                version: None,
                read_only: vec![],
                search: vec![],
            }),
            home: "/home/agent".into(),
            settings: Settings { args: vec!["--debug".to_owned()], ..Settings::default() },
            model_access: Some(ModelAccess {
                base_url: "http://127.0.0.1:3128".to_owned(),
                key: "no-secret".to_owned(),
            }),
            is_confined: true,
        }
    }

    fn words(begin: Begin, approve: Approve) -> String {
        ClaudeCode.command(&launch(begin, approve)).unwrap().args.join(" ")
    }

    #[test]
    fn what_the_project_says_is_added_to_what_its_model_is_told() {
        let mut launch = launch(Begin::Fresh, Approve::Ask);
        launch.terms.instructions = Some("Use tabs.".to_owned());
        let args = ClaudeCode.command(&launch).unwrap().args;
        let at = args.iter().position(|arg| arg == "--append-system-prompt").unwrap();
        assert_eq!(args[at + 1], "Use tabs.");
    }

    #[test]
    fn a_dialogue_begins_goes_on_or_branches() {
        let id = || "5e55".to_owned();
        let fresh = words(Begin::Fresh, Approve::Ask);
        assert!(
            fresh.contains("--session-id 019a7afd-1e00-4000-8000-000000000007 --model sonnet"),
            "{fresh}"
        );
        assert!(fresh.ends_with("--permission-prompt-tool stdio --effort high --debug"), "{fresh}");
        let resumed =
            words(Begin::Resume { provider_id: id(), interrupted: None, seed: String::new() }, Approve::Ask);
        assert!(resumed.contains("--resume 5e55") && !resumed.contains("--session-id"), "{resumed}");
        let forked = words(Begin::Fork { provider_id: id(), seed: String::new() }, Approve::Ask);
        assert!(
            forked.contains("--resume 5e55 --session-id 019a7afd") && forked.contains("--fork-session"),
            "{forked}"
        );
    }

    #[test]
    fn only_a_sandbox_lets_it_act_without_asking() {
        assert!(words(Begin::Fresh, Approve::All).contains("--permission-mode bypassPermissions"));
        let mut open = launch(Begin::Fresh, Approve::All);
        open.is_confined = false;
        let command = ClaudeCode.command(&open).unwrap();
        assert!(command.args.join(" ").contains("--permission-mode default"));
        assert!(!command.env.iter().any(|(name, _)| name == "IS_SANDBOX"));
    }

    #[test]
    fn its_model_has_our_tools_and_nobody_elses() {
        let words = words(Begin::Fresh, Approve::Policy);
        let config = r#"--mcp-config {"mcpServers":{"ostler":{"args":["mcp"],"command":"/run/ostler/ostler","type":"stdio"}}}"#;
        assert!(words.contains(config) && words.contains("--strict-mcp-config"), "{words}");
        assert!(words.contains("--allowedTools mcp__ostler"), "{words}");
        assert!(!self::words(Begin::Fresh, Approve::Ask).contains("--allowedTools"));
        let mut without = launch(Begin::Fresh, Approve::Ask);
        without.terms.mcp = None;
        let command = ClaudeCode.command(&without).unwrap();
        assert!(!command.args.iter().any(|arg| arg.contains("--mcp-config")));
    }

    #[test]
    fn who_only_answers_has_no_tool_whatever_its_settings_say() {
        let mut asked = launch(Begin::Fresh, Approve::Nobody);
        asked.terms.mcp = None;
        asked.terms.no_tools = true;
        asked.terms.config.insert("tools".to_owned(), "Bash".to_owned());
        let args = ClaudeCode.command(&asked).unwrap().args;
        let tools: Vec<&[String]> = args.windows(2).filter(|pair| pair[0] == "--tools").collect();
        assert!(matches!(tools.as_slice(), [[_, none]] if none.is_empty()), "{args:?}");
    }

    #[test]
    fn a_level_of_thinking_is_an_effort() {
        assert_eq!(ClaudeCode.thinking("minimal"), Some(("effort", "low".to_owned())));
        assert_eq!(ClaudeCode.thinking("xhigh"), Some(("effort", "xhigh".to_owned())));
        assert_eq!((ClaudeCode.thinking("on"), ClaudeCode.thinking("off")), (None, None));
    }

    #[test]
    fn settings_that_mean_nothing_are_refused() {
        let mut launch = launch(Begin::Fresh, Approve::Ask);
        launch.terms.config.insert("efort".to_owned(), "high".to_owned());
        assert_eq!(ClaudeCode.command(&launch), Err(LaunchError::UnknownSetting { key: "efort".to_owned() }));
    }
}
