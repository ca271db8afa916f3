//! One question of an agent.

use ostler_client::Approval;
use ostler_domain::{Time, event::Answer, text::visible};

use super::{field, next_steps};
use crate::{
    output::{Line, Tone},
    words,
};

pub(crate) fn lines(approval: &Approval, now: Time) -> Vec<Line> {
    let id = approval.id.short();
    let session = approval.session.short();
    let state = match &approval.answer {
        None => Line::toned(Tone::Warn, "! waits"),
        Some(answered) => Line::of(word(answered.answer)),
    };
    let mut lines = vec![
        Line::new().strong(format!("approval {id}   ")).append(state).plain("   ").append(Line::joined([
            Line::of(approval.id.to_string()),
            Line::of(format!("asked {} ago by session {session}", words::age(now.since(approval.asked)))),
        ])),
        field("tool", Line::of(&approval.tool)),
    ];
    for (n, line) in visible(&approval.input).lines().enumerate() {
        lines.push(field(if n == 0 { "asks" } else { "" }, Line::of(line)));
    }
    match &approval.answer {
        Some(answered) => {
            let when = format!(
                "{} by {}, {} ago",
                word(answered.answer),
                answered.by.0,
                words::age(now.since(answered.at))
            );
            let message =
                if answered.message.is_empty() { String::new() } else { format!(": {}", answered.message) };
            lines.push(field("answer", Line::of(format!("{when}{message}"))));
            lines.extend(next_steps(&[(format!("ostler show {session}"), "the session")]));
        }
        None => lines.extend(next_steps(&[
            (format!("ostler allow {id}"), "lets the agent"),
            (format!("ostler deny {id} -m \"…\""), "does not, and says why"),
        ])),
    }
    lines
}

fn word(answer: Answer) -> &'static str {
    match answer {
        Answer::Allowed => "allowed",
        Answer::Denied => "denied",
        Answer::Expired => "expired",
    }
}

#[cfg(test)]
mod tests {
    use ostler_client::reply::Answered;
    use ostler_domain::{ApprovalId, SessionId, event::By};

    use super::*;
    use crate::{
        output::Look,
        testing::{NOW, ago},
    };

    #[test]
    fn open_and_answered() {
        let mut approval = Approval {
            id: ApprovalId::new(NOW, 7),
            session: SessionId::new(NOW, 8),
            tool: "run".to_owned(),
            input: "{\n  \"argv\": [\"cargo\", \"add\"]\n}".to_owned(),
            asked: ago(180),
            answer: None,
        };
        let shown = |approval: &Approval| {
            let look = Look::plain(None);
            lines(approval, NOW).iter().map(|line| line.show(&look)).collect::<Vec<_>>().join("\n")
        };
        let open = shown(&approval);
        let message = "open a branch instead".to_owned();
        approval.answer =
            Some(Answered { answer: Answer::Denied, by: By("ann".to_owned()), message, at: ago(60) });
        insta::assert_snapshot!(format!("{open}\n\n{}", shown(&approval)));
    }
}
