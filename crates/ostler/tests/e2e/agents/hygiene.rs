//! What a project's own files would have agents run: hooks, servers, plug-ins, notifications. Whoever can write to a campaign
//! could write those, so none is loaded. Each of them leaves a file behind when it runs.

use std::{fs, path::Path, process::Command};

use ostler_domain::session::Approve;
use serde_json::{Value, json};

use super::stage::{Agent, KEY, Stage, script};

/// How the files begin that are left behind.
const MARK: &str = "ran-";

/// Runs a turn with a command in a campaign that is full of such files.
pub(super) async fn nothing_of_the_project_is_run(agent: Agent) {
    let stage = Stage::new(agent).await;
    plant(&stage.home.campaign_dir());
    let session = stage.begin(Approve::All, &steps()).await;
    stage.turns(session, 1).await;
    assert!(stage.file("touched").is_some(), "it did work");
    stage.client().await.stop_session(&session.to_string(), false).await.unwrap();
    stage.ended(session).await;
    nothing_was_run(&stage);
}

pub(super) fn nothing_was_run(stage: &Stage) {
    assert_eq!(left_behind(&stage.home.campaign_dir()), Vec::<String>::new());
}

/// The same for the program as people start it by hand, which does run something of it: what was planted is no mere
/// decoration. `command` gives the program's own words, told where the model is, its key, what to do, and a home.
pub(super) async fn the_program_alone_would_run_it(
    agent: Agent,
    command: impl FnOnce(&Native<'_>) -> Command,
) {
    let stage = Stage::new(agent).await;
    let campaign = stage.home.campaign_dir();
    plant(&campaign);
    let home = stage.home.path().join("native");
    fs::create_dir_all(&home).unwrap();
    let native = Native {
        model: if stage.agent.adds_version { stage.model.origin() } else { stage.model.base_url() },
        prompt: script(&steps()),
        home: &home,
        campaign: &campaign,
    };
    let mut command = command(&native);
    command.current_dir(&campaign).env("HOME", &home).stdin(std::process::Stdio::null());
    // Whatever else it would ask of the world.
    command.env("HTTPS_PROXY", "http://127.0.0.1:9").env("NO_PROXY", "127.0.0.1,localhost");
    let output = command.output().unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(!left_behind(&campaign).is_empty(), "{said}");
}

/// What a program is told that is started without Ostler.
pub(super) struct Native<'a> {
    pub(super) model: String,
    pub(super) prompt: String,
    pub(super) home: &'a Path,
    pub(super) campaign: &'a Path,
}

impl Native<'_> {
    /// A program that is ended if it does not end.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", "60"]).arg(program);
        command
    }

    pub(super) fn key(&self) -> &'static str {
        KEY
    }
}

fn steps() -> Value {
    json!([{"text": "I touch it.", "shell": "touch touched"}, {"text": "Touched."}])
}

fn left_behind(campaign: &Path) -> Vec<String> {
    let names = fs::read_dir(campaign).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter_map(|name| name.into_string().ok()).filter(|name| name.starts_with(MARK)).collect()
}

pub(super) fn plant(campaign: &Path) {
    let mark = |name: &str| format!("touch {}/{MARK}{name}", campaign.display());
    let write = |path: &str, text: String| {
        let path = campaign.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let server = |name: &str| json!({"command": "sh", "args": ["-c", format!("{}; exec cat", mark(name))]});
    let hook = |name: &str| json!([{"matcher": "*", "hooks": [{"type": "command", "command": mark(name)}]}]);
    let hooks = |program: &str, events: &[&str]| -> Value {
        let all = events.iter().map(|event| ((*event).to_owned(), hook(&format!("{program}-hook-{event}"))));
        Value::Object(all.collect())
    };
    let usual = ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"];

    // Claude Code
    let settings = json!({"hooks": hooks("claude", &usual), "enableAllProjectMcpServers": true});
    write(".claude/settings.json", settings.to_string());
    write(".claude/settings.local.json", settings.to_string());
    write(".mcp.json", json!({"mcpServers": {"planted": server("claude-server")}}).to_string());

    // Codex
    let [notify, codex_server] = ["codex-notify", "codex-server"].map(mark);
    write(
        ".codex/config.toml",
        format!(
            "notify = [\"sh\", \"-c\", \"{notify}\"]\n\n[mcp_servers.planted]\ncommand = \"sh\"\n\
             args = [\"-c\", \"{codex_server}; exec cat\"]\n"
        ),
    );
    write(".codex/hooks.json", json!({"hooks": hooks("codex", &usual)}).to_string());

    // opencode
    let local = json!({"type": "local", "enabled": true,
        "command": ["sh", "-c", format!("{}; exec cat", mark("opencode-server"))]});
    let named =
        |name: &str| json!({"mcp": {"planted": local}, "plugin": [format!("./{name}.js")]}).to_string();
    write("opencode.json", named("named-in-json"));
    write("opencode.jsonc", named("named-in-jsonc"));
    let plugin = |name: &str| {
        format!(
            "import fs from 'node:fs';\nfs.writeFileSync('{}/{MARK}{name}', '');\n\
             export const Planted = async () => ({{}});\n",
            campaign.display()
        )
    };
    write("named-in-json.js", plugin("opencode-json"));
    write("named-in-jsonc.js", plugin("opencode-jsonc"));
    write(".opencode/plugin/planted.js", plugin("opencode-plugin"));
    write(".opencode/plugins/planted.js", plugin("opencode-plugins"));

    // Gemini CLI
    let events = ["SessionStart", "BeforeAgent", "BeforeModel", "BeforeTool", "AfterTool", "SessionEnd"];
    let settings = json!({
        "mcpServers": {"planted": server("gemini-server")},
        "hooksConfig": {"enabled": true},
        "hooks": hooks("gemini", &events),
        "tools": {"discoveryCommand": format!("{}; echo []", mark("gemini-discovery"))},
    });
    write(".gemini/settings.json", settings.to_string());

    // OpenClaw
    let config =
        json!({"mcp": {"servers": {"planted": server("openclaw-server")}}, "plugins": {"enabled": true}});
    write("openclaw.json", config.to_string());
    write(".openclaw/openclaw.json", config.to_string());
    let manifest = json!({"id": "planted", "name": "planted", "configSchema": {"type": "object"}});
    write(".openclaw/extensions/planted/openclaw.plugin.json", manifest.to_string());
    let package = json!({"name": "planted", "version": "1.0.0", "type": "module",
        "openclaw": {"extensions": ["./index.js"]}});
    write(".openclaw/extensions/planted/package.json", package.to_string());
    write(".openclaw/extensions/planted/index.js", plugin("openclaw-plugin"));
    write(
        "hooks/planted/HOOK.md",
        "---\nname: planted\ndescription: x\nmetadata: {\"openclaw\":{\"events\":[\"gateway:startup\"]}}\n---\n"
            .to_owned(),
    );
    write("hooks/planted/handler.js", plugin("openclaw-hook"));
}
