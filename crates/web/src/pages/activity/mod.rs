//! What an agent did, as it is read: one line a deed, a call and its result on the same one, the rest folded.

mod item;

use askama::Template;
use ostler_client::{ListEvents, Place, Received, Session};
use ostler_domain::{Event, query::EventFilter};
use ostler_form::words;

pub(super) use self::item::{Item, items, text_of, word};
use super::render;
use crate::{clock, guard::Visitor, reply::Failure};

/// Events that a page is made of, and bytes of what they say: a browser holds that much and no more, however long the
/// story is. What is older or newer is another page in its place.
const EVENTS: u32 = 200;
const WINDOW: usize = 128 * 1024;
/// Calls that make a run.
const RUN: usize = 3;

/// Deeds that are shown as one: one of them, or a run of calls that all went well.
struct Block {
    /// What the run is called; empty for a deed by itself.
    title: String,
    items: Vec<Item>,
}

impl Block {
    fn id(&self) -> u64 {
        self.items.first().map_or(0, |item| item.seq)
    }
}

#[derive(Template)]
#[template(path = "activity.html")]
struct Activity {
    blocks: Vec<Block>,
    nothing: String,
    ways: Ways,
}

/// Where the rest of the story is; empty where there is none.
#[derive(Debug, Default, PartialEq, Eq)]
struct Ways {
    older: String,
    newer: String,
    newest: String,
}

impl Ways {
    /// From a page that shows these, the oldest first, of what lies at a place. `has_more` that way.
    fn new(story: &str, at: &Place, shown: &[Received], has_more: bool) -> Ways {
        let (first, last) = (shown.first().map(Received::seq), shown.last().map(Received::seq));
        let older = |first: u64| format!("{story}?before={first}");
        let newer = |last: u64| format!("{story}?after={last}");
        let if_more = |way: Option<String>| way.filter(|_| has_more).unwrap_or_default();
        match *at {
            Place::End => Ways { older: if_more(first.map(older)), ..Ways::default() },
            Place::Before(before) => Ways {
                older: if_more(first.map(older)),
                newer: newer(last.unwrap_or_else(|| before.saturating_sub(1))),
                newest: story.to_owned(),
            },
            Place::After(after) => Ways {
                older: older(first.unwrap_or_else(|| after.saturating_add(1))),
                newer: if_more(last.map(newer)),
                newest: story.to_owned(),
            },
        }
    }
}

pub(super) async fn body(visitor: &Visitor, session: &Session, at: Place) -> Result<String, Failure> {
    let filter = EventFilter { session: Some(session.id), ..EventFilter::default() };
    let found = visitor.client.events(&ListEvents { filter, from: at, limit: EVENTS }).await?;
    let mut events = found.events;
    let fit = fitting(&events);
    let has_more = found.next.is_some() || fit < events.len();
    events.truncate(fit);
    if !matches!(at, Place::After(_)) {
        events.reverse();
    }
    let ways = Ways::new(&format!("/sessions/{}", session.id), &at, &events, has_more);
    let age = words::span(clock::now().since(session.created_at));
    let limit = first_output(&events).map(|limit| format!("; first-output limit {}", words::span(limit)));
    let nothing = format!("Started {age} ago, no output yet{}", limit.unwrap_or_default());
    let is_silent = ways == Ways::default() && !events.iter().any(is_output);
    let nothing = if is_silent { nothing } else { String::new() };
    render(&Activity { blocks: blocks(items(&events)), nothing, ways })
}

/// How many of these events a page has room for.
fn fitting(events: &[Received]) -> usize {
    let mut room = WINDOW;
    let mut fits = |received: &Received| {
        let bytes = match received {
            Received::Known(recorded) => text_of(&recorded.event).len().min(item::MOST),
            Received::Unknown(_) => 0,
        };
        let is_room = room > 0;
        room = room.saturating_sub(bytes);
        is_room
    };
    events.iter().take_while(|received| fits(received)).count()
}

/// How long the first word may take, as the session was created.
fn first_output(events: &[Received]) -> Option<std::time::Duration> {
    events.iter().find_map(|received| match received {
        Received::Known(recorded) => match &recorded.event {
            Event::SessionCreated(created) => {
                Some(std::time::Duration::from_micros(created.config.watchdogs.first_output_us))
            }
            _ => None,
        },
        Received::Unknown(_) => None,
    })
}

fn is_output(received: &Received) -> bool {
    let Received::Known(recorded) = received else { return true };
    matches!(
        recorded.event,
        Event::AgentThinking(_)
            | Event::AgentToolCall(_)
            | Event::AgentToolResult(_)
            | Event::AgentCompletion(_)
            | Event::AgentStatus(_)
            | Event::AgentError(_)
            | Event::TurnEnded(_)
            | Event::SessionStopped(_)
            | Event::SessionFailed(_)
    )
}

/// Runs of three or more calls that went well become one line each.
fn blocks(items: Vec<Item>) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for item in items {
        match blocks.last_mut().filter(|last| item.is_fine && last.items.iter().all(|item| item.is_fine)) {
            Some(run) => run.items.push(item),
            None => blocks.push(Block { title: String::new(), items: vec![item] }),
        }
    }
    let split = |mut block: Block| {
        if block.items.len() < RUN {
            let alone = |item| Block { title: String::new(), items: vec![item] };
            return block.items.into_iter().map(alone).collect::<Vec<_>>();
        }
        block.title = title(&block.items);
        vec![block]
    };
    blocks.into_iter().flat_map(split).collect()
}

