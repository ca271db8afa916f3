//! Imports.

use ostler_domain::history::{
    FileNews, Found, Import, News, Origin, Outside, Source, Store, Totals, Verdict,
};

use super::Dice;

impl Dice {
    pub(crate) fn history_origin(&mut self) -> Origin {
        Origin { source: self.of(Source::ALL), dialogue: self.text(), file: self.text(), from: self.number() }
    }

    pub(crate) fn import(&mut self) -> Import {
        Import {
            stores: self
                .some(|dice| Store { source: dice.of(Source::ALL), dir: format!("/{}", dice.text()) }),
            since: self.maybe(Self::time),
            dry_run: self.number().is_multiple_of(2),
            live: self.number().is_multiple_of(2),
            watch: self.number().is_multiple_of(2),
        }
    }

    fn history_totals(&mut self) -> Totals {
        Totals {
            files: self.number(),
            new: self.number(),
            grown: self.number(),
            same: self.number(),
            changed: self.number(),
            empty: self.number(),
            failed: self.number(),
            bytes: self.number(),
            lines: self.number(),
            unreadable: self.number(),
            events: self.number(),
            calls: self.number(),
            usage: self.usage(),
            repeated: self.number(),
        }
    }

    pub(crate) fn import_news(&mut self) -> Vec<News> {
        let found = Found {
            source: self.of(Source::ALL),
            dir: self.text(),
            files: self.number(),
            bytes: self.number(),
            why_not: self.maybe(Self::text),
            running: self.some(|dice| Outside { pid: dice.small(), pane: dice.maybe(Self::text) }),
        };
        let file = FileNews {
            source: self.of(Source::ALL),
            file: self.text(),
            dialogue: self.text(),
            title: self.text(),
            verdict: self.of(Verdict::ALL),
            why: self.maybe(Self::text),
            session: self.maybe(Self::session_id),
            last: self.maybe(Self::time),
            read: self.history_totals(),
        };
        vec![News::Found(found), News::File(Box::new(file)), News::Done(self.history_totals())]
    }
}
