//! HistoryService.

use std::pin::Pin;

use ostler_wire::{
    from_proto,
    pb::{self, history_service_server::HistoryService},
    to_proto,
};
use tokio::sync::mpsc;
use tokio_stream::{Stream, StreamExt, wrappers::ReceiverStream};
use tonic::{Request, Response, Status, async_trait};

use super::{change, invalid, refused};
use crate::Served;

/// News that wait for whoever asked; beyond them the import waits.
const WAITING: usize = 64;

#[async_trait]
impl HistoryService for Served {
    type ImportHistoryStream = Pin<Box<dyn Stream<Item = Result<pb::ImportHistoryResponse, Status>> + Send>>;

    async fn import_history(
        &self,
        request: Request<pb::ImportHistoryRequest>,
    ) -> Result<Response<Self::ImportHistoryStream>, Status> {
        let change = change(&request, "")?;
        let import = from_proto::import(request.into_inner()).map_err(invalid)?;
        let (news, told) = mpsc::channel(WAITING);
        let (end, ended) = mpsc::channel(1);
        let engine = self.engine.clone();
        tokio::spawn(async move {
            if let Err(refusal) = engine.import(import, change, news).await {
                let _ = end.send(Err(refused(refusal))).await;
            }
        });
        let told = ReceiverStream::new(told).map(|news| Ok(to_proto::import_news(&news)));
        Ok(Response::new(Box::pin(told.chain(ReceiverStream::new(ended)))))
    }
}
