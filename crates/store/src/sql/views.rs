//! The views that may be asked. A view of a version keeps its columns and their meaning for ever; others are added to its
//! end, or there is a next version beside it. `docs/sql.md` describes them, and a test compares.

/// A view.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) name: &'static str,
    /// Its columns in their order.
    pub(crate) columns: &'static [&'static str],
    /// What it selects: as many columns. `{kind}` becomes the name of an event's kind, `{NAME}` the number of that one.
    pub(crate) select: &'static str,
}

/// The id of the session of a number.
macro_rules! session {
    ($num:literal) => {
        concat!("(SELECT id FROM main.session WHERE num = ", $num, ")")
    };
}
/// The name of the campaign of an id.
macro_rules! campaign {
    ($id:literal) => {
        concat!("(SELECT name FROM main.campaign WHERE id = ", $id, ")")
    };
}
/// Millionths of a dollar as dollars.
macro_rules! dollars {
    ($micros:literal) => {
        concat!($micros, " / 1e6")
    };
}

pub(crate) const VIEWS: &[View] = &[
    View {
        name: "v1_campaigns",
        columns: &["id", "name", "path", "added", "removed", "policy"],
        select: "SELECT id, name, path, added, removed, policy FROM main.campaign",
    },
    View {
        name: "v1_agents",
        columns: &["id", "campaign", "name", "role", "added", "removed", "profile"],
        select: concat!(
            "SELECT id, ",
            campaign!("a.campaign"),
            ", name, role, added, removed, profile FROM main.agent a"
        ),
    },
    View {
        name: "v1_conversations",
        columns: &[
            "id",
            "campaign",
            "agent",
            "key",
            "name",
            "opened",
            "active",
            "closed",
            "close_reason",
            "forked_from",
            "spawned_by",
            "replaces",
            "notes",
        ],
        select: concat!(
            "SELECT id, ",
            campaign!("c.campaign"),
            ", (SELECT name FROM main.agent WHERE id = c.agent), key, name, opened, active, closed, close_reason, ",
            "forked_from, spawned_by, replaces, notes FROM main.conversation c"
        ),
    },
    View {
        name: "v1_sessions",
        columns: &[
            "id",
            "name",
            "campaign",
            "conversation",
            "agent",
            "role",
            "provider",
            "provider_id",
            "model",
            "ticket",
            "chain",
            "continues",
            "spawned_by",
            "branch",
            "status",
            "attention",
            "outcome",
            "created",
            "ended",
            "turns",
            "input",
            "cache_read",
            "cache_write",
            "output",
            "cost_usd",
        ],
        select: concat!(
            "SELECT id, name, ",
            campaign!("s.campaign"),
            ", conversation, agent, role, provider, provider_id, model, ticket, chain, continues, spawned_by, branch, ",
            "status, attention, outcome, created, ended, ",
            "(SELECT view ->> '$.turns' FROM main.session_view v WHERE v.num = s.num), ",
            "(SELECT coalesce(sum(input), 0) FROM main.usage u WHERE u.session = s.num), ",
            "(SELECT coalesce(sum(cache_read), 0) FROM main.usage u WHERE u.session = s.num), ",
            "(SELECT coalesce(sum(cache_write), 0) FROM main.usage u WHERE u.session = s.num), ",
            "(SELECT coalesce(sum(output), 0) FROM main.usage u WHERE u.session = s.num), ",
            // A sum without what has no price would be taken for the whole.
            "(SELECT CASE WHEN count(*) = count(cost) THEN total(cost) / 1e6 END FROM main.usage u ",
            "WHERE u.session = s.num AND plan = 0) ",
            "FROM main.session s"
        ),
    },
    View {
        name: "v1_events",
        columns: &["seq", "session", "session_seq", "time", "kind", "body"],
        select: concat!(
            "SELECT seq, ",
            session!("e.session"),
            ", session_seq, time, {kind}, body FROM main.log_event e"
        ),
    },
    View {
        name: "v1_messages",
        columns: &[
            "id",
            "conversation",
            "session",
            "receipt",
            "mode",
            "head",
            "bytes",
            "said_by",
            "rule",
            "turn",
            "why",
            "accepted",
            "sent",
            "delivered",
            "seen",
            "answered",
            "ended",
        ],
        select: concat!(
            "SELECT id, conversation, ",
            session!("m.session"),
            ", receipt, mode, head, bytes, said_by, rule, turn, why, accepted, sent, delivered, seen, answered, ended ",
            "FROM main.message m"
        ),
    },
    View {
        name: "v1_tool_calls",
        columns: &["seq", "session", "time", "call", "tool", "summary", "input"],
        select: concat!(
            "SELECT seq, ",
            session!("e.session"),
            ", time, body ->> '$.tool_id', body ->> '$.tool', body ->> '$.summary', body ->> '$.input' ",
            "FROM main.log_event e WHERE e.kind = {AGENT_TOOL_CALL}"
        ),
    },
    View {
        name: "v1_tool_results",
        columns: &["seq", "session", "time", "call", "success", "exit", "output"],
        select: concat!(
            "SELECT seq, ",
            session!("e.session"),
            ", time, body ->> '$.tool_id', body ->> '$.success', body ->> '$.exit', body ->> '$.output' ",
            "FROM main.log_event e WHERE e.kind = {AGENT_TOOL_RESULT}"
        ),
    },
    View {
        name: "v1_approvals",
        columns: &[
            "id",
            "session",
            "tool",
            "asks",
            "input",
            "state",
            "asked",
            "answered",
            "answered_by",
            "message",
            "why",
        ],
        select: concat!(
            "SELECT id, ",
            session!("a.session"),
            ", tool, asks, input, state, asked, answered, answered_by, message, why FROM main.approval a"
        ),
    },
    View {
        name: "v1_usage",
        columns: &[
            "seq",
            "session",
            "campaign",
            "provider",
            "model",
            "time",
            "input",
            "cache_read",
            "cache_write",
            "output",
            "reasoning",
            "cost_usd",
            "plan",
        ],
        select: concat!(
            "SELECT seq, ",
            session!("u.session"),
            ", ",
            campaign!("u.campaign"),
            ", provider, model, time, input, cache_read, cache_write, output, reasoning, ",
            dollars!("cost"),
            ", plan FROM main.usage u"
        ),
    },
    View {
        name: "v1_tickets",
        columns: &[
            "id",
            "campaign",
            "external_ref",
            "type",
            "status",
            "why",
            "intent",
            "conversation",
            "added",
            "added_by",
            "moved",
        ],
        select: concat!(
            "SELECT id, ",
            campaign!("t.campaign"),
            ", external, type, status, why, intent, conversation, added, added_by, moved FROM main.ticket t"
        ),
    },
    View {
        name: "v1_ticket_dependencies",
        columns: &["ticket", "depends_on"],
        select: "SELECT ticket, depends_on FROM main.ticket_dependency",
    },
    View {
        name: "v1_ticket_outputs",
        columns: &["ticket", "name", "kind", "bytes", "session"],
        select: "SELECT ticket, name, kind, bytes, session FROM main.ticket_output",
    },
    View {
        name: "v1_ticket_steps",
        columns: &["ticket", "name", "session", "started", "ended", "success", "note"],
        select: concat!(
            "SELECT ticket, name, ",
            session!("t.session"),
            ", started, ended, success, note FROM main.ticket_step t"
        ),
    },
    View {
        name: "v1_snapshots",
        columns: &[
            "session",
            "campaign",
            "turn",
            "cause",
            "time",
            "commit_name",
            "files",
            "added",
            "removed",
        ],
        select: concat!(
            "SELECT session, ",
            campaign!("s.campaign"),
            ", turn, cause, time, commit_name, files, added, removed FROM main.snapshot s"
        ),
    },
    View {
        name: "v1_commits",
        columns: &["session", "turn", "branch", "hash", "subject"],
        select: "SELECT session, turn, branch, hash, subject FROM main.seen_commit",
    },
    View {
        name: "v1_worktrees",
        columns: &["path", "campaign", "session", "branch", "base", "came_from", "made", "removed"],
        select: concat!(
            "SELECT path, ",
            campaign!("w.campaign"),
            ", session, branch, base, came_from, made, removed FROM main.worktree w"
        ),
    },
];

/// The view of views.
pub(crate) const LIST: &str = "v1_views";
pub(crate) const LIST_COLUMNS: &[&str] = &["name", "columns"];
