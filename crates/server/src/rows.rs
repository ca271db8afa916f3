//! The engine's rows in the words of the wire.

use ostler_domain::{
    Message,
    event::By,
    query::{UsageBy, UsageSum},
    space::{OfCampaign, OfSession, Part, Taken},
};
use ostler_engine::{
    ApprovalRow, ApprovalState, BackupProgress, DiskRoom, DiskUse, Drain, Finding, Halt, MessageRow, Verified,
};
use ostler_wire::reply;

pub(crate) fn approval(row: ApprovalRow) -> reply::Approval {
    let answer = match row.state {
        ApprovalState::Open => None,
        ApprovalState::Answered(answer) => Some(reply::Answered {
            answer,
            by: row.by.unwrap_or_else(By::ostler),
            message: row.message.unwrap_or_default(),
            at: row.answered.unwrap_or(row.asked),
            rules: row.rules,
        }),
    };
    reply::Approval {
        id: row.id,
        session: row.session,
        tool: row.tool,
        input: row.input,
        asks: row.asks,
        kind: row.kind,
        why: row.why,
        asked: row.asked,
        deadline: row.deadline,
        answer,
    }
}

pub(crate) fn disk_room(disk: DiskRoom) -> reply::DiskRoom {
    reply::DiskRoom { free: disk.free, total: disk.total, least: disk.least }
}

pub(crate) fn disk_use(used: DiskUse) -> reply::DiskUse {
    let part = |(part, taken): (Part, Taken)| reply::PartUse {
        part: part.as_str().to_owned(),
        bytes: taken.bytes,
        files: taken.files,
    };
    let campaign = |of: OfCampaign| reply::CampaignUse {
        campaign: of.campaign,
        sessions: of.sessions,
        tapes: of.tapes,
        homes: of.homes,
    };
    let session = |of: OfSession| reply::SessionUse {
        id: of.id,
        name: of.name,
        campaign: of.campaign,
        has_ended: of.has_ended,
        tape: of.tape,
        home: of.home,
    };
    reply::DiskUse {
        disk: disk_room(used.disk),
        parts: used.parts.into_iter().map(part).collect(),
        campaigns: used.campaigns.into_iter().map(campaign).collect(),
        sessions: used.sessions.into_iter().map(session).collect(),
    }
}

pub(crate) fn delivery(row: MessageRow) -> reply::Delivery {
    let learnt = [row.ended, row.answered, row.seen, row.delivered, row.sent].into_iter().flatten().next();
    reply::Delivery {
        message: Message { id: row.id, text: row.head, mode: row.mode },
        conversation: row.conversation,
        session: row.session,
        receipt: row.receipt,
        by: row.by,
        accepted: row.accepted,
        receipt_at: learnt.unwrap_or(row.accepted),
        turn: row.turn,
        why: row.why,
        rule: row.rule,
        key: row.key,
    }
}

pub(crate) fn drain(drain: &Drain) -> reply::DrainState {
    reply::DrainState { by: drain.by.clone(), why: drain.why.clone(), since: drain.since }
}

pub(crate) fn halt(halt: &Halt) -> reply::HaltState {
    reply::HaltState { freeze: halt.freeze, by: halt.by.clone(), why: halt.why.clone(), since: halt.since }
}

pub(crate) fn usage_by(by: reply::UsageBy) -> UsageBy {
    match by {
        reply::UsageBy::Day => UsageBy::Day,
        reply::UsageBy::Model => UsageBy::Model,
        reply::UsageBy::Provider => UsageBy::Provider,
        reply::UsageBy::Campaign => UsageBy::Campaign,
        reply::UsageBy::Session => UsageBy::Session,
        reply::UsageBy::Chain => UsageBy::Chain,
        reply::UsageBy::Ticket => UsageBy::Ticket,
        reply::UsageBy::Mission => UsageBy::Mission,
    }
}

pub(crate) fn usage(sum: UsageSum) -> reply::UsageRow {
    reply::UsageRow {
        key: sum.key,
        name: sum.name,
        usage: sum.usage,
        sessions: sum.sessions,
        calls: sum.calls,
        cost: sum.cost,
        plan: sum.plan,
        unpriced: sum.unpriced,
        plan_unpriced: sum.plan_unpriced,
    }
}

pub(crate) fn finding(finding: &Finding) -> reply::Finding {
    // What is derived, and the search index, can be built anew from the log.
    let severity = match finding.part {
        "derived" | "search" => reply::Severity::Repairable,
        _ => reply::Severity::Damage,
    };
    reply::Finding { severity, place: finding.part.to_owned(), message: finding.text.clone() }
}

pub(crate) fn backup_progress(progress: &BackupProgress) -> reply::Progress {
    let done = progress.pages - progress.pages_left.min(progress.pages);
    reply::Progress { step: "pages".to_owned(), done, total: progress.pages }
}

pub(crate) fn audit(found: Verified) -> reply::Audit {
    let broken = found.broken.map(|(line, why)| reply::BrokenLine { line, why: why.to_owned() });
    let path = found.path.to_string_lossy().into_owned();
    reply::Audit { path, lines: found.lines, torn: found.torn, broken }
}
