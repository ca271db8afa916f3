//! `codex app-server`.

use crate::recording::{all, pin};

#[test]
fn recordings_come_to_what_they_came_to() {
    pin(&all("codex", "app-server-", "codex"));
}
