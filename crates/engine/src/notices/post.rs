//! Addresses that are told: a webhook's, signed, and an ntfy server's.

use std::{fmt, sync::Arc, time::Duration};

use ostler_domain::{
    Time,
    limits::WEBHOOK_TIME,
    notice::{Notice, Ntfy, Webhook, pushed},
};

use super::sign::signature;

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

/// Tells an address, signed.
pub(super) async fn webhook(post: Option<&Poster>, to: &Webhook, notice: &Notice, now: Time) -> Tried {
    let (to, notice, seconds) = (to.clone(), notice.clone(), now.micros().div_euclid(1_000_000));
    send(post, move || signed(&to, &notice, seconds)).await
}

/// Tells a topic of an ntfy server.
pub(super) async fn ntfy(post: Option<&Poster>, to: &Ntfy, notice: &Notice) -> Tried {
    let (to, notice) = (to.clone(), notice.clone());
    send(post, move || {
        let (mut headers, body) = pushed(&notice);
        if let Some(token) = &to.token {
            headers.push(("authorization".to_owned(), format!("Bearer {}", token.read()?)));
        }
        Ok(Post { url: to.url, headers, body, within: WEBHOOK_TIME })
    })
    .await
}

async fn send(post: Option<&Poster>, made: impl FnOnce() -> Result<Post, String> + Send + 'static) -> Tried {
    let Some(post) = post.cloned() else { return Tried::Refused("nobody here can reach it".to_owned()) };
    match tokio::task::spawn_blocking(move || post.send(&made()?)).await {
        Ok(answer) => judged(answer),
        Err(error) => Tried::Again(error.to_string()),
    }
}

fn signed(webhook: &Webhook, notice: &Notice, seconds: i64) -> Result<Post, String> {
    let secret = webhook.secret.read()?;
    let body = serde_json::to_vec(notice).map_err(|error| error.to_string())?;
    let headers = [
        ("content-type", "application/json".to_owned()),
        ("ostler-notice", notice.id.clone()),
        ("ostler-signature", signature(secret.as_bytes(), seconds, &body)),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), value)).to_vec();
    Ok(Post { url: webhook.url.clone(), headers, body, within: WEBHOOK_TIME })
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
