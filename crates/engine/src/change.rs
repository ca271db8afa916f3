//! Changes asked for by people: who asked, and the id that makes asking twice do it once.

use ostler_domain::{Reason, Refusal, RequestId, event::By, provider::CallerKeys};
use ostler_store::{RequestReply, Store};

/// Who asks, and under which id.
#[derive(Debug, Clone)]
pub struct Change {
    pub by: By,
    /// The process that asked, where one did.
    pub pid: Option<u32>,
    pub request: Option<RequestId>,
    /// Keys of models that came along, for the agents that this starts.
    pub keys: CallerKeys,
}

impl Change {
    /// By somebody who is no caller of the door.
    pub(crate) fn by(by: By) -> Self {
        Self { by, pid: None, request: None, keys: CallerKeys::default() }
    }

    /// By one of Ostler's own rules.
    pub(crate) fn of_ostler() -> Self {
        Self::by(By::ostler())
    }

    #[must_use]
    pub fn with_keys(self, keys: CallerKeys) -> Self {
        Self { keys, ..self }
    }

    /// What was answered when this request was done before; a refusal when it was another request.
    pub(crate) async fn done_before(
        &self,
        store: &Store,
        fingerprint: &str,
    ) -> Result<Option<String>, Refusal> {
        let Some(id) = self.request else { return Ok(None) };
        match store.request(id).await? {
            Some(done) if done.fingerprint == fingerprint => Ok(Some(done.reply)),
            Some(_) => Err(Refusal::new(
                Reason::RequestConflict,
                format!("request {id} was used for something else"),
            )
            .because("an id is for one change: repeat it with the same request only, and make a new one for each other")),
            None => Ok(None),
        }
    }

    /// The note of this request, to be committed with its change.
    pub(crate) fn done(&self, fingerprint: &str, reply: impl Into<String>) -> Option<RequestReply> {
        self.request.map(|id| RequestReply { id, fingerprint: fingerprint.to_owned(), reply: reply.into() })
    }
}
