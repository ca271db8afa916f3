//! The log: reading it, searching it, and what is too fleeting for it.

use ostler_domain::query::{EventFilter, Listed, Page};
use ostler_wire::{
    REPLY_BYTES, from_proto,
    pb::{self, event_service_client::EventServiceClient},
    reply::{Delta, EventPage, Hit},
    request::ListEvents,
    to_proto,
};
use tonic::transport::Channel;

use crate::{Client, Error, Incoming, Watch, socket};

pub(crate) fn service(channel: Channel) -> EventServiceClient<Channel> {
    EventServiceClient::new(channel).max_decoding_message_size(REPLY_BYTES)
}

impl Client {
    /// Reads a piece of the log.
    pub async fn events(&self, request: &ListEvents) -> Result<EventPage, Error> {
        let request = to_proto::list_events(request);
        let answer = self.ask(async |channel| service(channel).list_events(request.clone()).await).await?;
        Ok(from_proto::event_page(answer)?)
    }

    /// Reads the log after a place, then follows it; without a place, only what comes from now on. When this
    /// returns the watch is in place: nothing that happens later is missed.
    pub async fn watch(&self, filter: EventFilter, after: Option<u64>) -> Result<Watch, Error> {
        Watch::open(self.clone(), &filter, after).await
    }

    /// Follows the text that a session's agent is just writing. Pieces may be lost; the event that completes the
    /// text has it whole.
    pub async fn deltas(&self, who: &str) -> Result<Incoming<Delta>, Error> {
        let request = pb::WatchDeltasRequest { who: who.to_owned() };
        let answers = self.ask(async |channel| service(channel).watch_deltas(request.clone()).await).await?;
        Ok(Incoming::new(answers, from_proto::delta, socket::path(&self.home)))
    }

    /// Finds events by their words, the newest first.
    pub async fn search(&self, text: &str, filter: &EventFilter, page: Page) -> Result<Listed<Hit>, Error> {
        let request = pb::SearchEventsRequest {
            text: text.to_owned(),
            filter: Some(to_proto::event_filter(filter)),
            limit: page.limit,
            cursor: to_proto::cursor(page.cursor),
        };
        let answer = self.ask(async |channel| service(channel).search_events(request.clone()).await).await?;
        Ok(from_proto::listed(answer.hits, &answer.next_cursor, from_proto::hit)?)
    }
}
