//! One message and what became of it.

use ostler_client::Delivery;
use ostler_domain::{
    Mode, Receipt, Time,
    text::{one_line, visible},
};

use super::{field, next_steps};
use crate::{
    output::{Column, Line, Table, Tone},
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
        Receipt::Dropped => &[Receipt::Accepted, Receipt::Dropped],
        Receipt::Cancelled => &[Receipt::Accepted, Receipt::Cancelled],
    };
    let tone = |receipt: &Receipt| tone(*receipt);
    Line::joined(known.iter().map(|receipt| Line::toned(tone(receipt), receipt.as_str())))
}

/// Whoever said something the agent may never have read is to see that.
const fn tone(receipt: Receipt) -> Tone {
    match receipt {
        Receipt::Unknown | Receipt::Dropped => Tone::Warn,
        Receipt::Accepted | Receipt::Delivered | Receipt::Seen | Receipt::Answered | Receipt::Cancelled => {
            Tone::Plain
        }
    }
}

/// What was done to a message, in one line.
pub(crate) fn done(delivery: &Delivery, done: &str) -> Line {
    Line::of("msg ")
        .with(Tone::Accent, delivery.message.id.short())
        .plain(format!("  {done}  "))
        .faint(one_line(&delivery.message.text, 60))
}

/// Messages, each with the name of who it was said to, and its place among those that wait for the same one.
pub(crate) fn table(messages: &[(&Delivery, &str)], places: &[u32], now: Time) -> Table {
    let mut columns = vec![
        Column::new("ID"),
        Column::new("TO"),
        Column::new("TEXT").gives_way_to(40),
        Column::new("RECEIPT"),
        Column::new("BY").goes(1),
        Column::new("AGE").right().goes(2),
        Column::new("SESSION").extra(),
        Column::new("MESSAGE").extra(),
    ];
    if !places.is_empty() {
        columns.insert(0, Column::new("NEXT").right());
    }
    let mut table = Table::new(columns);
    for (n, (delivery, name)) in messages.iter().enumerate() {
        let tone = tone(delivery.receipt);
        let place = places.get(n).map(|place| Line::new().faint(place.to_string()));
        let cells = [
            Line::toned(Tone::Accent, delivery.message.id.short()),
            Line::new().strong(name),
            Line::of(one_line(&delivery.message.text, 200)),
            Line::toned(tone, delivery.receipt.as_str()),
            Line::of(&delivery.by.0),
            Line::of(words::age(now.since(delivery.accepted))),
            Line::of(delivery.session.to_string()),
            Line::of(delivery.message.id.to_string()),
        ];
        table.row(place.into_iter().chain(cells).collect());
    }
    table
}

/// No message to list.
pub(crate) fn nothing(all: bool, who: Option<&String>) -> Vec<Line> {
    let hint = |command: String, effect: &str| {
        Line::of("  ").with(Tone::Accent, command).faint(format!("   {effect}"))
    };
    match (all, who) {
        (true, _) => vec![Line::of("Nothing was said yet.")],
        (false, Some(who)) => {
            vec![
                Line::of("No message waits."),
                hint(format!("ostler message ls -a {who}"), "those delivered"),
            ]
        }
        (false, None) => vec![
            Line::of("No message waits for anybody who lives."),
            hint("ostler message ls WHO".to_owned(), "what waits for somebody's next session"),
            hint("ostler send WHO \"…\"".to_owned(), "says something to an agent"),
        ],
    }
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
    if delivery.message.mode != Mode::Followup {
        lines.push(field("mode", Line::of(delivery.message.mode.as_str())));
    }
    if let Some(rule) = &delivery.rule {
        lines.push(field("allowed by", Line::of(rule)));
    }
    if let Some(key) = &delivery.key {
        lines.push(field("named", Line::of(key)));
    }
    lines.push(field(
        "links",
        Line::joined([
            Line::of(format!("session {session}")),
            Line::of(format!("conversation {}", delivery.conversation)),
            Line::of(delivery.turn.map(|turn| format!("turn {turn}")).unwrap_or_default()),
        ]),
    ));
    let short = delivery.message.id.short();
    let steps = match delivery.receipt {
        Receipt::Accepted => vec![
            (format!("ostler message edit {short} \"…\""), "says something else instead"),
            (format!("ostler message rm {short}"), "takes it back"),
            (format!("ostler message move {short} --first"), "has it told next"),
        ],
        _ => vec![(format!("ostler logs {session}"), "what the agent did")],
    };
    lines.extend(next_steps(&steps));
    lines
}

#[cfg(test)]
mod tests {
    use ostler_domain::{ConversationId, Message, MessageId, SessionId, event::By};

    use super::*;
    use crate::{
        output::Look,
        testing::{NOW, ago},
    };

    fn delivery() -> Delivery {
        Delivery {
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
            rule: None,
            key: None,
        }
    }

    #[test]
    fn a_list_of_them() {
        insta::assert_snapshot!(crate::testing::in_all_looks(|look| {
            table(&[(&delivery(), "api-auth")], &[1], NOW).lines(look)
        }));
        let look = Look::plain(Some(60));
        let shown =
            |lines: Vec<Line>| lines.iter().map(|line| line.show(&look)).collect::<Vec<_>>().join("\n");
        insta::assert_snapshot!(shown(table(&[(&delivery(), "api-auth")], &[], NOW).lines(&look)));
        insta::assert_snapshot!(shown(nothing(false, Some(&"api".to_owned()))));
        let of_nobody = shown(nothing(false, None));
        assert!(of_nobody.contains("ostler message ls WHO"), "{of_nobody}");
    }

    #[test]
    fn says_what_is_known() {
        let look = Look::plain(None);
        let text: Vec<_> = lines(&delivery(), NOW).iter().map(|line| line.show(&look)).collect();
        insta::assert_snapshot!(text.join("\n"));
        assert_eq!(receipts(Receipt::Seen).show(&look), "accepted · delivered · seen");
    }
}
