//! Changes asked for by people: who asked, and the id that makes asking twice do it once.

use ostler_domain::{Reason, Refusal, RequestId, event::By, provider::CallerKeys};
use ostler_store::{RequestReply, Store};
use sha2::{Digest, Sha256};

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
            // A daemon before this one remembered it as it was.
            Some(done) if [print(fingerprint).as_str(), fingerprint].contains(&done.fingerprint.as_str()) => {
                Ok(Some(done.reply))
            }
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
        self.request.map(|id| RequestReply { id, fingerprint: print(fingerprint), reply: reply.into() })
    }
}

/// What was asked for may have somebody's words in it, and those are deleted before the request is forgotten. It is only
/// ever compared.
fn print(fingerprint: &str) -> String {
    use std::fmt::Write;
    let digest = Sha256::digest(fingerprint.as_bytes());
    digest.iter().fold("sha256:".to_owned(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use ostler_domain::{Time, event::By};

    use super::*;

    #[test]
    fn nothing_that_was_said_is_remembered_with_a_request() {
        let request = Some(RequestId::new(Time::default(), 1));
        let change = Change { request, ..Change::by(By::ostler()) };
        let kept = change.done("send api the secret plan", "reply").unwrap();
        assert!(kept.fingerprint.starts_with("sha256:") && !kept.fingerprint.contains("secret"));
        assert_ne!(kept.fingerprint, change.done("send api another plan", "reply").unwrap().fingerprint);
    }
}
