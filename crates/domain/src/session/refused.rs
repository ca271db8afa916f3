//! What the wire says of a model call that was not answered as it should.

use crate::gateway::{CallEnd, ModelCall};

/// A call that came to nothing. Some agents say so, some do not; the wire has it for all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// 0 where there was no answer at all.
    pub status: u16,
    /// How long the server asks to be left alone; absent where it did not say.
    pub retry_after_ms: Option<u64>,
    /// Why there was no answer, where there was none.
    pub failure: String,
}

impl Refused {
    /// What the wire says of a call that was not answered as it should; none for one that was, that only looked
    /// around, or whose end was ours.
    pub fn of(call: &ModelCall) -> Option<Refused> {
        let is_ours = matches!(call.end, CallEnd::Held | CallEnd::Left | CallEnd::Stopped);
        let is_answered = (200..400).contains(&call.status) && call.end == CallEnd::Complete;
        let refused = || Refused {
            status: if (200..400).contains(&call.status) { 0 } else { call.status },
            retry_after_ms: call.retry_after_ms,
            failure: call.failure.clone(),
        };
        (call.method == "POST" && !is_ours && !is_answered).then(refused)
    }

    /// In a few words.
    pub fn words(&self) -> String {
        match (self.status, self.failure.as_str()) {
            (0, "") => "the model's server did not answer".to_owned(),
            (0, failure) => format!("the model's server did not answer: {failure}"),
            (status, _) => format!("the model's server answered {status}"),
        }
    }
}
