//! TranscriptService.

use std::{
    fs::File,
    io::{self, Read},
};

use ostler_domain::Refusal;
use ostler_engine::{Delivery, Engine, ImportedFile};
use ostler_wire::{
    pb::{self, transcript_service_server::TranscriptService},
    to_proto,
};
use tonic::{Request, Response, Status, async_trait};

use super::{News, Streamed, change, refused, streamed};
use crate::Served;

/// So large is a piece: however long a transcript or a line of it is, no more is held.
const PIECE: usize = 64 * 1024;

#[async_trait]
impl TranscriptService for Served {
    type GetTranscriptStream = Streamed<pb::GetTranscriptResponse>;
    type VerifyTranscriptsStream = Streamed<pb::VerifyTranscriptsResponse>;
    type GetImageStream = Streamed<pb::GetImageResponse>;
    type GetImportedFilesStream = Streamed<pb::GetImportedFilesResponse>;

    async fn get_transcript(
        &self,
        request: Request<pb::GetTranscriptRequest>,
    ) -> Result<Response<Self::GetTranscriptStream>, Status> {
        let pb::GetTranscriptRequest { who, as_it_came, with_images } = request.into_inner();
        let (came, mut transcript) = match as_it_came {
            true => self.engine.transcript_as_it_came(&who).await.map_err(refused)?,
            false => (None, self.engine.transcript(&who).await.map_err(refused)?),
        };
        Ok(streamed(move |news| async move {
            if let Some(file) = came
                && !send_file(file, &news).await?
            {
                return Ok(());
            }
            while let Some(mut lines) = transcript.next().await? {
                if with_images {
                    transcript.show_images(&mut lines).await?;
                }
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

    async fn get_image(
        &self,
        request: Request<pb::GetImageRequest>,
    ) -> Result<Response<Self::GetImageStream>, Status> {
        let bytes = self.engine.image(&request.into_inner().sha256).await.map_err(refused)?;
        Ok(streamed(move |news| async move {
            for piece in bytes.chunks(PIECE) {
                if news.send(Ok(pb::GetImageResponse { piece: piece.to_vec() })).await.is_err() {
                    return Ok(());
                }
            }
            Ok(())
        }))
    }

    async fn mirror_delivery(
        &self,
        request: Request<pb::MirrorDeliveryRequest>,
    ) -> Result<Response<pb::MirrorDeliveryResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let pb::MirrorDeliveryRequest { who, text, media_urls, to, .. } = request.into_inner();
        let delivery = Delivery { text, media_urls, to: Some(to).filter(|to| !to.is_empty()) };
        let found = self.engine.mirror_delivery(&who, delivery, change).await.map_err(refused)?;
        let (conversation_id, name) = (found.id.to_string(), found.name.to_string());
        Ok(Response::new(pb::MirrorDeliveryResponse { conversation_id, name }))
    }

    async fn get_imported_files(
        &self,
        request: Request<pb::GetImportedFilesRequest>,
    ) -> Result<Response<Self::GetImportedFilesStream>, Status> {
        let files = self.engine.imported_files(&request.into_inner().who).await.map_err(refused)?;
        Ok(streamed(move |news| async move {
            for file in files {
                if !send_imported(file, &news).await? {
                    return Ok(());
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

/// Sends a file that came in: its name first, and its bytes in pieces. Says whether anybody still listens.
async fn send_imported(
    file: ImportedFile,
    news: &News<pb::GetImportedFilesResponse>,
) -> Result<bool, Refusal> {
    let (mut name, is_transcript) = (Some(file.name.clone()), file.is_transcript);
    let mut reading = file;
    loop {
        let read = tokio::task::spawn_blocking(move || {
            let mut piece = Vec::with_capacity(PIECE);
            let read = reading.read(PIECE, &mut piece);
            read.map(|()| (reading, piece))
        });
        let read = read.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        let (rest, piece) = read.map_err(|error| {
            Refusal::internal("a file that was imported cannot be read").because(error.to_string())
        })?;
        let is_over = piece.is_empty();
        if is_over && name.is_none() {
            return Ok(true);
        }
        let answer = pb::GetImportedFilesResponse { name: name.take(), piece, is_transcript };
        if news.send(Ok(answer)).await.is_err() {
            return Ok(false);
        }
        if is_over {
            return Ok(true);
        }
        reading = rest;
    }
}

/// Says whether anybody still listens.
async fn send_file(mut file: File, news: &News<pb::GetTranscriptResponse>) -> Result<bool, Refusal> {
    let mut ends_its_line = true;
    loop {
        let read = tokio::task::spawn_blocking(move || {
            let mut piece = Vec::with_capacity(PIECE);
            let read = (&mut file).take(PIECE as u64).read_to_end(&mut piece);
            read.map(|_| (file, piece))
        });
        let read = read.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        let (rest, mut piece) = read.map_err(|error| {
            Refusal::internal("lines that were imported cannot be read").because(error.to_string())
        })?;
        let is_over = piece.is_empty();
        if is_over && !ends_its_line {
            piece.push(b'\n');
        }
        ends_its_line = piece.last().map_or(ends_its_line, |byte| *byte == b'\n');
        if !piece.is_empty() && news.send(Ok(pb::GetTranscriptResponse { piece })).await.is_err() {
            return Ok(false);
        }
        if is_over {
            return Ok(true);
        }
        file = rest;
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
