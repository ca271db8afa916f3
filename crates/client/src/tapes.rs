//! Tapes: what crossed an agent's border, byte for byte.

use ostler_wire::{
    from_proto,
    pb::{self, tape_service_client::TapeServiceClient as Service},
    reply::TapePart,
};

use crate::{Client, Error, Incoming, socket};

impl Client {
    /// Reads a session's tape from a place to its present end.
    pub async fn tape(&self, who: &str, offset: u64) -> Result<Incoming<TapePart>, Error> {
        let request = pb::ReadTapeRequest { who: who.to_owned(), offset };
        let answers =
            self.ask(async |channel| Service::new(channel).read_tape(request.clone()).await).await?;
        Ok(Incoming::new(answers, from_proto::tape_part, socket::path(&self.home)))
    }
}
