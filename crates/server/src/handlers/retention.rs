//! RetentionService.

use ostler_engine::Engine;
use ostler_wire::{
    from_proto,
    pb::{self, retention_service_server::RetentionService},
    to_proto,
};
use tonic::{Request, Response, Status, async_trait};

use super::{Streamed, change, invalid, refused, streamed};
use crate::Served;

#[async_trait]
impl RetentionService for Served {
    type PlanRetentionStream = Streamed<pb::PlanRetentionResponse>;
    type RunRetentionStream = Streamed<pb::RunRetentionResponse>;

    async fn plan_retention(
        &self,
        request: Request<pb::PlanRetentionRequest>,
    ) -> Result<Response<Self::PlanRetentionStream>, Status> {
        let mut plan = plan(&self.engine, &request.get_ref().campaign).await?;
        Ok(streamed(move |news| async move {
            while let Some(planned) = plan.next().await? {
                let answer = pb::PlanRetentionResponse { planned: Some(to_proto::planned(&planned)) };
                if news.send(Ok(answer)).await.is_err() {
                    return Ok(());
                }
            }
            Ok(())
        }))
    }

    async fn run_retention(
        &self,
        request: Request<pb::RunRetentionRequest>,
    ) -> Result<Response<Self::RunRetentionStream>, Status> {
        let change = change(&request, "")?;
        let mut plan = plan(&self.engine, &request.get_ref().campaign).await?;
        let engine = self.engine.clone();
        Ok(streamed(move |news| async move {
            while let Some(planned) = plan.next().await? {
                let done = match planned.spared {
                    Some(_) => planned,
                    None => engine.follow(planned, &change).await?,
                };
                // Whoever does not want to know any more does not want more done either.
                let answer = pb::RunRetentionResponse { done: Some(to_proto::planned(&done)) };
                if news.send(Ok(answer)).await.is_err() {
                    return Ok(());
                }
            }
            Ok(())
        }))
    }

    async fn plan_mission_retention(
        &self,
        request: Request<pb::PlanMissionRetentionRequest>,
    ) -> Result<Response<pb::PlanMissionRetentionResponse>, Status> {
        let campaign = said(&request.get_ref().campaign);
        let steps = self.engine.plan_missions(campaign).await.map_err(refused)?;
        let planned = steps.iter().map(to_proto::mission_step).collect();
        Ok(Response::new(pb::PlanMissionRetentionResponse { planned }))
    }

    async fn run_mission_retention(
        &self,
        request: Request<pb::RunMissionRetentionRequest>,
    ) -> Result<Response<pb::RunMissionRetentionResponse>, Status> {
        let change = change(&request, "")?;
        let campaign = said(&request.get_ref().campaign);
        let steps = self.engine.archive_missions(campaign, &change).await.map_err(refused)?;
        let done = steps.iter().map(to_proto::mission_step).collect();
        Ok(Response::new(pb::RunMissionRetentionResponse { done }))
    }

    async fn remove_mission(
        &self,
        request: Request<pb::RemoveMissionRequest>,
    ) -> Result<Response<pb::RemoveMissionResponse>, Status> {
        let change = change(&request, "")?;
        let step = self.engine.remove_mission(&request.get_ref().who, change).await.map_err(refused)?;
        Ok(Response::new(pb::RemoveMissionResponse { done: Some(to_proto::mission_step(&step)) }))
    }

    async fn list_retention(
        &self,
        request: Request<pb::ListRetentionRequest>,
    ) -> Result<Response<pb::ListRetentionResponse>, Status> {
        let pb::ListRetentionRequest { limit, cursor } = request.into_inner();
        let page = from_proto::page(limit, &cursor).map_err(invalid)?;
        let listed = self.engine.retention(page).await.map_err(refused)?;
        Ok(Response::new(pb::ListRetentionResponse {
            retentions: listed.rows.iter().map(to_proto::retention).collect(),
            next_cursor: to_proto::cursor(listed.next_cursor),
        }))
    }

    async fn get_retention(
        &self,
        request: Request<pb::GetRetentionRequest>,
    ) -> Result<Response<pb::GetRetentionResponse>, Status> {
        let standing = self.engine.retention_of(&request.get_ref().who).await.map_err(refused)?;
        Ok(Response::new(pb::GetRetentionResponse { retention: Some(to_proto::retention(&standing)) }))
    }

    async fn hold_retention(
        &self,
        request: Request<pb::HoldRetentionRequest>,
    ) -> Result<Response<pb::HoldRetentionResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let pb::HoldRetentionRequest { who, release, why, .. } = request.into_inner();
        let standing = self.engine.hold_retention(&who, !release, why, change).await.map_err(refused)?;
        Ok(Response::new(pb::HoldRetentionResponse { retention: Some(to_proto::retention(&standing)) }))
    }

    async fn restore_retention(
        &self,
        request: Request<pb::RestoreRetentionRequest>,
    ) -> Result<Response<pb::RestoreRetentionResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let standing =
            self.engine.restore_retention(&request.get_ref().who, change).await.map_err(refused)?;
        Ok(Response::new(pb::RestoreRetentionResponse { retention: Some(to_proto::retention(&standing)) }))
    }
}

async fn plan(engine: &Engine, campaign: &str) -> Result<ostler_engine::Planning, Status> {
    engine.plan_retention(said(campaign)).await.map_err(refused)
}

/// The campaign that is asked for; none for all.
fn said(campaign: &str) -> Option<&str> {
    Some(campaign).filter(|campaign| !campaign.is_empty())
}