/// `5 calls: read ×3, edit ×2`.
fn title(items: &[Item]) -> String {
    let mut verbs: Vec<(&str, usize)> = Vec::new();
    for item in items {
        match verbs.iter_mut().find(|(verb, _)| *verb == item.verb) {
            Some((_, count)) => *count += 1,
            None => verbs.push((&item.verb, 1)),
        }
    }
    let verb = |(verb, count): &(&str, usize)| match count {
        1 => (*verb).to_owned(),
        count => format!("{verb} ×{count}"),
    };
    format!("{} calls: {}", items.len(), verbs.iter().map(verb).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use ostler_domain::{
        Recorded, Time,
        event::{Text, ToolCall, ToolResult},
    };

    use super::*;

    fn recorded(seq: u64, event: Event) -> Received {
        let (session, time) = (None, Time::from_micros(0));
        Received::Known(Box::new(Recorded { seq, session, session_seq: None, time, event }))
    }

    #[test]
    fn a_page_has_room_for_so_much_and_the_rest_is_another_one() {
        let said = |bytes: usize| recorded(1, Event::AgentCompletion(Text::from("x".repeat(bytes))));
        let many =
            |bytes: usize| fitting(&std::iter::repeat_with(|| said(bytes)).take(200).collect::<Vec<_>>());
        assert_eq!(many(100), 200);
        // However long a text is, this much of it is shown.
        assert_eq!((many(item::MOST), many(10_000_000 / 200)), (33, 33));
    }

    #[test]
    fn every_page_of_a_story_leads_to_its_neighbours() {
        let shown = [recorded(10, call("a")), recorded(20, call("b"))];
        let ways = |at: Place, has_more: bool| {
            let Ways { older, newer, newest } = Ways::new("/s", &at, &shown, has_more);
            [older, newer, newest]
        };
        assert_eq!(ways(Place::End, false), ["", "", ""]);
        assert_eq!(ways(Place::End, true), ["/s?before=10", "", ""]);
        assert_eq!(ways(Place::Before(21), false), ["", "/s?after=20", "/s"]);
        assert_eq!(ways(Place::After(9), true), ["/s?before=10", "/s?after=20", "/s"]);
        assert_eq!(ways(Place::After(9), false), ["/s?before=10", "", "/s"]);
        let beyond = Ways::new("/s", &Place::After(20), &[], false);
        assert_eq!(beyond.older, "/s?before=21", "nobody is lost behind the end");
    }

    fn told(events: Vec<Event>) -> String {
        let events: Vec<_> = events.into_iter().zip(0..).map(|(event, n)| recorded(n, event)).collect();
        let blocks = blocks(items(&events));
        render(&Activity { blocks, nothing: String::new(), ways: Ways::default() }).unwrap()
    }

    #[test]
    fn what_agents_write_is_text_and_never_a_tag() {
        let nasty = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'";
        let text = || Text::from(nasty.to_owned());
        let call = ToolCall {
            tool: nasty.to_owned(),
            tool_id: "1".to_owned(),
            summary: nasty.to_owned(),
            input: nasty.to_owned(),
            subagent: None,
        };
        let result = ToolResult {
            tool_id: "1".to_owned(),
            success: false,
            exit: Some(1),
            output: nasty.to_owned(),
            subagent: None,
        };
        let page = told(vec![
            Event::AgentThinking(text()),
            Event::AgentToolCall(call),
            Event::AgentToolResult(result),
            Event::AgentCompletion(text()),
            Event::AgentError(text()),
        ]);
        assert!(!page.contains("<script") && !page.contains("<img"), "{page}");
        assert!(page.contains("&#60;script&#62;") || page.contains("&lt;script&gt;"), "{page}");
    }

    fn call(id: &str) -> Event {
        Event::AgentToolCall(ToolCall {
            tool: "run".to_owned(),
            tool_id: id.to_owned(),
            summary: format!("make {id}"),
            input: "make".to_owned(),
            subagent: None,
        })
    }

    fn result(id: &str, success: bool) -> Event {
        Event::AgentToolResult(ToolResult {
            tool_id: id.to_owned(),
            success,
            exit: None,
            output: "out".to_owned(),
            subagent: None,
        })
    }

    #[test]
    fn three_calls_that_went_well_fold_into_one_line_and_a_failed_one_stays_out() {
        let went = |id: &str| [call(id), result(id, true)];
        let three: Vec<Event> = ["a", "b", "c"].iter().flat_map(|id| went(id)).collect();
        let page = told(three.clone());
        assert_eq!(page.matches("<details class=\"run\"").count(), 1, "{page}");
        assert!(page.contains("3 calls: run ×3"), "{page}");
        let two: Vec<Event> = ["a", "b"].iter().flat_map(|id| went(id)).collect();
        assert!(!told(two).contains("<details class=\"run\""));
        let failed = three.into_iter().chain([call("d"), result("d", false), call("e")]);
        let page = told(failed.collect());
        assert_eq!(page.matches("<details class=\"run\"").count(), 1, "{page}");
        assert_eq!(page.matches(" open>").count(), 2, "what failed and what runs: {page}");
    }

    #[test]
    fn a_call_and_its_result_are_one_line_that_stays_open_when_it_failed() {
        let page = told(vec![call("a"), call("b"), result("b", false), result("a", true)]);
        assert_eq!(page.matches("<li").count(), 2, "{page}");
        assert_eq!(page.matches(" open>").count(), 1, "{page}");
    }
}
