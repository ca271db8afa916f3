//! An address that is told: signed, again and again until it has heard.

use std::{fmt, fs, sync::Arc, time::Duration};

use ostler_domain::{
    Recorded, Refusal,
    limits::{WEBHOOK_FIRST, WEBHOOK_LONGEST, WEBHOOK_TIME},
    notice::{Notice, SecretPlace, Webhook},
};

use super::sign::signature;
use crate::Engine;

/// What is sent.
#[derive(Debug, Clone)]
pub struct Post {
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub within: Duration,
}

/// Sends something, waiting for the answer's status. Given by whoever has the network's tools; the engine has none.
#[derive(Clone)]
pub struct Poster(Arc<SendPost>);

type SendPost = dyn Fn(&Post) -> Result<u16, String> + Send + Sync;

impl Poster {
    pub fn new(send: impl Fn(&Post) -> Result<u16, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(send))
    }

    pub(crate) fn send(&self, post: &Post) -> Result<u16, String> {
        (self.0)(post)
    }
}

impl fmt::Debug for Poster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Poster")
    }
}

/// What came of one try.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Tried {
    Heard,
    /// It will not be heard however often it is said.
    Refused(String),
    Again(String),
}

impl Engine {
    /// Returns when it was heard, was refused, is no longer worth telling, or the daemon ends.
    pub(super) async fn tell_webhook(
        &self,
        webhook: &Webhook,
        post: &Poster,
        notice: &Notice,
        recorded: &Recorded,
    ) -> Result<(), Refusal> {
        let mut pause = WEBHOOK_FIRST;
        loop {
            match self.try_webhook(webhook, post, notice).await {
                Tried::Heard => {
                    tracing::info!(id = notice.id, on = notice.on.as_str(), "the webhook was told");
                    return Ok(());
                }
                Tried::Refused(why) => {
                    tracing::warn!(id = notice.id, why, "the webhook does not want to hear this");
                    return Ok(());
                }
                Tried::Again(why) => {
                    let seconds = pause.as_secs();
                    tracing::warn!(id = notice.id, why, seconds, "the webhook did not hear; trying again");
                }
            }
            tokio::time::sleep(pause).await;
            pause = pause.saturating_mul(2).min(WEBHOOK_LONGEST);
            if !self.is_worth_telling(recorded).await? {
                return Ok(());
            }
        }
    }

    async fn try_webhook(&self, webhook: &Webhook, post: &Poster, notice: &Notice) -> Tried {
        let (webhook, post, notice) = (webhook.clone(), post.clone(), notice.clone());
        let seconds = self.shared.clock.now().wall.micros().div_euclid(1_000_000);
        let tried = tokio::task::spawn_blocking(move || {
            let request = signed(&webhook, &notice, seconds)?;
            post.send(&request)
        });
        match tried.await {
            Ok(answer) => judged(answer),
            Err(error) => Tried::Again(error.to_string()),
        }
    }
}

fn signed(webhook: &Webhook, notice: &Notice, seconds: i64) -> Result<Post, String> {
    let secret = secret(webhook)?;
    let body = serde_json::to_vec(notice).map_err(|error| error.to_string())?;
    let headers = [
        ("content-type", "application/json".to_owned()),
        ("ostler-notice", notice.id.clone()),
        ("ostler-signature", signature(secret.as_bytes(), seconds, &body)),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), value)).to_vec();
    Ok(Post { url: webhook.url.clone(), headers, body, within: WEBHOOK_TIME })
}

/// Read anew each time: it may be changed while a daemon runs.
fn secret(webhook: &Webhook) -> Result<String, String> {
    let text = match &webhook.secret {
        SecretPlace::File(file) => fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?,
        SecretPlace::Variable(name) => std::env::var(name).map_err(|_| format!("{name} is not set"))?,
    };
    let line = text.lines().next().unwrap_or_default().trim();
    if line.is_empty() { Err("the secret is empty".to_owned()) } else { Ok(line.to_owned()) }
}

pub(crate) fn judged(answer: Result<u16, String>) -> Tried {
    match answer {
        Ok(200..=299) => Tried::Heard,
        Ok(status @ (408 | 425 | 429)) => Tried::Again(format!("it answered {status}")),
        Ok(status @ 300..=499) => Tried::Refused(format!("it answered {status}")),
        Ok(status) => Tried::Again(format!("it answered {status}")),
        Err(why) => Tried::Again(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_is_tried_again() {
        assert_eq!(judged(Ok(204)), Tried::Heard);
        for status in [408, 429, 500, 503] {
            assert!(matches!(judged(Ok(status)), Tried::Again(_)), "{status}");
        }
        for status in [301, 400, 401, 404, 410] {
            assert!(matches!(judged(Ok(status)), Tried::Refused(_)), "{status}");
        }
        assert!(matches!(judged(Err("refused".to_owned())), Tried::Again(_)));
    }
}
