//! Tickets in words.

use ostler_domain::{Event, call::StepMark, text::one_line};

use super::with_reason;
use crate::activity::Told;

pub(super) fn tell(event: &Event) -> Told {
    match event {
        Event::TicketAdded(added) => {
            let external = added.links.external.as_ref().map(|external| format!("{external} "));
            let title = one_line(added.about.title(), 160);
            Told::new("ticket", format!("{} {}{title}", added.id.short(), external.unwrap_or_default()))
        }
        Event::TicketChanged(changed) => {
            let title = one_line(changed.about.title(), 160);
            Told::new("ticket", format!("{}: {title} by {}", changed.id.short(), changed.by.0))
        }
        Event::TicketMoved(moved) => {
            let what = format!("{} {} by {}", moved.id.short(), moved.to.as_str(), moved.by.0);
            Told::new("ticket", with_reason(what, &moved.why))
        }
        Event::TicketLinked(linked) => {
            let (id, by) = (linked.id.short(), &linked.by.0);
            let count = linked.links.depends_on.len();
            let external = linked.links.external.as_ref().map_or("nothing elsewhere", |text| text.as_str());
            Told::new("linked", format!("ticket {id}: {external}, waits for {count}, by {by}"))
        }
        Event::TicketOutputAdded(added) => {
            let value = one_line(&added.output.value, 120);
            Told::new("output", format!("ticket {}: {} {value}", added.id.short(), added.output.name))
        }
        Event::TicketCheckpointMade(made) => {
            let (id, name) = (made.id.short(), &made.checkpoint.name);
            Told::new("point", format!("ticket {id}: {name} by {}", made.by.0))
        }
        Event::TicketStep(step) => {
            let word = match step.mark {
                StepMark::Start => "begun",
                StepMark::End => "done",
                StepMark::Fail => "failed",
            };
            let what = format!("ticket {}: {} {word} by {}", step.id.short(), step.name, step.by.0);
            Told::new("step", with_reason(what, &step.note))
        }
        _ => Told::new("ticket", "changed"),
    }
}
