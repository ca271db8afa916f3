//! The daemon and its store.

use ostler_domain::{budget::Today, event::By, price::Dollars, reboot::MachineRestart};

use super::{Result, id, required, required_time, usage};
use crate::{
    enums::from,
    pb,
    reply::{
        Audit, BrokenLine, CampaignUse, CheckNews, DaemonStopping, DiskRoom, DiskUse, DrainState, Finding,
        Halt, HaltState, NodeStatus, PartUse, Progress, SessionUse, StoreSizes, UsageRow, UsageSums,
    },
};

pub fn node_status(status: pb::GetStatusResponse) -> Result<NodeStatus> {
    Ok(NodeStatus {
        pid: status.pid,
        version: status.version,
        node: id(&status.node_id, "node_id")?,
        epoch: status.epoch,
        started: required_time(status.started_time, "started_time")?,
        state_dir: status.state_dir,
        live_sessions: status.live_sessions,
        memory_held_by: status.memory_held_by,
        detached_sessions: status.detached_sessions,
        drain: status.drain.map(drain).transpose().map_err(|e| e.within("drain"))?,
        halt: status.halt.map(halt_state).transpose().map_err(|e| e.within("halt"))?,
        store: store_sizes(required(status.store, "store")?),
        last_seq: status.last_seq,
        schema_version: status.schema_version,
        waiting_sessions: status.waiting_sessions,
        disk: status.disk.map(disk_room),
        machine_restart: status.machine_restart.map(machine_restart).transpose()?,
        keeper_versions: status
            .keeper_versions
            .into_iter()
            .map(|keepers| (keepers.version, keepers.keepers))
            .collect(),
    })
}

fn machine_restart(restart: pb::MachineRestart) -> Result<MachineRestart> {
    let at = required_time(restart.restarted_time, "machine_restart.restarted_time")?;
    Ok(MachineRestart { at, lost: restart.lost_sessions })
}

pub fn disk_use(used: pb::GetDiskUseResponse) -> Result<DiskUse> {
    Ok(DiskUse {
        disk: disk_room(required(used.disk, "disk")?),
        parts: used
            .parts
            .into_iter()
            .map(|part| PartUse { part: part.part, bytes: part.bytes, files: part.files })
            .collect(),
        campaigns: used.campaigns.iter().map(campaign_use).collect::<Result<_>>()?,
        sessions: used.sessions.iter().map(session_use).collect::<Result<_>>()?,
    })
}

fn campaign_use(of: &pb::CampaignSpace) -> Result<CampaignUse> {
    Ok(CampaignUse {
        campaign: id(&of.campaign_id, "campaigns.campaign_id")?,
        sessions: of.sessions,
        tapes: of.tape_bytes,
        homes: of.home_bytes,
    })
}

fn session_use(of: &pb::SessionSpace) -> Result<SessionUse> {
    Ok(SessionUse {
        id: id(&of.session_id, "sessions.session_id")?,
        name: id(&of.name, "sessions.name")?,
        campaign: id(&of.campaign_id, "sessions.campaign_id")?,
        has_ended: of.ended,
        tape: of.tape_bytes,
        home: of.home_bytes,
    })
}

pub fn disk_room(disk: pb::DiskRoom) -> DiskRoom {
    DiskRoom { free: disk.free_bytes, total: disk.total_bytes, least: disk.least_bytes }
}

pub fn drain(drain: pb::DrainState) -> Result<DrainState> {
    Ok(DrainState { by: By(drain.by), why: drain.why, since: required_time(drain.since, "since")? })
}

pub fn halt_state(halt: pb::HaltState) -> Result<HaltState> {
    Ok(HaltState {
        freeze: halt.freeze,
        by: By(halt.by),
        why: halt.why,
        since: required_time(halt.since, "since")?,
    })
}

pub fn halt(halt: pb::HaltResponse) -> Result<Halt> {
    let state = halt_state(required(halt.halt, "halt")?).map_err(|e| e.within("halt"))?;
    Ok(Halt { state, sessions: halt.sessions })
}

pub fn store_sizes(sizes: pb::StoreSizes) -> StoreSizes {
    let pb::StoreSizes { database_bytes, search_bytes, sessions, unsearched_events } = sizes;
    StoreSizes { database_bytes, search_bytes, sessions, unsearched_events }
}

pub fn daemon_stopping(stopping: pb::StopDaemonResponse) -> DaemonStopping {
    DaemonStopping { pid: stopping.pid, sessions_left_running: stopping.sessions_left_running }
}

pub fn usage_sums(sums: pb::GetUsageResponse) -> Result<UsageSums> {
    Ok(UsageSums {
        total: usage_row(required(sums.total, "total")?).map_err(|e| e.within("total"))?,
        rows: sums.rows.into_iter().map(usage_row).collect::<Result<_>>().map_err(|e| e.within("rows"))?,
    })
}

pub fn today(today: &pb::GetTodayResponse) -> Today {
    Today {
        paid: Dollars(today.micro_usd),
        plan: Dollars(today.plan_micro_usd),
        is_unknown: today.has_unpriced,
        budget: today.budget_micro_usd.map(Dollars),
        tokens: today.tokens,
    }
}

pub fn usage_row(row: pb::UsageRow) -> Result<UsageRow> {
    Ok(UsageRow {
        key: row.key,
        name: row.name,
        usage: usage(required(row.usage, "usage")?),
        sessions: row.sessions,
        calls: row.calls,
        cost: Dollars(row.micro_usd),
        plan: Dollars(row.plan_micro_usd),
        unpriced: row.unpriced.map(usage).unwrap_or_default(),
        plan_unpriced: row.plan_unpriced.map(usage).unwrap_or_default(),
    })
}

pub fn progress(progress: pb::StoreProgress) -> Progress {
    Progress { step: progress.step, done: progress.done, total: progress.total }
}

pub fn finding(finding: pb::StoreFinding) -> Result<Finding> {
    Ok(Finding {
        severity: from::severity(finding.severity, "severity")?,
        place: finding.place,
        message: finding.message,
    })
}

pub fn check_news(news: pb::CheckStoreResponse) -> Result<CheckNews> {
    use pb::check_store_response::News;
    Ok(match required(news.news, "news")? {
        News::Progress(made) => CheckNews::Progress(progress(made)),
        News::Finding(found) => CheckNews::Finding(finding(found).map_err(|e| e.within("finding"))?),
    })
}

pub fn audit(answer: pb::VerifyAuditResponse) -> Audit {
    let pb::VerifyAuditResponse { path, lines, torn, broken_line, why } = answer;
    Audit { path, lines, torn, broken: broken_line.map(|line| BrokenLine { line, why }) }
}
