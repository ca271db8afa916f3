//! AdminService.

use ostler_domain::{
    Time,
    query::{Page, SessionFilter, UsageBy, UsageFilter},
};
use ostler_engine::CheckDepth;
use ostler_wire::{
    from_proto,
    pb::{self, admin_service_server::AdminService},
    reply::{CheckNews, DaemonStopping, Halt, NodeStatus, Progress, StoreSizes, UsageSums},
    to_proto,
};
use tonic::{Request, Response, Status, async_trait};

use super::{Streamed, change, invalid, refused, streamed};
use crate::{Served, Stop, peer, rows};

#[async_trait]
impl AdminService for Served {
    type CheckStoreStream = Streamed<pb::CheckStoreResponse>;
    type ReindexStoreStream = Streamed<pb::ReindexStoreResponse>;
    type VacuumStoreStream = Streamed<pb::VacuumStoreResponse>;
    type BackupStoreStream = Streamed<pb::BackupStoreResponse>;

    async fn get_status(
        &self,
        _request: Request<pb::GetStatusRequest>,
    ) -> Result<Response<pb::GetStatusResponse>, Status> {
        let status = self.engine.status().await.map_err(refused)?;
        let status = NodeStatus {
            pid: status.pid,
            version: status.version.to_owned(),
            node: status.node,
            epoch: status.epoch,
            started: self.started,
            state_dir: self.state_dir.to_string_lossy().into_owned(),
            live_sessions: status.sessions,
            detached_sessions: status.sessions_detached,
            halt: status.halt.as_ref().map(rows::halt),
            drain: status.drain.as_ref().map(rows::drain),
            store: StoreSizes {
                database_bytes: status.stats.db_bytes + status.stats.wal_bytes,
                search_bytes: status.stats.search_bytes,
                sessions: status.stats.sessions,
                unsearched_events: status
                    .stats
                    .searchable_to
                    .map_or(0, |reached| status.stats.events.saturating_sub(reached)),
            },
            last_seq: status.stats.events,
            schema_version: status.schema_version,
            memory_held_by: status.memory_held_by.to_owned(),
            waiting_sessions: status.waiting,
            disk: Some(rows::disk_room(status.disk)),
            machine_restart: status.machine_restart,
            keeper_versions: status.keeper_versions,
        };
        Ok(Response::new(to_proto::node_status(&status)))
    }

    async fn get_disk_use(
        &self,
        request: Request<pb::GetDiskUseRequest>,
    ) -> Result<Response<pb::GetDiskUseResponse>, Status> {
        let most = Page::of(request.get_ref().limit, None).limit;
        let used = self.engine.disk_use(most as usize).await.map_err(refused)?;
        Ok(Response::new(to_proto::disk_use(&rows::disk_use(used))))
    }

    async fn get_metrics(
        &self,
        _request: Request<pb::GetMetricsRequest>,
    ) -> Result<Response<pb::GetMetricsResponse>, Status> {
        let text = self.engine.metrics(self.started).await.map_err(refused)?;
        Ok(Response::new(pb::GetMetricsResponse { text }))
    }

