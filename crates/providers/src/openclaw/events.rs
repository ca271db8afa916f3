//! Events of the gateway that are no part of a session's story: screens, channels and devices that are not there, and what
//! another event says too. One that is not named here is kept as it came.

pub(super) fn are_of_others(event: &str) -> bool {
    OF_OTHERS.contains(&event) || OF_OTHERS_BY_AREA.iter().any(|area| event.starts_with(area))
}

const OF_OTHERS: &[&str] = &[
    "tick",
    "health",
    "presence",
    "heartbeat",
    "cron",
    "chat.metadata.changed",
    "models.snapshot",
    "ui.command",
    "session.approval",
    "session.observer",
    "session.operation",
    "session.suggestion",
    "session.typing",
    "session.tool",
    "task.suggestion",
    "gateway.suspension",
    "skills.changed",
    "portal.changed",
    "progressCard.changed",
    "mentions.changed",
];

const OF_OTHERS_BY_AREA: &[&str] = &[
    "session.sharing",
    "controlUi.",
    "plugins.",
    "talk.",
    "voicewake.",
    "node.",
    "device.",
    "users.",
    "terminal.",
    "update.",
];
