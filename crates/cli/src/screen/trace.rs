//! What a traced command was not given, and what would give it.

use ostler_domain::{
    Name,
    trace::{Denied, Suggestion, Trace, Why},
};

use super::{field, next_steps};
use crate::{
    output::{Column, Line, Look, Table, Tone},
    words,
};

/// What nobody told us, said with every report: silence is no proof.
pub(crate) const UNSEEN: [&str; 5] = [
    "what is asked for through a proxy: the session's NETWORK events have it (ostler logs)",
    "which names were looked up, and which host is behind an address",
    "what is looked for in $HOME: that is the agent's own directory, not yours",
    "what is looked for in /tmp and /var/tmp: inside they are empty at first and the agent's own, whatever yours hold",
    "/proc, /sys and /dev, changes of files that are open already, and calls that are refused whatever they are for",
];

/// What was denied, one line each.
pub(crate) fn report(trace: &Trace, home: Option<&str>, look: &Look) -> Vec<Line> {
    let mut table = Table::new([
        Column::new("WANTED"),
        Column::new("WHAT").gives_way_to(60),
        Column::new("WHY NOT"),
        Column::new("TIMES").right().goes(1),
        Column::new("BY").goes(2),
    ]);
    for denied in &trace.denied {
        table.row(vec![
            Line::of(denied.wish.as_str()),
            Line::new().strong(target(denied, home)),
            Line::toned(Tone::Warn, denied.why.words()),
            Line::of(denied.times.to_string()),
            Line::new().faint(&denied.program),
        ]);
    }
    let mut lines = if trace.denied.is_empty() { Vec::new() } else { table.lines(look) };
    if trace.left_out > 0 {
        lines.push(field("and", Line::of(format!("{} more that were not kept", trace.left_out))));
    }
    lines
}

fn target(denied: &Denied, home: Option<&str>) -> String {
    if denied.target.starts_with('/') { words::path(&denied.target, home) } else { denied.target.clone() }
}

/// `✓ nothing that was seen was kept back · 1,204 calls looked at`
pub(crate) fn verdict(trace: &Trace) -> Line {
    let head = match trace.denied.len() {
        0 => Line::toned(Tone::Good, "✓ ").plain("nothing that was seen was kept back by the sandbox"),
        count => Line::toned(Tone::Warn, "! ")
            .plain(format!("the sandbox kept back {}", words::plural(count as u64, "thing", "things"))),
    };
    Line::joined([head, Line::of(words::plural(trace.calls, "call looked at", "calls looked at"))])
}

/// The commands to paste, and what no command helps with.
pub(crate) fn suggested(trace: &Trace, suggestions: &[Suggestion], campaign: &Name) -> Vec<Line> {
    let effect = |count: usize| if count == 1 { "lets it through" } else { "lets them through" };
    let steps: Vec<(String, &str)> = suggestions
        .iter()
        .map(|one| {
            let setting = ostler_domain::text::shell_word(&one.setting);
            (format!("ostler campaign set {campaign} {setting}"), effect(one.lets_through))
        })
        .collect();
    let mut lines = next_steps(&steps);
    let has = |why: Why| trace.denied.iter().any(|denied| denied.why == why);
    let remarks = [
        (Why::Hidden, "hidden files stay hidden; what the policy's own `hide` names, `hide-=` shows again"),
        (Why::ReadOnly, "what is read-only is the system's, or makes your own programs run code"),
        (Why::Socket, "sockets of the host's are never given to anybody"),
        (Why::HostsLoopback, "services on your loopback are out of reach: start them inside"),
        (
            Why::Network,
            "hosts are allowed by name, to sessions: net.allow+=HOST; commands of `exec` have net.mode=host or nothing",
        ),
        (Why::Name, "there are no names inside; programs that use HTTPS_PROXY need none"),
    ];
    let remarks = remarks.iter().filter(|(why, _)| has(*why));
    lines.extend(
        remarks.map(|(why, words)| field("no grant", Line::of(why.words()).faint(format!(": {words}")))),
    );
    lines
}

pub(crate) fn unseen() -> Vec<Line> {
    UNSEEN
        .iter()
        .enumerate()
        .map(|(place, text)| field(if place == 0 { "unseen" } else { "" }, Line::new().faint(text)))
        .collect()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use ostler_domain::trace::{Wish, suggestions};

    use super::*;

    fn denied(wish: Wish, target: &str, why: Why) -> Denied {
        Denied { wish, target: target.to_owned(), why, program: "cc1".to_owned(), times: 4 }
    }

    #[test]
    fn a_trace_and_what_follows_from_it() {
        let trace = Trace {
            denied: vec![
                denied(Wish::Read, "/opt/sdk/it's here.h", Why::Absent),
                denied(Wish::Execute, "/home/ann/.cargo/bin/cargo", Why::Absent),
                denied(Wish::Read, "/home/ann/shop/.env", Why::Hidden),
                denied(Wish::Connect, "192.0.2.1:443", Why::Network),
            ],
            calls: 1_204,
            left_out: 2,
        };
        let look = Look::plain(Some(100));
        let home = "/home/ann";
        let mut lines = report(&trace, Some(home), &look);
        lines.push(verdict(&trace));
        let name = "shop".parse().unwrap_or_else(|_| unreachable!());
        lines.extend(suggested(&trace, &suggestions(&trace, Some(home.as_ref())), &name));
        lines.extend(unseen());
        lines.push(verdict(&Trace::default()));
        assert_snapshot!(lines.iter().map(|line| line.show(&look)).collect::<Vec<_>>().join("\n"));
    }
}
