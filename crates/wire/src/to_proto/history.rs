//! Imports.

use ostler_domain::history::{FileNews, Found, Import, News, Origin, Totals};

use super::{time, usage};
use crate::{enums::to, pb};

pub fn history_origin(origin: &Origin) -> pb::HistoryOrigin {
    pb::HistoryOrigin {
        source: to::history_source(origin.source).into(),
        dialogue: origin.dialogue.clone(),
        file: origin.file.clone(),
        from: origin.from,
    }
}

pub fn import(import: &Import) -> pb::ImportHistoryRequest {
    let store = |store: &ostler_domain::history::Store| pb::HistoryStore {
        source: to::history_source(store.source).into(),
        dir: store.dir.clone(),
    };
    pb::ImportHistoryRequest {
        stores: import.stores.iter().map(store).collect(),
        since: import.since.map(time),
        dry_run: import.dry_run,
        live: import.live,
        watch: import.watch,
    }
}

pub fn import_news(news: &News) -> pb::ImportHistoryResponse {
    use pb::import_history_response::News as Wire;
    let news = match news {
        News::Found(found) => Wire::Found(history_found(found)),
        News::File(file) => Wire::File(history_file(file)),
        News::Done(totals) => Wire::Done(history_totals(totals)),
    };
    pb::ImportHistoryResponse { news: Some(news) }
}

fn history_found(found: &Found) -> pb::HistoryFound {
    pb::HistoryFound {
        source: to::history_source(found.source).into(),
        dir: found.dir.clone(),
        files: found.files,
        bytes: found.bytes,
        why_not: found.why_not.clone(),
        running: found
            .running
            .iter()
            .map(|one| pb::OutsideAgent { pid: one.pid, pane: one.pane.clone() })
            .collect(),
    }
}

fn history_file(news: &FileNews) -> pb::HistoryFile {
    pb::HistoryFile {
        source: to::history_source(news.source).into(),
        file: news.file.clone(),
        dialogue: news.dialogue.clone(),
        title: news.title.clone(),
        verdict: to::history_verdict(news.verdict).into(),
        why: news.why.clone(),
        session_id: news.session.map(|id| id.to_string()),
        last_time: news.last.map(time),
        read: Some(history_totals(&news.read)),
    }
}

fn history_totals(totals: &Totals) -> pb::HistoryTotals {
    pb::HistoryTotals {
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
        usage: Some(usage(totals.usage)),
        repeated: totals.repeated,
    }
}
