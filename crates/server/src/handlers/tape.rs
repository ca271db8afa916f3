//! TapeService.

use ostler_engine::OwnRecord;
use ostler_wire::{
    pb::{self, tape_service_server::TapeService},
    reply::{TapePart, TapeRecord},
    to_proto,
};
use tonic::{Request, Response, Status, async_trait};

use super::{Streamed, refused, streamed};
use crate::Served;

#[async_trait]
impl TapeService for Served {
    type ReadTapeStream = Streamed<pb::ReadTapeResponse>;

    async fn read_tape(
        &self,
        request: Request<pb::ReadTapeRequest>,
    ) -> Result<Response<Self::ReadTapeStream>, Status> {
        let pb::ReadTapeRequest { who, offset } = request.into_inner();
        let mut tape = self.engine.tape(&who, offset).await.map_err(refused)?;
        Ok(streamed(move |news| async move {
            while let Some(part) = tape.next().await? {
                let records = part.records.into_iter().map(record).collect();
                let part = to_proto::tape_part(TapePart { records, damage: part.damage });
                if news.send(Ok(part)).await.is_err() {
                    return Ok(());
                }
            }
            Ok(())
        }))
    }
}

fn record(own: OwnRecord) -> TapeRecord {
    let OwnRecord { offset, stream, time, payload, more, input_no } = own;
    TapeRecord { offset, stream: stream.to_owned(), time, payload, more, input_no }
}
