//! What was delivered to people in an agent's name, outside of its sessions.

use ostler_domain::{
    Event, Reason, Refusal,
    conversation::Conversation,
    event::DeliveryMirrored,
    limits::{MEDIA_URL_BYTES, MEDIA_URLS, MESSAGE_BYTES},
    redact::redacted,
};

use crate::{Change, Engine};

/// What was delivered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Delivery {
    pub text: String,
    pub media_urls: Vec<String>,
    pub to: Option<String>,
}

impl Engine {
    /// Records a delivery, so that the conversation's transcript has it.
    pub async fn mirror_delivery(
        &self,
        who: &str,
        delivery: Delivery,
        change: Change,
    ) -> Result<Conversation, Refusal> {
        let Delivery { text, media_urls, to } = delivery;
        let fingerprint = format!("mirror_delivery {who} {text} {} {to:?}", media_urls.join(" "));
        if let Some(done) = change.done_before(&self.shared.store, &fingerprint).await? {
            return self.conversation(&done).await;
        }
        check(&text, &media_urls, to.as_deref())?;
        let conversation = self.conversation(who).await?;
        let last = self.shared.store.sessions_of_conversation(conversation.id, 1).await?.pop();
        let Some(last) = last else {
            return Err(Refusal::new(Reason::WrongState, "nothing was said in this conversation yet")
                .because("its transcript begins with its first session")
                .hint(format!("ostler send {} \"…\"", conversation.id.short()), "begins one"));
        };
        let mirrored = DeliveryMirrored {
            conversation: conversation.id,
            session: last.id,
            text: redacted(text),
            media_urls: media_urls.into_iter().map(redacted).collect(),
            to,
            by: change.by.clone(),
        };
        let request = change.done(&fingerprint, conversation.id.to_string());
        self.record_nodes(vec![Event::DeliveryMirrored(Box::new(mirrored))], request).await?;
        Ok(conversation)
    }
}

fn check(text: &str, media_urls: &[String], to: Option<&str>) -> Result<(), Refusal> {
    let is_address = |url: &String| {
        !url.is_empty() && url.len() <= MEDIA_URL_BYTES && !url.chars().any(|c| c.is_control() || c == ' ')
    };
    let fault = if text.trim().is_empty() && media_urls.is_empty() {
        Some("something must have been delivered: words, media, or both".to_owned())
    } else if text.len() > MESSAGE_BYTES {
        Some(format!("at most {MESSAGE_BYTES} bytes are said at once"))
    } else if media_urls.len() > MEDIA_URLS || !media_urls.iter().all(is_address) {
        Some(format!("media are at most {MEDIA_URLS} addresses of at most {MEDIA_URL_BYTES} visible bytes"))
    } else if to.is_some_and(|to| to.len() > MEDIA_URL_BYTES || to.chars().any(char::is_control)) {
        Some(format!("whom it was delivered to is one line of at most {MEDIA_URL_BYTES} bytes"))
    } else {
        None
    };
    fault.map_or(Ok(()), |fault| Err(Refusal::invalid(fault)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_is_words_or_media_within_bounds() {
        let url = |text: &str| vec![text.to_owned()];
        assert!(check("done", &[], None).is_ok());
        assert!(check("", &url("https://x.example/a.png"), Some("user:U1")).is_ok());
        assert!(check(" ", &[], None).is_err());
        assert!(check("a", &url("two words"), None).is_err());
        assert!(check("a", &vec!["https://x.example".to_owned(); MEDIA_URLS + 1], None).is_err());
        assert!(check("a", &[], Some("a\nb")).is_err());
        assert!(check(&"x".repeat(MESSAGE_BYTES + 1), &[], None).is_err());
    }
}
