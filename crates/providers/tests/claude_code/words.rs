//! What a dialogue heard, one line each.

use ostler_domain::{
    MessageId, Usage,
    event::{Action, AskKind, Text},
    session::Report,
    text::one_line,
};
use ostler_providers::Heard;

const MOST: usize = 120;

pub(crate) fn tell(heard: &[Heard]) -> String {
    let mut sum = Usage::default();
    let mut text = String::new();
    let mut deltas = 0_usize;
    for heard in heard {
        let line = match heard {
            // Their number depends on the network alone.
            Heard::Delta(part) => {
                deltas += part.len();
                continue;
            }
            Heard::Say(say) => {
                format!("answer  [{}] {}", say.tag, short(&String::from_utf8_lossy(&say.bytes)))
            }
            Heard::Report(report) => {
                if let Report::Usage(call) = report {
                    sum += call.usage;
                }
                word(report)
            }
        };
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text.push_str(&format!("--\nsum     {}\nlive    {deltas} bytes of text\n", tokens(&sum)));
    text
}

fn short(text: &str) -> String {
    one_line(text, MOST)
}

fn said(verb: &str, text: &Text) -> String {
    format!("{verb:<7} {}{}", by(text.subagent.as_deref()), short(&text.text))
}

fn by(subagent: Option<&str>) -> String {
    subagent.map(|id| format!("<{id}> ")).unwrap_or_default()
}

fn tokens(usage: &Usage) -> String {
    let Usage { input, cache_read, cache_write, output, reasoning } = usage;
    format!(
        "input {input} · cache read {cache_read} · cache write {cache_write} · output {output} ({reasoning} reasoning)"
    )
}

fn ids(word: &str, messages: &[MessageId]) -> String {
    let ids: Vec<_> = messages.iter().map(ToString::to_string).collect();
    format!("{word} {}", ids.join(" "))
}

fn word(report: &Report) -> String {
    match report {
        Report::Ready { provider_id, model } => {
            format!(
                "ready   claims {} · model {}",
                provider_id.as_deref().unwrap_or("-"),
                model.as_deref().unwrap_or("-")
            )
        }
        Report::Bound { provider_id, model } => {
            format!("bound   {provider_id} · model {}", model.as_deref().unwrap_or("-"))
        }
        Report::TurnStarted { messages } => ids("turn   ", messages),
        Report::TurnEnded { stop_reason } => format!("end     {stop_reason:?}"),
        Report::Unread { messages } => ids("unread ", messages),
        Report::Unclear { messages } => ids("unclear", messages),
        Report::Background { tasks } => format!("runs on {tasks:?}"),
        Report::Thinking(text) => said("think", text),
        Report::Completion(text) => said("say", text),
        Report::ToolCall(call) => {
            format!(
                "call    {}{} {} [{}]",
                by(call.subagent.as_deref()),
                call.tool,
                short(&call.summary),
                call.tool_id
            )
        }
        Report::ToolResult(result) => {
            let sign = if result.success { "ok" } else { "failed" };
            let exit = result.exit.map(|code| format!(" exit {code}")).unwrap_or_default();
            format!(
                "result  {}{sign}{exit} [{}] {}",
                by(result.subagent.as_deref()),
                result.tool_id,
                short(&result.output)
            )
        }
        Report::Image(shown) => {
            format!("picture {:?} [{}]", shown.image, shown.tool_id.as_deref().unwrap_or("-"))
        }
        Report::Status(text) => format!("status  {}", short(text)),
        Report::Error(text) => format!("error   {}", short(text)),
        Report::Retrying(retrying) => format!(
            "retry   {} · {} of {} · after {:?} ms",
            retrying.why, retrying.attempt, retrying.most, retrying.after_ms
        ),
        Report::RateLimited { what, until } => {
            format!(
                "limit   {} · until {}",
                short(what),
                until.map_or("not said".to_owned(), |until| until.micros().to_string())
            )
        }
        Report::AuthFailed(text) => format!("auth    {}", short(text)),
        Report::CannotStart(text) => format!("cannot  {}", short(text)),
        Report::Context(context) => format!("context {} of {:?}", context.used, context.window),
        Report::Compacted(compacted) => format!(
            "compact automatic {} · {:?} to {:?}",
            compacted.automatic, compacted.before, compacted.after
        ),
        Report::ContextReset { why } => format!("reset   {}", short(why)),
        Report::Stderr(raw) => format!("stderr  {}", short(&raw.text)),
        Report::Opaque(raw) => format!("opaque  {}", short(&raw.text)),
        Report::Oversize(raw) | Report::Partial(raw) => format!("cut     {}", short(&raw.text)),
        Report::Usage(call) => format!(
            "usage   {} {} · {}",
            call.model.as_deref().unwrap_or("-"),
            call.call.as_deref().unwrap_or("(no name)"),
            tokens(&call.usage)
        ),
        Report::ApprovalAsked { ask, tool, input, kind, action, subagent } => {
            let kind = if *kind == AskKind::Question { "question" } else { "leave" };
            let action = if *action == Action::Other {
                String::new()
            } else {
                format!(" · {}", short(&format!("{action:?}")))
            };
            format!("ask     {}{kind} {tool} {} [{ask}]{action}", by(subagent.as_deref()), short(input))
        }
        Report::ApprovalWithdrawn { ask } => format!("unask   [{ask}]"),
        Report::ToolAnnounced { ask, tool, action } => format!("announces [{ask}] {tool} · {action:?}"),
        Report::Alive => "alive".to_owned(),
    }
}
