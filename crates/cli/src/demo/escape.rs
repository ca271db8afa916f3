//! One agent tries to leave its sandbox. It really tries, and the kernel really stops it.

use ostler_client::{Campaign, Client, CreateSession, Watched, query::EventFilter};
use ostler_domain::{Event, Kind, Reason, Refusal};
use serde_json::{Value, json};

use super::stage::Stage;
use crate::{
    commands::ended,
    failure::Failure,
    output::{Line, Tone},
};

/// Something that no agent may do.
struct Attempt {
    command: &'static [&'static str],
    /// Why it fails.
    rule: &'static str,
}

const ATTEMPTS: [Attempt; 3] = [
    Attempt { command: &["cat", ".env"], rule: "a hidden file of the campaign" },
    Attempt { command: &["sh", "-c", "echo owned > /etc/owned"], rule: "outside of the campaign" },
    // An address that belongs to nobody; inside there is no way to any.
    Attempt { command: &["git", "ls-remote", "https://192.0.2.1/shop"], rule: "no network but its own" },
];

/// How many attempts there were, and how many of them were stopped.
pub(super) struct Stopped {
    pub(super) of: usize,
    pub(super) stopped: usize,
}

impl Stopped {
    pub(super) fn is_right(&self) -> bool {
        self.stopped == self.of
    }
}

pub(super) async fn play(
    client: &Client,
    campaign: &Campaign,
    stage: &Stage<'_>,
) -> Result<Stopped, Failure> {
    let steps: Vec<Value> = ATTEMPTS.iter().map(|attempt| json!({"run": attempt.command})).collect();
    let request = CreateSession {
        name: "curious".parse().ok(),
        initial_message: Some(json!({ "steps": steps }).to_string()),
        ends_with_turn: true,
        ..CreateSession::new(campaign.id.to_string(), "script")
    };
    let session = client.create_session(request).await?;
    stage.loud(Line::of(format!("another agent, curious ({}), looks for a way out", session.id.short())))?;
    let kinds = vec![Kind::AgentToolResult, Kind::SessionFailed, Kind::SessionStopped];
    let filter = EventFilter { session: Some(session.id), kinds, ..EventFilter::default() };
    let mut watch = client.watch(filter, Some(0)).await?;
    let mut attempts = ATTEMPTS.iter();
    let mut stopped = 0;
    loop {
        match watch.next().await {
            Some(Ok(Watched::Event(event))) => match (&event.event, attempts.as_slice().first()) {
                (Event::AgentToolResult(result), Some(attempt)) => {
                    attempts.next();
                    stopped += usize::from(!result.success);
                    stage.at(shown(attempt, result.success, &result.output))?;
                }
                _ => break,
            },
            Some(Ok(Watched::Unknown(_) | Watched::Reconnected)) => {}
            Some(Err(error)) => return Err(error.into()),
            None => return Err(Refusal::new(Reason::DaemonUnreachable, "the daemon is gone").into()),
        }
    }
    ended::wait(client, session.id).await?;
    Ok(Stopped { of: ATTEMPTS.len(), stopped })
}

fn shown(attempt: &Attempt, succeeded: bool, output: &str) -> Line {
    let said = output.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let (tone, sign) =
        if succeeded { (Tone::Bad, "✗ got through  ") } else { (Tone::Good, "✓ stopped  ") };
    Line::toned(Tone::Accent, "curious ")
        .append(Line::toned(tone, sign))
        .plain(attempt.command.join(" "))
        .faint(format!("   {}   ({})", ostler_domain::text::one_line(said, 60), attempt.rule))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_got_through_is_not_called_stopped() {
        let look = crate::output::Look::plain(None);
        let shown = |succeeded, output| shown(&ATTEMPTS[0], succeeded, output).show(&look);
        assert!(shown(false, "cat: .env: Permission denied\n").contains("stopped"));
        assert!(shown(true, "TOKEN=1").contains("got through"));
    }
}
