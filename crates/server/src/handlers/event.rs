//! EventService.

use std::pin::Pin;

use bytes::Bytes;
use ostler_domain::{
    Recorded,
    limits::{PAGE_DEFAULT, PAGE_MOST},
};
use ostler_wire::{
    from_proto,
    pb::{self, event_service_server::EventService},
    reply,
    request::Place,
    to_proto, watched,
};
use tokio::sync::{broadcast, mpsc};
use tokio_stream::{Stream, wrappers::ReceiverStream};
use tonic::{Request, Response, Status, async_trait};

use super::{invalid, refused};
use crate::Served;

/// Batches that wait for a watcher; beyond them its own task waits, and nobody else.
const BATCHES: usize = 4;
/// Partial texts that wait for a watcher; beyond them some are dropped.
const DELTAS: usize = 64;

type Streamed<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[async_trait]
impl EventService for Served {
    type WatchEventsStream = Streamed<pb::WatchEventsResponse>;
    type WatchDeltasStream = Streamed<pb::WatchDeltasResponse>;

    async fn list_events(
        &self,
        request: Request<pb::ListEventsRequest>,
    ) -> Result<Response<pb::ListEventsResponse>, Status> {
        let mut request = request.into_inner();
        if let Some(filter) = &mut request.filter {
            self.resolve_events(filter).await?;
        }
        let wanted = from_proto::list_events(request).map_err(invalid)?;
        if let Place::After(after) = wanted.from {
            self.engine.check_place(after).await.map_err(refused)?;
        }
        let limit = if wanted.limit == 0 { PAGE_DEFAULT } else { wanted.limit.min(PAGE_MOST) };
        let listed = match wanted.from {
            Place::After(after) => self.engine.events_after(after, &wanted.filter, limit).await,
            Place::Before(before) => self.engine.events_before(Some(before), &wanted.filter, limit).await,
            Place::End => self.engine.events_before(None, &wanted.filter, limit).await,
        }
        .map_err(refused)?;
        Ok(Response::new(pb::ListEventsResponse {
            events: listed.rows.iter().map(to_proto::recorded).collect(),
            next_cursor: listed.next_cursor,
        }))
    }

    async fn watch_events(
        &self,
        request: Request<pb::WatchEventsRequest>,
    ) -> Result<Response<Self::WatchEventsStream>, Status> {
        let pb::WatchEventsRequest { filter, after } = request.into_inner();
        let filter = self.event_filter(filter).await?;
        if let Some(after) = after {
            self.engine.check_place(after).await.map_err(refused)?;
        }
        let mut watch = self.engine.watch(filter, after);
        let (sender, receiver) = mpsc::channel(BATCHES);
        tokio::spawn(async move {
            // Says first where it begins: who asked for "from now on" can come back to that place.
            let begins = pb::WatchEventsResponse { events: Vec::new(), seen: watch.cursor() };
            if sender.send(Ok(begins)).await.is_err() {
                return;
            }
            loop {
                let batch = tokio::select! {
                    batch = watch.next() => batch,
                    // A watcher that went away while nothing happened.
                    () = sender.closed() => return,
                };
                let message = batch.map_err(refused).map(|events| pb::WatchEventsResponse {
                    events: events.iter().map(|event| event.sent_as(encoded)).collect(),
                    seen: watch.cursor(),
                });
                let is_last = message.is_err();
                if sender.send(message).await.is_err() || is_last {
                    return;
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    async fn watch_deltas(
        &self,
        request: Request<pb::WatchDeltasRequest>,
    ) -> Result<Response<Self::WatchDeltasStream>, Status> {
        let who = request.into_inner().who;
        let session =
            if who.is_empty() { None } else { Some(self.engine.session(&who).await.map_err(refused)?.id) };
        let mut deltas = self.engine.deltas();
        let (sender, receiver) = mpsc::channel(DELTAS);
        tokio::spawn(async move {
            loop {
                let delta = tokio::select! {
                    delta = deltas.recv() => delta,
                    () = sender.closed() => return,
                };
                match delta {
                    Ok(delta) if session.is_none_or(|session| session == delta.session) => {
                        let delta = reply::Delta { session: delta.session, text: delta.text };
                        // Full means slow: this one is dropped, as promised.
                        if let Err(mpsc::error::TrySendError::Closed(_)) =
                            sender.try_send(Ok(to_proto::delta(&delta)))
                        {
                            return;
                        }
                    }
                    Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => return,
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    async fn search_events(
        &self,
        request: Request<pb::SearchEventsRequest>,
    ) -> Result<Response<pb::SearchEventsResponse>, Status> {
        let pb::SearchEventsRequest { text, filter, limit, cursor } = request.into_inner();
        let filter = self.event_filter(filter).await?;
        let page = from_proto::page(limit, &cursor).map_err(invalid)?;
        let listed = self.engine.search(&text, &filter, page).await.map_err(refused)?;
        Ok(Response::new(pb::SearchEventsResponse {
            hits: listed
                .rows
                .into_iter()
                .map(|(event, snippet)| pb::SearchHit { event: Some(to_proto::recorded(&event)), snippet })
                .collect(),
            next_cursor: to_proto::cursor(listed.next_cursor),
        }))
    }
}

fn encoded(event: &Recorded) -> Bytes {
    watched::sent(&to_proto::recorded(event))
}
