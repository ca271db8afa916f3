//! The groups of commands on the help's first page.

/// The groups of the help's first page. A test holds them against the tree.
pub(super) const GROUPS: &[(&str, &[&str])] = &[
    (
        "DAILY",
        &[
            "run", "ls", "show", "logs", "attach", "send", "stop", "allow", "deny", "approval", "message",
            "search", "blame", "top",
        ],
    ),
    ("FIRST HOUR", &["init", "demo", "doctor", "open"]),
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
            "notify",
            "share",
            "hub",
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

/// What an agent may do inside its session; all else is denied there.
pub(super) const INSIDE: &[(&str, &[&str])] = &[(
    "INSIDE THIS SESSION (of itself)",
    &[
        "show", "search", "send", "step", "note", "output", "spawn", "ticket", "handoff", "done", "mcp",
        "version", "help",
    ],
)];

pub(super) fn groups(command: &clap::Command, groups: &[(&str, &[&str])]) -> String {
    let about = |name: &str| {
        let found = command.find_subcommand(name);
        found.and_then(|found| found.get_about()).map(ToString::to_string).unwrap_or_default()
    };
    let mut text = String::new();
    for (title, names) in groups {
        text.push_str(&format!("{title}\n"));
        for name in *names {
            text.push_str(&format!("  {name:<10} {}\n", about(name)));
        }
        text.push('\n');
    }
    text
}
