//! SqlService.

use std::pin::Pin;

use ostler_wire::{
    from_proto,
    pb::{self, sql_service_server::SqlService},
    to_proto,
};
use tokio_stream::{Stream, wrappers::ReceiverStream};
use tonic::{Request, Response, Status, async_trait};

use super::refused;
use crate::Served;

#[async_trait]
impl SqlService for Served {
    type QueryStream = Pin<Box<dyn Stream<Item = Result<pb::QueryResponse, Status>> + Send>>;

    async fn query(&self, request: Request<pb::QueryRequest>) -> Result<Response<Self::QueryStream>, Status> {
        let mut answer =
            self.engine.sql(from_proto::question(request.into_inner())).await.map_err(refused)?;
        let (news, pieces) = tokio::sync::mpsc::channel(1);
        tokio::spawn(async move {
            loop {
                // Whoever asked may leave while nothing has been found yet: then it is not looked for any more.
                let piece = tokio::select! {
                    piece = answer.next() => piece,
                    () = news.closed() => return,
                };
                let Some(piece) = piece else { return };
                if news.send(piece.map(to_proto::sql_answer).map_err(refused)).await.is_err() {
                    return;
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(pieces))))
    }
}
