//! What programs read: the JSON of `-o json` and `-o jsonl`, and of the HTTP door. Fields are only ever added.
#![forbid(unsafe_code)]

mod chain;
pub mod cost;
mod error;
mod forms;
pub mod held;
mod hit;
mod json;
mod list;
mod message;
pub mod mission;
pub mod money;
pub mod sandbox;
pub mod seance;
mod sent;
mod shape;
pub mod ticket;
mod time;
pub mod tree;
pub mod words;

pub use chain::ChainForm;
pub use error::ErrorForm;
pub use forms::{
    AgentForm, ApprovalForm, CampaignForm, ConversationForm, DrainForm, EventForm, HaltForm, HaltedForm,
    SessionForm, StatusForm, WorktreeForm,
};
pub use hit::{HitForm, ticket_of};
pub use json::to_json;
pub use list::Object;
pub use message::MessageForm;
pub use money::CostForm;
pub use sent::SentForm;
pub use shape::Provider as ProviderForm;
pub use time::rfc3339;
