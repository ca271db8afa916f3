//! Notifications that are no part of a session's story: what its own screens show, what another message says too, and
//! features that are off. One that is not named here is kept as it came.

pub(super) fn is_of_no_concern(method: &str) -> bool {
    OF_NO_CONCERN.contains(&method) || AREAS.iter().any(|area| method.starts_with(area))
}

const OF_NO_CONCERN: &[&str] = &[
    "thread/started",
    "thread/closed",
    "thread/compacted",
    "thread/status/changed",
    "thread/readState/changed",
    "thread/archived",
    "thread/unarchived",
    "thread/deleted",
    "thread/reverted",
    "skills/changed",
    "turn/diff/updated",
    "turn/plan/updated",
    "turn/moderationMetadata",
    "item/plan/delta",
    "item/commandExecution/outputDelta",
    "item/commandExecution/terminalInteraction",
    "item/fileChange/outputDelta",
    "item/fileChange/patchUpdated",
    "item/mcpToolCall/progress",
    "mcpServer/startupStatus/updated",
    "remoteControl/status/changed",
    "model/rerouted",
    "model/verification",
    "model/safetyBuffering/updated",
    "deprecationNotice",
    "configWarning",
    "warning",
];

const AREAS: &[&str] = &[
    "item/reasoning/",
    "item/autoApprovalReview/",
    "thread/name/",
    "thread/attachment/",
    "thread/goal/",
    "thread/prediction/",
    "thread/queue/",
    "thread/project/",
    "thread/environment/",
    "thread/settings/",
    "thread/realtime/",
    "project/",
    "hook/",
    "command/exec/",
    "process/",
    "account/",
    "app/",
    "fs/",
    "fuzzyFileSearch/",
    "externalAgentConfig/",
    "modelProvider/",
    "windows",
    "codex/event",
    "rawResponse",
];
