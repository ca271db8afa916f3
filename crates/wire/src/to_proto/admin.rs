//! The daemon and its store.

use ostler_domain::{budget::Today, reboot::MachineRestart};

use super::{time, usage};
use crate::{
    enums::to,
    pb,
    reply::{
        Audit, CampaignUse, CheckNews, DaemonStopping, DiskRoom, DiskUse, DrainState, Finding, Halt,
        HaltState, NodeStatus, Progress, SessionUse, StoreSizes, UsageRow, UsageSums,
    },
};

pub fn node_status(status: &NodeStatus) -> pb::GetStatusResponse {
    pb::GetStatusResponse {
        pid: status.pid,
        version: status.version.clone(),
        node_id: status.node.to_string(),
        epoch: status.epoch,
        started_time: Some(time(status.started)),
        state_dir: status.state_dir.clone(),
        live_sessions: status.live_sessions,
        memory_held_by: status.memory_held_by.clone(),
        detached_sessions: status.detached_sessions,
        halt: status.halt.as_ref().map(halt_state),
        drain: status.drain.as_ref().map(drain),
        store: Some(store_sizes(status.store)),
        last_seq: status.last_seq,
        schema_version: status.schema_version,
        waiting_sessions: status.waiting_sessions,
        disk: status.disk.map(disk_room),
        machine_restart: status.machine_restart.map(machine_restart),
        keeper_versions: status
            .keeper_versions
            .iter()
            .map(|(version, keepers)| pb::KeeperVersion { version: version.clone(), keepers: *keepers })
            .collect(),
    }
}

fn machine_restart(restart: MachineRestart) -> pb::MachineRestart {
    pb::MachineRestart { restarted_time: Some(time(restart.at)), lost_sessions: restart.lost }
}

pub fn disk_use(used: &DiskUse) -> pb::GetDiskUseResponse {
    pb::GetDiskUseResponse {
        disk: Some(disk_room(used.disk)),
        parts: used
            .parts
            .iter()
            .map(|part| pb::DiskPart { part: part.part.clone(), bytes: part.bytes, files: part.files })
            .collect(),
        campaigns: used.campaigns.iter().map(campaign_use).collect(),
        sessions: used.sessions.iter().map(session_use).collect(),
    }
}

fn campaign_use(of: &CampaignUse) -> pb::CampaignSpace {
    pb::CampaignSpace {
        campaign_id: of.campaign.to_string(),
        sessions: of.sessions,
        tape_bytes: of.tapes,
        home_bytes: of.homes,
    }
}

fn session_use(of: &SessionUse) -> pb::SessionSpace {
    pb::SessionSpace {
        session_id: of.id.to_string(),
        name: of.name.to_string(),
        campaign_id: of.campaign.to_string(),
        ended: of.has_ended,
        tape_bytes: of.tape,
        home_bytes: of.home,
    }
}

pub fn disk_room(disk: DiskRoom) -> pb::DiskRoom {
    pb::DiskRoom { free_bytes: disk.free, total_bytes: disk.total, least_bytes: disk.least }
}

pub fn drain(drain: &DrainState) -> pb::DrainState {
    pb::DrainState { by: drain.by.0.clone(), why: drain.why.clone(), since: Some(time(drain.since)) }
}

pub fn halt_state(halt: &HaltState) -> pb::HaltState {
    pb::HaltState {
        freeze: halt.freeze,
        by: halt.by.0.clone(),
        why: halt.why.clone(),
        since: Some(time(halt.since)),
    }
}

pub fn halt(halt: &Halt) -> pb::HaltResponse {
    pb::HaltResponse { halt: Some(halt_state(&halt.state)), sessions: halt.sessions }
}

pub fn store_sizes(sizes: StoreSizes) -> pb::StoreSizes {
    let StoreSizes { database_bytes, search_bytes, sessions, unsearched_events } = sizes;
    pb::StoreSizes { database_bytes, search_bytes, sessions, unsearched_events }
}

pub fn daemon_stopping(stopping: DaemonStopping) -> pb::StopDaemonResponse {
    pb::StopDaemonResponse { pid: stopping.pid, sessions_left_running: stopping.sessions_left_running }
}

pub fn usage_sums(sums: &UsageSums) -> pb::GetUsageResponse {
    pb::GetUsageResponse {
        total: Some(usage_row(&sums.total)),
        rows: sums.rows.iter().map(usage_row).collect(),
    }
}

pub fn today(today: &Today) -> pb::GetTodayResponse {
    pb::GetTodayResponse {
        micro_usd: today.paid.0,
        plan_micro_usd: today.plan.0,
        has_unpriced: today.is_unknown,
        budget_micro_usd: today.budget.map(|budget| budget.0),
        tokens: today.tokens,
    }
}

pub fn usage_row(row: &UsageRow) -> pb::UsageRow {
    pb::UsageRow {
        key: row.key.clone(),
        name: row.name.clone(),
        usage: Some(usage(row.usage)),
        sessions: row.sessions,
        calls: row.calls,
        micro_usd: row.cost.0,
        plan_micro_usd: row.plan.0,
        unpriced: Some(usage(row.unpriced)),
        plan_unpriced: Some(usage(row.plan_unpriced)),
    }
}

pub fn progress(progress: &Progress) -> pb::StoreProgress {
    pb::StoreProgress { step: progress.step.clone(), done: progress.done, total: progress.total }
}

pub fn finding(finding: &Finding) -> pb::StoreFinding {
    pb::StoreFinding {
        severity: to::severity(finding.severity).into(),
        place: finding.place.clone(),
        message: finding.message.clone(),
    }
}

pub fn check_news(news: &CheckNews) -> pb::CheckStoreResponse {
    use pb::check_store_response::News;
    let news = match news {
        CheckNews::Progress(made) => News::Progress(progress(made)),
        CheckNews::Finding(found) => News::Finding(finding(found)),
    };
    pb::CheckStoreResponse { news: Some(news) }
}

pub fn audit(audit: &Audit) -> pb::VerifyAuditResponse {
    let Audit { path, lines, torn, broken } = audit.clone();
    let (broken_line, why) = broken.map(|broken| (broken.line, broken.why)).unzip();
    pb::VerifyAuditResponse { path, lines, torn, broken_line, why: why.unwrap_or_default() }
}
