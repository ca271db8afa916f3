//! How long what was said is kept.

use ostler_domain::{
    query::{Listed, Page},
    retention::{MissionStep, Planned, Standing},
};
use ostler_wire::{
    InvalidField, from_proto,
    pb::{self, retention_service_client::RetentionServiceClient as Service},
    to_proto,
};

use crate::{Client, Error, Incoming, socket};

impl Client {
    /// What the rules come to now, in one campaign or in all. Changes nothing.
    pub async fn plan_retention(&self, campaign: Option<&str>) -> Result<Incoming<Planned>, Error> {
        let request = pb::PlanRetentionRequest { campaign: campaign.unwrap_or_default().to_owned() };
        let answers =
            self.ask(async |channel| Service::new(channel).plan_retention(request.clone()).await).await?;
        let read = |answer: pb::PlanRetentionResponse| planned(answer.planned, "planned");
        Ok(Incoming::new(answers, read, socket::path(&self.home)))
    }

    /// Does what the rules say now. Ends where the answers are no longer read.
    pub async fn run_retention(&self, campaign: Option<&str>) -> Result<Incoming<Planned>, Error> {
        let request = pb::RunRetentionRequest { campaign: campaign.unwrap_or_default().to_owned() };
        let answers =
            self.ask(async |channel| Service::new(channel).run_retention(request.clone()).await).await?;
        let read = |answer: pb::RunRetentionResponse| planned(answer.done, "done");
        Ok(Incoming::new(answers, read, socket::path(&self.home)))
    }

    /// What the rules come to now for what missions have left behind. Changes nothing.
    pub async fn plan_missions(&self, campaign: Option<&str>) -> Result<Vec<MissionStep>, Error> {
        let request = pb::PlanMissionRetentionRequest { campaign: campaign.unwrap_or_default().to_owned() };
        let answer = self
            .ask(async |channel| Service::new(channel).plan_mission_retention(request.clone()).await)
            .await?;
        Ok(mission_steps(answer.planned)?)
    }

    /// Does what the rules say now with what missions have left behind.
    pub async fn archive_missions(&self, campaign: Option<&str>) -> Result<Vec<MissionStep>, Error> {
        let request = pb::RunMissionRetentionRequest { campaign: campaign.unwrap_or_default().to_owned() };
        let answer = self
            .ask(async |channel| Service::new(channel).run_mission_retention(request.clone()).await)
            .await?;
        Ok(mission_steps(answer.done)?)
    }

    /// Clears away what a mission that is over has left behind; its record stays.
    pub async fn remove_mission(&self, who: &str) -> Result<MissionStep, Error> {
        let request = pb::RemoveMissionRequest { who: who.to_owned() };
        let answer =
            self.ask(async |channel| Service::new(channel).remove_mission(request.clone()).await).await?;
        let done = answer.done.ok_or_else(|| InvalidField::new("done", "it is missing"))?;
        Ok(from_proto::mission_step(done).map_err(|error| error.within("done"))?)
    }

    /// Sessions that somebody or a rule touched, newest-created first.
    pub async fn retention(&self, page: Page) -> Result<Listed<Standing>, Error> {
        let request = pb::ListRetentionRequest { limit: page.limit, cursor: to_proto::cursor(page.cursor) };
        let answer =
            self.ask(async |channel| Service::new(channel).list_retention(request.clone()).await).await?;
        Ok(from_proto::listed(answer.retentions, &answer.next_cursor, from_proto::retention)?)
    }

    /// How a session stands.
    pub async fn retention_of(&self, who: &str) -> Result<Standing, Error> {
        let request = pb::GetRetentionRequest { who: who.to_owned() };
        let answer =
            self.ask(async |channel| Service::new(channel).get_retention(request.clone()).await).await?;
        Ok(standing(answer.retention)?)
    }

    /// Keeps all rules from a session, or lets them at it again.
    pub async fn hold_retention(&self, who: &str, is_held: bool, why: &str) -> Result<Standing, Error> {
        let request = pb::HoldRetentionRequest {
            request_id: self.request_id().to_string(),
            who: who.to_owned(),
            release: !is_held,
            why: why.to_owned(),
        };
        let answer = self
            .ask_as(&request.request_id, async |channel| {
                Service::new(channel).hold_retention(request.clone()).await
            })
            .await?;
        Ok(standing(answer.retention)?)
    }

    /// Keeps a session as it was: no longer compressed, and not to be deleted. Rules count from now on.
    pub async fn restore_retention(&self, who: &str) -> Result<Standing, Error> {
        let request =
            pb::RestoreRetentionRequest { request_id: self.request_id().to_string(), who: who.to_owned() };
        let answer = self
            .ask_as(&request.request_id, async |channel| {
                Service::new(channel).restore_retention(request.clone()).await
            })
            .await?;
        Ok(standing(answer.retention)?)
    }
}

fn standing(retention: Option<pb::Retention>) -> Result<Standing, InvalidField> {
    from_proto::retention(from_proto::required(retention, "retention")?).map_err(|e| e.within("retention"))
}

fn planned(planned: Option<pb::PlannedRetention>, field: &'static str) -> Result<Planned, InvalidField> {
    from_proto::planned(from_proto::required(planned, field)?).map_err(|e| e.within(field))
}

fn mission_steps(answers: Vec<pb::MissionRetention>) -> Result<Vec<MissionStep>, InvalidField> {
    answers.into_iter().map(from_proto::mission_step).collect()
}
