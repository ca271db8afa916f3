//! Transcripts: conversations as lines of JSON.

use std::collections::VecDeque;

use ostler_domain::transcript::Verified;
use ostler_wire::{
    from_proto,
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
        self.read_transcript(who, false).await
    }

    /// The same, where lines that it was imported with are as they were, to the byte.
    pub async fn transcript_as_it_came(&self, who: &str) -> Result<Transcript, Error> {
        self.read_transcript(who, true).await
    }

    async fn read_transcript(&self, who: &str, as_it_came: bool) -> Result<Transcript, Error> {
        let request = pb::GetTranscriptRequest { who: who.to_owned(), as_it_came };
        let answers =
            self.ask(async |channel| Service::new(channel).get_transcript(request.clone()).await).await?;
        let pieces = Incoming::new(answers, |answer| Ok(answer.piece), socket::path(&self.home));
        Ok(Transcript { pieces, begun: Vec::new(), lines: VecDeque::new() })
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
