//! Imports.

use ostler_domain::history::{FileNews, Found, Import, News, Origin, Outside, Store, Totals};

use super::{Result, id, optional_time, text, usage};
use crate::{InvalidField, enums::from, pb};

pub fn history_origin(origin: pb::HistoryOrigin) -> Result<Origin> {
    Ok(Origin {
        source: from::history_source(origin.source, "source")?,
        dialogue: origin.dialogue,
        file: origin.file,
        from: origin.from,
    })
}

pub fn import(request: pb::ImportHistoryRequest) -> Result<Import> {
    let store = |store: pb::HistoryStore| {
        Ok(Store {
            source: from::history_source(store.source, "source").map_err(|e| e.within("stores"))?,
            dir: text(store.dir, "stores.dir")?,
        })
    };
    Ok(Import {
        stores: request.stores.into_iter().map(store).collect::<Result<_>>()?,
        since: optional_time(request.since, "since")?,
        dry_run: request.dry_run,
        live: request.live,
        watch: request.watch,
    })
}

pub fn import_news(answer: pb::ImportHistoryResponse) -> Result<News> {
    use pb::import_history_response::News as Wire;
    match answer.news.ok_or_else(|| InvalidField::missing("news"))? {
        Wire::Found(found) => Ok(News::Found(Found {
            source: from::history_source(found.source, "found.source")?,
            dir: found.dir,
            files: found.files,
            bytes: found.bytes,
            why_not: found.why_not,
            running: found.running.into_iter().map(|one| Outside { pid: one.pid, pane: one.pane }).collect(),
        })),
        Wire::File(file) => {
            history_file(file).map(|file| News::File(Box::new(file))).map_err(|e| e.within("file"))
        }
        Wire::Done(totals) => Ok(News::Done(history_totals(totals))),
    }
}

fn history_file(file: pb::HistoryFile) -> Result<FileNews> {
    Ok(FileNews {
        source: from::history_source(file.source, "source")?,
        file: file.file,
        dialogue: file.dialogue,
        title: file.title,
        verdict: from::history_verdict(file.verdict, "verdict")?,
        why: file.why,
        session: file.session_id.map(|session| id(&session, "session_id")).transpose()?,
        last: optional_time(file.last_time, "last_time")?,
        read: file.read.map(history_totals).unwrap_or_default(),
    })
}

fn history_totals(totals: pb::HistoryTotals) -> Totals {
    Totals {
        files: totals.files,
        new: totals.new,
        grown: totals.grown,
        same: totals.same,
        changed: totals.changed,
        empty: totals.empty,
        failed: totals.failed,
        bytes: totals.bytes,
        lines: totals.lines,
        unreadable: totals.unreadable,
        events: totals.events,
        calls: totals.calls,
        usage: totals.usage.map(usage).unwrap_or_default(),
        repeated: totals.repeated,
    }
}
