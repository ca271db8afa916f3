//! Waiting for the end of sessions.

use ostler_client::{Client, Session, Watched, query::EventFilter};
use ostler_domain::{Kind, Reason, Refusal, SessionId};

use crate::failure::Failure;

/// Waits until a session has ended, and returns it as it then is.
pub(crate) async fn wait(client: &Client, id: SessionId) -> Result<Session, Failure> {
    let kinds = vec![Kind::SessionStopped, Kind::SessionFailed];
    let filter = EventFilter { session: Some(id), kinds, ..EventFilter::default() };
    // First the watch, then the look: an end in between is seen by one of them.
    let mut watch = client.watch(filter, None).await?;
    let session = client.session(&id.to_string()).await?;
    if session.outcome.is_some() {
        return Ok(session);
    }
    loop {
        match watch.next().await {
            Some(Ok(Watched::Event(_))) => return Ok(client.session(&id.to_string()).await?),
            Some(Ok(Watched::Reconnected | Watched::Unknown(_))) => {}
            Some(Err(error)) => return Err(error.into()),
            None => return Err(Refusal::new(Reason::DaemonUnreachable, "the daemon is gone").into()),
        }
    }
}
