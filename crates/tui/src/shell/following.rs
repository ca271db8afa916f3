//! The log as it grows: that anything changed, and what one session does. Both go on from their cursor for as long as it
//! takes, however often the daemon goes away.

use std::{sync::Arc, time::Duration};

use ostler_client::{Client, ListEvents, Place, Received, Watched, query::EventFilter};
use ostler_domain::{Kind, Reason, SessionId};
use tokio::{
    sync::{Notify, mpsc::Sender},
    time::sleep,
};

use crate::message::Message;

/// A daemon that stays away is asked for again so often.
const AGAIN: Duration = Duration::from_millis(500);
/// Events of the past that are shown first.
const PAST: u32 = 100;

/// What fills logs and changes no row.
const NO_NEWS: [Kind; 5] =
    [Kind::AgentThinking, Kind::AgentStderr, Kind::Opaque, Kind::Partial, Kind::ContextMeasured];

/// Says that something changed. However much it was, it is said once until somebody has looked.
pub(super) async fn changes(client: Client, news: Arc<Notify>, to: Sender<Message>) {
    let kinds = Kind::ALL.iter().copied().filter(|kind| !NO_NEWS.contains(kind)).collect();
    let filter = EventFilter { kinds, ..EventFilter::default() };
    let mut cursor = None;
    loop {
        match client.watch(filter.clone(), cursor).await {
            Ok(mut watch) => {
                cursor = watch.cursor();
                while let Some(Ok(watched)) = watch.next().await {
                    cursor = watch.cursor();
                    if watched == Watched::Reconnected && to.send(Message::Back).await.is_err() {
                        return;
                    }
                    news.notify_one();
                }
            }
            // The log was put back from a copy: everything may be another.
            Err(error) if error.is_refused_for(Reason::CursorUnknown) => {
                cursor = None;
                news.notify_one();
                continue;
            }
            Err(_) => {}
        }
        sleep(AGAIN).await;
    }
}

/// Tells what a session did last, and then what it does.
pub(super) async fn session(client: Client, id: SessionId, to: Sender<Message>) {
    let filter = EventFilter { session: Some(id), ..EventFilter::default() };
    let request = ListEvents { filter: filter.clone(), from: Place::End, limit: PAST };
    let mut past = loop {
        match client.events(&request).await {
            Ok(page) => break page.events,
            Err(_) => sleep(AGAIN).await,
        }
    };
    past.reverse();
    let mut cursor = Some(past.last().map_or(0, Received::seq));
    if to.send(Message::Told(id, past)).await.is_err() {
        return;
    }
    loop {
        match client.watch(filter.clone(), cursor).await {
            Ok(mut watch) => {
                while let Some(Ok(watched)) = watch.next().await {
                    cursor = watch.cursor().or(cursor);
                    let received = match watched {
                        Watched::Event(event) => Received::Known(event),
                        Watched::Unknown(event) => Received::Unknown(event),
                        Watched::Reconnected => continue,
                    };
                    if to.send(Message::Told(id, vec![received])).await.is_err() {
                        return;
                    }
                }
            }
            Err(error) => cursor = cursor.filter(|_| !error.is_refused_for(Reason::CursorUnknown)),
        }
        sleep(AGAIN).await;
    }
}
