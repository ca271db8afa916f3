//! The daemon and its store.

use ostler_domain::{Time, budget::Today};
use ostler_wire::{
    from_proto,
    pb::{self, admin_service_client::AdminServiceClient as Service},
    reply::{Audit, CheckNews, DaemonStopping, DiskUse, DrainState, Halt, NodeStatus, Progress, UsageSums},
    request::GetUsage,
    to_proto,
};

use crate::{Client, Error, Incoming, socket};

impl Client {
    /// Says how the daemon is.
    pub async fn status(&self) -> Result<NodeStatus, Error> {
        let answer =
            self.ask(async |channel| Service::new(channel).get_status(pb::GetStatusRequest {}).await).await?;
        Ok(from_proto::node_status(answer)?)
    }

    /// Looks through the state directory for what takes the space, with so many of the largest sessions.
    pub async fn disk_use(&self, limit: u32) -> Result<DiskUse, Error> {
        let request = pb::GetDiskUseRequest { limit };
        let answer = self.ask(async |channel| Service::new(channel).get_disk_use(request).await).await?;
        Ok(from_proto::disk_use(answer)?)
    }

    /// Measurements in the text format of Prometheus, version 0.0.4.
    pub async fn metrics(&self) -> Result<String, Error> {
        let request = pb::GetMetricsRequest {};
        let answer = self.ask(async |channel| Service::new(channel).get_metrics(request).await).await?;
        Ok(answer.text)
    }

    /// Stops all agents at once, by freezing or by killing them, and lets none start until the halt is released.
    pub async fn halt(&self, freeze: bool, why: &str) -> Result<Halt, Error> {
        let request =
            pb::HaltRequest { request_id: self.request_id().to_string(), freeze, why: why.to_owned() };
        let answer = self
            .ask_as(&request.request_id, async |channel| Service::new(channel).halt(request.clone()).await)
            .await?;
        Ok(from_proto::halt(answer)?)
    }

    /// Lets nothing new start on this machine. What runs goes on; what is asked for waits.
    pub async fn drain(&self, why: &str) -> Result<DrainState, Error> {
        let request = pb::DrainRequest { request_id: self.request_id().to_string(), why: why.to_owned() };
        let answer = self
            .ask_as(&request.request_id, async |channel| Service::new(channel).drain(request.clone()).await)
            .await?;
        Ok(from_proto::drain(from_proto::required(answer.drain, "drain")?)?)
    }

    /// Lets start what waits. Says whether there was a drain.
    pub async fn end_drain(&self) -> Result<bool, Error> {
        let request = pb::EndDrainRequest { request_id: self.request_id().to_string() };
        let answer = self
            .ask_as(&request.request_id, async |channel| {
                Service::new(channel).end_drain(request.clone()).await
            })
            .await?;
        Ok(answer.was_drained)
    }

    /// Ends a halt. Returns how many sessions go on.
    pub async fn release_halt(&self) -> Result<u64, Error> {
        let request = pb::ReleaseHaltRequest { request_id: self.request_id().to_string() };
        let answer = self
            .ask_as(&request.request_id, async |channel| {
                Service::new(channel).release_halt(request.clone()).await
            })
            .await?;
        Ok(answer.sessions)
    }

    /// Ends the daemon. Agents go on without it unless they are to be stopped too. Not asked again when the
    /// connection breaks: the daemon that answers then may be the next one.
    pub async fn stop_daemon(&self, stop_sessions: bool) -> Result<DaemonStopping, Error> {
        let request = pb::StopDaemonRequest { request_id: self.request_id().to_string(), stop_sessions };
        let answer = self.ask_once(async |channel| Service::new(channel).stop_daemon(request).await).await?;
        Ok(from_proto::daemon_stopping(answer))
    }

    /// Adds up tokens.
    pub async fn usage(&self, request: &GetUsage) -> Result<UsageSums, Error> {
        let request = to_proto::get_usage(request);
        let answer = self.ask(async |channel| Service::new(channel).get_usage(request.clone()).await).await?;
        Ok(from_proto::usage_sums(answer)?)
    }

    /// Says what all sessions used today, and what they may cost a day. The day is the caller's own, which began at that
    /// midnight, or UTC's where campaigns have budgets for a day.
    pub async fn today(&self, midnight: Time) -> Result<Today, Error> {
        let request = pb::GetTodayRequest { midnight: Some(to_proto::time(midnight)) };
        let answer = self.ask(async |channel| Service::new(channel).get_today(request).await).await?;
        Ok(from_proto::today(&answer))
    }

    /// Looks for damage in the store: in the database only, or in every event, blob and tape.
    pub async fn check_store(&self, full: bool) -> Result<Incoming<CheckNews>, Error> {
        let request = pb::CheckStoreRequest { full };
        let answers = self.ask(async |channel| Service::new(channel).check_store(request).await).await?;
        Ok(Incoming::new(answers, from_proto::check_news, socket::path(&self.home)))
    }

    /// Rebuilds everything derived from the log. Done when the answers end without an error.
    pub async fn reindex_store(&self) -> Result<Incoming<Progress>, Error> {
        let request = pb::ReindexStoreRequest {};
        let answers = self.ask(async |channel| Service::new(channel).reindex_store(request).await).await?;
        Ok(Incoming::new(answers, |answer| progress(answer.progress), socket::path(&self.home)))
    }

    /// Gives room back to the disk. Done when the answers end without an error.
    pub async fn vacuum_store(&self) -> Result<Incoming<Progress>, Error> {
        let request = pb::VacuumStoreRequest {};
        let answers = self.ask(async |channel| Service::new(channel).vacuum_store(request).await).await?;
        Ok(Incoming::new(answers, |answer| progress(answer.progress), socket::path(&self.home)))
    }

    /// Looks whether the lines of the audit log follow from each other.
    pub async fn verify_audit(&self) -> Result<Audit, Error> {
        let request = pb::VerifyAuditRequest {};
        let answer = self.ask(async |channel| Service::new(channel).verify_audit(request).await).await?;
        Ok(from_proto::audit(answer))
    }

    /// Copies the store into a directory that does not exist yet. Done when the answers end without an error.
    pub async fn backup_store(&self, destination: &str) -> Result<Incoming<Progress>, Error> {
        let request = pb::BackupStoreRequest { destination: destination.to_owned() };
        let answers =
            self.ask(async |channel| Service::new(channel).backup_store(request.clone()).await).await?;
        Ok(Incoming::new(answers, |answer| progress(answer.progress), socket::path(&self.home)))
    }
}

fn progress(progress: Option<pb::StoreProgress>) -> Result<Progress, ostler_wire::InvalidField> {
    from_proto::required(progress, "progress").map(from_proto::progress)
}
