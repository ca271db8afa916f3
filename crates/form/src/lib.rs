//! What programs read: the JSON of `-o json` and `-o jsonl`, and of the HTTP door. Fields are only ever added.
#![forbid(unsafe_code)]

mod approval;
mod campaign;
mod chain;
mod conversation;
pub mod cost;
mod error;
mod event;
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
mod session;
mod shape;
mod status;
pub mod ticket;
mod time;
pub mod tree;
pub mod words;

pub use approval::ApprovalForm;
pub use campaign::{AgentForm, CampaignForm};
pub use chain::ChainForm;
pub use conversation::ConversationForm;
pub use error::ErrorForm;
pub use event::EventForm;
pub use hit::{HitForm, ticket_of};
pub use json::to_json;
pub use list::Object;
pub use message::MessageForm;
pub use money::CostForm;
pub use sent::SentForm;
pub use session::{SessionForm, WorktreeForm};
pub use shape::Provider as ProviderForm;
pub use status::{DrainForm, HaltForm, HaltedForm, StatusForm};
pub use time::rfc3339;
