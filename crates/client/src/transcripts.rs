//! Transcripts: conversations as lines of JSON.

use std::collections::VecDeque;

use ostler_domain::{ConversationId, transcript::Verified};
use ostler_wire::{
    InvalidField, from_proto,
    pb::{self, transcript_service_client::TranscriptServiceClient as Service},
};

use crate::{Client, Error, Incoming, socket};

/// A transcript, line by line. Ends with `None` when there are no more, or after an error.
#[derive(Debug)]
pub struct Transcript {
    pieces: Incoming<Vec<u8>>,
    /// The beginning of a line whose end has not come yet.
    begun: Vec<u8>,
    lines: VecDeque<Vec<u8>>,
}

/// A piece of a file that came in with a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedPiece {
    /// The name of the file that it is the first piece of, below the directory that it lay in.
    pub begins: Option<String>,
    /// That file is the conversation's transcript, in which nothing was said here.
    pub is_transcript: bool,
    /// What it has.
    pub bytes: Vec<u8>,
}

impl Transcript {
    /// Waits for the next line, without its end.
    pub async fn next(&mut self) -> Option<Result<Vec<u8>, Error>> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Some(Ok(line));
            }
            let piece = match self.pieces.next().await? {
                Ok(piece) => piece,
                Err(error) => return Some(Err(error)),
            };
            let mut parts = piece.split(|byte| *byte == b'\n').peekable();
            while let Some(part) = parts.next() {
                self.begun.extend_from_slice(part);
                if parts.peek().is_some() {
                    self.lines.push_back(std::mem::take(&mut self.begun));
                }
            }
        }
    }
}

impl Client {
    /// Reads the transcript of a conversation, or of the one that a session is in.
    pub async fn transcript(&self, who: &str) -> Result<Transcript, Error> {
        let request = pb::GetTranscriptRequest { who: who.to_owned(), ..Default::default() };
        self.read_transcript(request).await
    }

    /// The same with all pictures in its lines, in base64. Lines may be long.
    pub async fn transcript_with_images(&self, who: &str) -> Result<Transcript, Error> {
        let request =
            pb::GetTranscriptRequest { who: who.to_owned(), with_images: true, ..Default::default() };
        self.read_transcript(request).await
    }

    /// The same, where lines that it was imported with are as they were, to the byte, and pictures are in the lines.
    pub async fn transcript_as_it_came(&self, who: &str) -> Result<Transcript, Error> {
        let (as_it_came, with_images) = (true, true);
        let request = pb::GetTranscriptRequest { who: who.to_owned(), as_it_came, with_images };
        self.read_transcript(request).await
    }

    async fn read_transcript(&self, request: pb::GetTranscriptRequest) -> Result<Transcript, Error> {
        let answers =
            self.ask(async |channel| Service::new(channel).get_transcript(request.clone()).await).await?;
        let pieces = Incoming::new(answers, |answer| Ok(answer.piece), socket::path(&self.home));
        Ok(Transcript { pieces, begun: Vec::new(), lines: VecDeque::new() })
    }

    /// The bytes of a picture, in pieces, by its SHA-256 or the beginning of that.
    pub async fn image(&self, sha256: &str) -> Result<Incoming<Vec<u8>>, Error> {
        let request = pb::GetImageRequest { sha256: sha256.to_owned() };
        let answers =
            self.ask(async |channel| Service::new(channel).get_image(request.clone()).await).await?;
        Ok(Incoming::new(answers, |answer| Ok(answer.piece), socket::path(&self.home)))
    }

    /// Says that something was delivered to people in the agent's name, so that its transcript has it. The conversation's
    /// id and name.
    pub async fn mirror_delivery(
        &self,
        who: &str,
        text: &str,
        media_urls: Vec<String>,
        to: Option<&str>,
    ) -> Result<(ConversationId, String), Error> {
        let request = pb::MirrorDeliveryRequest {
            request_id: self.request_id().to_string(),
            who: who.to_owned(),
            text: text.to_owned(),
            media_urls,
            to: to.unwrap_or_default().to_owned(),
        };
        let answer =
            self.ask(async |channel| Service::new(channel).mirror_delivery(request.clone()).await).await?;
        let id =
            answer.conversation_id.parse().map_err(|error| InvalidField::new("conversation_id", error))?;
        Ok((id, answer.name))
    }

    /// The files that a conversation was imported with, as they were, in pieces.
    pub async fn imported_files(&self, who: &str) -> Result<Incoming<ImportedPiece>, Error> {
        let request = pb::GetImportedFilesRequest { who: who.to_owned() };
        let answers =
            self.ask(async |channel| Service::new(channel).get_imported_files(request.clone()).await).await?;
        let read = |answer: pb::GetImportedFilesResponse| {
            let pb::GetImportedFilesResponse { name, piece, is_transcript } = answer;
            Ok(ImportedPiece { begins: name, is_transcript, bytes: piece })
        };
        Ok(Incoming::new(answers, read, socket::path(&self.home)))
    }

    /// Compares files of transcripts with the log: one conversation's, or all. `rebuild`: makes those anew that differ.
    pub async fn verify_transcripts(
        &self,
        who: Option<&str>,
        rebuild: bool,
    ) -> Result<Incoming<Verified>, Error> {
        let who = who.unwrap_or_default().to_owned();
        let request = pb::VerifyTranscriptsRequest { who, rebuild };
        let answers =
            self.ask(async |channel| Service::new(channel).verify_transcripts(request.clone()).await).await?;
        Ok(Incoming::new(answers, from_proto::verified, socket::path(&self.home)))
    }
}
