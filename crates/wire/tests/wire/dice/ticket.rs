//! Tickets.

use ostler_domain::{
    TicketId,
    conversation::TurnRef,
    event::By,
    price::Dollars,
    query::TicketFilter,
    session::Outcome,
    ticket::{
        About, Blocker, Checkpoint, Dated, ExternalRef, ImportChange, Imported, Iteration, Links, Output,
        OutputKind, Status, Step, Ticket, Whole, Work,
    },
};

use super::Dice;

impl Dice {
    pub(crate) fn ticket_id(&mut self) -> TicketId {
        let (at, entropy) = self.entropy();
        TicketId::new(at, entropy)
    }

    fn external(&mut self) -> ExternalRef {
        self.of(&["gh:shop#412", "bead:gt-xyz", "md:todo.md#ünïcode"]).parse().unwrap()
    }

    fn ticket_status(&mut self) -> Status {
        self.of(&Status::ALL)
    }

    fn about(&mut self) -> About {
        let intent = self.of(&["Fix it", "Fix it\n\nIt fails at noon.", "日本語 🐎"]);
        About::new(intent, Some("bug")).unwrap()
    }

    pub(crate) fn ticket(&mut self) -> Ticket {
        Ticket {
            id: self.ticket_id(),
            campaign: self.campaign_id(),
            about: self.about(),
            links: Links {
                external: self.maybe(Self::external),
                conversation: self.maybe(Self::conversation_id),
                depends_on: vec![self.ticket_id(), self.ticket_id()],
            },
            status: self.ticket_status(),
            added: self.time(),
            by: By(self.text()),
            moved: self.time(),
            why: self.maybe(Self::text),
        }
    }

    fn checkpoint(&mut self) -> Dated<Checkpoint> {
        let at = self.maybe(|dice| TurnRef { session: dice.session_id(), turn: dice.small() });
        let what = Checkpoint { name: self.text(), at, snapshot: self.maybe(Self::text) };
        Dated { what, time: self.time(), by: By(self.text()), session: at.map(|at| at.session) }
    }

    pub(crate) fn whole_ticket(&mut self) -> Whole {
        let outcome = self.of(&[Outcome::Done, Outcome::Crashed]);
        let output = Output { name: self.text(), kind: self.of(&OutputKind::ALL), value: self.text() };
        Whole {
            ticket: self.ticket(),
            depends_on: vec![Blocker {
                id: self.ticket_id(),
                status: self.ticket_status(),
                external: self.maybe(Self::external),
                title: self.text(),
            }],
            outputs: vec![Dated {
                what: output,
                time: self.time(),
                by: By(self.text()),
                session: self.maybe(Self::session_id),
            }],
            checkpoints: vec![self.checkpoint()],
            steps: vec![Step {
                name: self.text(),
                session: self.maybe(Self::session_id),
                started: self.maybe(Self::time),
                ended: self.maybe(Self::time),
                success: self.maybe(Self::yes),
                note: self.text(),
            }],
            iterations: vec![Iteration {
                session: self.session_id(),
                name: self.text(),
                provider: self.text(),
                started: self.time(),
                ended: self.maybe(Self::time),
                result: self.maybe(|_| outcome),
                usage: self.usage(),
                cost: self.maybe(Self::number).map(Dollars),
                calls: self.number(),
            }],
        }
    }

    pub(crate) fn work(&mut self) -> Work {
        Work {
            external: self.external(),
            about: self.about(),
            status: self.ticket_status(),
            depends_on: vec![self.external()],
        }
    }

    pub(crate) fn imported(&mut self) -> Imported {
        Imported {
            external: self.external(),
            id: self.maybe(Self::ticket_id),
            change: self.of(&[ImportChange::Added, ImportChange::Changed, ImportChange::Same]),
        }
    }

    pub(crate) fn ticket_filter(&mut self) -> TicketFilter {
        TicketFilter {
            campaign: self.maybe(Self::campaign_id),
            statuses: vec![self.ticket_status()],
            kind: self.maybe(Self::text),
            agent: self.maybe(Self::text),
            external: self.maybe(Self::text),
            conversation: self.maybe(Self::conversation_id),
            archived_too: self.yes(),
            since: self.maybe(Self::time),
            until: self.maybe(Self::time),
        }
    }
}
