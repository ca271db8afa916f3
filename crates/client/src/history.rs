//! Imports of what agent programs did outside of Ostler.

use ostler_domain::history::{Import, News};
use ostler_wire::{from_proto, pb::history_service_client::HistoryServiceClient as Service, to_proto};

use crate::{Client, Error, Incoming, socket};

impl Client {
    /// Imports from stores of agent programs. Goes on for as long as somebody waits for the next news.
    pub async fn import_history(&self, import: &Import) -> Result<Incoming<News>, Error> {
        let request = to_proto::import(import);
        let answers =
            self.ask(async |channel| Service::new(channel).import_history(request.clone()).await).await?;
        Ok(Incoming::new(answers, from_proto::import_news, socket::path(&self.home)))
    }
}
