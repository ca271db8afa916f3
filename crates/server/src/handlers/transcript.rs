//! TranscriptService.

use ostler_domain::Refusal;
use ostler_engine::Engine;
use ostler_wire::{
    pb::{self, transcript_service_server::TranscriptService},
    to_proto,
};
use tonic::{Request, Response, Status, async_trait};

use super::{News, Streamed, refused, streamed};
use crate::Served;

/// So large is a piece: however long a transcript or a line of it is, no more is held.
const PIECE: usize = 64 * 1024;

#[async_trait]
impl TranscriptService for Served {
    type GetTranscriptStream = Streamed<pb::GetTranscriptResponse>;
    type VerifyTranscriptsStream = Streamed<pb::VerifyTranscriptsResponse>;

    async fn get_transcript(
        &self,
        request: Request<pb::GetTranscriptRequest>,
    ) -> Result<Response<Self::GetTranscriptStream>, Status> {
        let mut transcript = self.engine.transcript(&request.into_inner().who).await.map_err(refused)?;
        Ok(streamed(move |news| async move {
            while let Some(lines) = transcript.next().await? {
                let text: String = lines.iter().map(ostler_domain::transcript::Line::to_json).collect();
                for piece in text.as_bytes().chunks(PIECE) {
                    let answer = pb::GetTranscriptResponse { piece: piece.to_vec() };
                    if news.send(Ok(answer)).await.is_err() {
                        return Ok(());
                    }
                }
            }
            Ok(())
        }))
    }

    async fn verify_transcripts(
        &self,
        request: Request<pb::VerifyTranscriptsRequest>,
    ) -> Result<Response<Self::VerifyTranscriptsStream>, Status> {
        let pb::VerifyTranscriptsRequest { who, rebuild } = request.into_inner();
        let engine = self.engine.clone();
        if who.is_empty() {
            return Ok(streamed(move |news| verify_all(engine, rebuild, news)));
        }
        let id = engine.conversation(&who).await.map_err(refused)?.id;
        let verified = engine.verify_transcript(id, rebuild).await.map_err(refused)?;
        Ok(streamed(move |news| async move {
            let _ = news.send(Ok(to_proto::verified(&verified))).await;
            Ok(())
        }))
    }
}

async fn verify_all(
    engine: Engine,
    rebuild: bool,
    news: News<pb::VerifyTranscriptsResponse>,
) -> Result<(), Refusal> {
    let mut after = None;
    loop {
        let written = engine.written_transcripts(after).await?;
        let Some(last) = written.last() else { return Ok(()) };
        after = Some(*last);
        for id in written {
            let verified = engine.verify_transcript(id, rebuild).await?;
            if news.send(Ok(to_proto::verified(&verified))).await.is_err() {
                return Ok(());
            }
        }
    }
}