    async fn halt(&self, request: Request<pb::HaltRequest>) -> Result<Response<pb::HaltResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let wanted = request.into_inner();
        let (halt, sessions) = self.engine.halt(wanted.freeze, &wanted.why, change).await.map_err(refused)?;
        Ok(Response::new(to_proto::halt(&Halt { state: rows::halt(&halt), sessions })))
    }

    async fn drain(&self, request: Request<pb::DrainRequest>) -> Result<Response<pb::DrainResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let drain = self.engine.drain(&request.get_ref().why, change).await.map_err(refused)?;
        Ok(Response::new(pb::DrainResponse { drain: Some(to_proto::drain(&rows::drain(&drain))) }))
    }

    async fn end_drain(
        &self,
        request: Request<pb::EndDrainRequest>,
    ) -> Result<Response<pb::EndDrainResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let was_drained = self.engine.end_drain(change).await.map_err(refused)?;
        Ok(Response::new(pb::EndDrainResponse { was_drained }))
    }

    async fn release_halt(
        &self,
        request: Request<pb::ReleaseHaltRequest>,
    ) -> Result<Response<pb::ReleaseHaltResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let sessions = self.engine.release_halt(change).await.map_err(refused)?;
        Ok(Response::new(pb::ReleaseHaltResponse { sessions }))
    }

    async fn stop_daemon(
        &self,
        request: Request<pb::StopDaemonRequest>,
    ) -> Result<Response<pb::StopDaemonResponse>, Status> {
        let by = peer::by(&request);
        let stop_sessions = request.get_ref().stop_sessions;
        let status = self.engine.status().await.map_err(refused)?;
        self.stop.send_replace(Some(Stop { by, stop_sessions }));
        let left = if stop_sessions { 0 } else { status.running };
        Ok(Response::new(to_proto::daemon_stopping(DaemonStopping {
            pid: status.pid,
            sessions_left_running: left,
        })))
    }

    async fn get_usage(
        &self,
        request: Request<pb::GetUsageRequest>,
    ) -> Result<Response<pb::GetUsageResponse>, Status> {
        let mut request = request.into_inner();
        if let Some(filter) = &mut request.filter {
            self.resolve_sessions(filter).await?;
        }
        let wanted = from_proto::get_usage(request).map_err(invalid)?;
        let filter = usage_filter(wanted.filter, wanted.since, wanted.until);
        let total = self.engine.usage(&filter, UsageBy::Total).await.map_err(refused)?;
        let sums = match wanted.by.map(rows::usage_by) {
            None => Vec::new(),
            Some(by) => self.engine.usage(&filter, by).await.map_err(refused)?,
        };
        let total = total.into_iter().next().map(rows::usage).unwrap_or_default();
        Ok(Response::new(to_proto::usage_sums(&UsageSums {
            total,
            rows: sums.into_iter().map(rows::usage).collect(),
        })))
    }

    async fn get_today(
        &self,
        request: Request<pb::GetTodayRequest>,
    ) -> Result<Response<pb::GetTodayResponse>, Status> {
        let midnight = from_proto::get_today(request.into_inner()).map_err(invalid)?;
        let today = self.engine.today(midnight).await.map_err(refused)?;
        Ok(Response::new(to_proto::today(&today)))
    }

    async fn check_store(
        &self,
        request: Request<pb::CheckStoreRequest>,
    ) -> Result<Response<Self::CheckStoreStream>, Status> {
        let depth = if request.get_ref().full { CheckDepth::Full } else { CheckDepth::Quick };
        let engine = self.engine.clone();
        Ok(streamed(move |news| async move {
            let report = engine.check(depth).await?;
            for finding in &report.findings {
                let _ =
                    news.send(Ok(to_proto::check_news(&CheckNews::Finding(rows::finding(finding))))).await;
            }
            let done =
                Progress { step: "sessions".to_owned(), done: report.sessions, total: report.sessions };
            let _ = news.send(Ok(to_proto::check_news(&CheckNews::Progress(done)))).await;
            Ok(())
        }))
    }

    async fn reindex_store(
        &self,
        _request: Request<pb::ReindexStoreRequest>,
    ) -> Result<Response<Self::ReindexStoreStream>, Status> {
        let engine = self.engine.clone();
        Ok(streamed(move |news| async move {
            let reindexed = engine.reindex().await?;
            let done =
                Progress { step: "sessions".to_owned(), done: reindexed.sessions, total: reindexed.sessions };
            let _ =
                news.send(Ok(pb::ReindexStoreResponse { progress: Some(to_proto::progress(&done)) })).await;
            Ok(())
        }))
    }

    async fn vacuum_store(
        &self,
        _request: Request<pb::VacuumStoreRequest>,
    ) -> Result<Response<Self::VacuumStoreStream>, Status> {
        let engine = self.engine.clone();
        Ok(streamed(move |news| async move {
            let vacuumed = engine.vacuum().await?;
            let done = Progress { step: "bytes".to_owned(), done: vacuumed.after, total: vacuumed.before };
            let _ =
                news.send(Ok(pb::VacuumStoreResponse { progress: Some(to_proto::progress(&done)) })).await;
            Ok(())
        }))
    }

    async fn verify_audit(
        &self,
        _request: Request<pb::VerifyAuditRequest>,
    ) -> Result<Response<pb::VerifyAuditResponse>, Status> {
        let found = self.engine.verify_audit().await.map_err(refused)?;
        Ok(Response::new(to_proto::audit(&rows::audit(found))))
    }

    async fn backup_store(
        &self,
        request: Request<pb::BackupStoreRequest>,
    ) -> Result<Response<Self::BackupStoreStream>, Status> {
        let destination =
            from_proto::text(request.into_inner().destination, "destination").map_err(invalid)?;
        let engine = self.engine.clone();
        Ok(streamed(move |news| async move {
            let progress = {
                let news = news.clone();
                move |step: ostler_engine::BackupProgress| {
                    let progress = rows::backup_progress(&step);
                    // Progress that nobody reads in time is worth nothing later.
                    let _ = news.try_send(Ok(pb::BackupStoreResponse {
                        progress: Some(to_proto::progress(&progress)),
                    }));
                }
            };
            engine.backup(std::path::Path::new(&destination), progress).await?;
            let done = Progress { step: "done".to_owned(), done: 1, total: 1 };
            let _ =
                news.send(Ok(pb::BackupStoreResponse { progress: Some(to_proto::progress(&done)) })).await;
            Ok(())
        }))
    }
}

/// Sums are made over model calls: a model is that of a call, not of its session.
fn usage_filter(sessions: SessionFilter, since: Option<Time>, until: Option<Time>) -> UsageFilter {
    let SessionFilter { campaigns, chains, name, providers, models, tickets, .. } = sessions.clone();
    let rest = SessionFilter {
        campaigns: Vec::new(),
        chains: Vec::new(),
        name: None,
        providers: Vec::new(),
        models: Vec::new(),
        tickets: Vec::new(),
        ..sessions
    };
    let sessions = (rest != SessionFilter::default()).then(|| Box::new(rest));
    UsageFilter { campaigns, session: None, providers, models, name, tickets, chains, since, until, sessions }
}
