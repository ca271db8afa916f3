//! One message and what became of it.

use ostler_client::Delivery;
use ostler_domain::{Receipt, Time, text::visible};

use super::{field, next_steps};
use crate::{
    output::{Line, Tone},
    words,
};

/// `accepted · delivered · seen`: everything a receipt says.
pub(crate) fn receipts(receipt: Receipt) -> Line {
    let known = match receipt {
        Receipt::Unknown => &[Receipt::Accepted, Receipt::Delivered, Receipt::Unknown][..],
        Receipt::Accepted => &[Receipt::Accepted],
        Receipt::Delivered => &[Receipt::Accepted, Receipt::Delivered],
        Receipt::Seen => &[Receipt::Accepted, Receipt::Delivered, Receipt::Seen],
        Receipt::Answered => &[Receipt::Accepted, Receipt::Delivered, Receipt::Seen, Receipt::Answered],
    };
    let tone = |receipt: &Receipt| if *receipt == Receipt::Unknown { Tone::Warn } else { Tone::Plain };
    Line::joined(known.iter().map(|receipt| Line::toned(tone(receipt), receipt.as_str())))
}

pub(crate) fn lines(delivery: &Delivery, now: Time) -> Vec<Line> {
    let session = delivery.session.short();
    let mut lines = vec![
        Line::new()
            .strong(format!("message {}   ", delivery.message.id.short()))
            .append(receipts(delivery.receipt))
            .plain("   ")
            .append(Line::joined([
                Line::of(delivery.message.id.to_string()),
                Line::of(format!("by {}, {} ago", delivery.by.0, words::age(now.since(delivery.accepted)))),
            ])),
    ];
    for (n, line) in visible(&delivery.message.text).lines().enumerate() {
        lines.push(field(if n == 0 { "text" } else { "" }, Line::of(line)));
    }
    if let Some(why) = &delivery.why {
        lines.push(field("why", Line::of(why)));
    }
    lines.push(field(
        "links",
        Line::joined([
            Line::of(format!("session {session}")),
            Line::of(format!("conversation {}", delivery.conversation)),
            Line::of(delivery.turn.map(|turn| format!("turn {turn}")).unwrap_or_default()),
        ]),
    ));
    lines.extend(next_steps(&[(format!("ostler logs {session}"), "what the agent did")]));
    lines
}

#[cfg(test)]
mod tests {
    use ostler_domain::{ConversationId, Message, MessageId, Mode, SessionId, event::By};

    use super::*;
    use crate::{
        output::Look,
        testing::{NOW, ago},
    };

    #[test]
    fn says_what_is_known() {
        let delivery = Delivery {
            message: Message {
                id: MessageId::new(NOW, 1),
                text: "go on,\nplease".to_owned(),
                mode: Mode::Followup,
            },
            conversation: ConversationId::new(NOW, 2),
            session: SessionId::new(NOW, 3),
            receipt: Receipt::Unknown,
            by: By("ann".to_owned()),
            accepted: ago(40),
            receipt_at: ago(20),
            turn: None,
            why: Some("the agent ended before it showed the message".to_owned()),
        };
        let look = Look::plain(None);
        let text: Vec<_> = lines(&delivery, NOW).iter().map(|line| line.show(&look)).collect();
        insta::assert_snapshot!(text.join("\n"));
        assert_eq!(receipts(Receipt::Seen).show(&look), "accepted · delivered · seen");
    }
}
