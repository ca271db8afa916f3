//! How a message is to be said, and where it comes from.

use clap::{Args, ValueEnum};
use ostler_domain::{
    Mode,
    conversation::{ChatType, Inbound, ThreadId},
};

/// When a message is said to an agent that is in the middle of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum When {
    /// When the turn has ended
    Followup,
    /// Into the turn that is open
    Steer,
    /// When the turn has ended, in one prompt with the others that wait to be collected
    Collect,
    /// Now: the turn that is open is ended for it
    Interrupt,
}

impl From<When> for Mode {
    fn from(when: When) -> Mode {
        match when {
            When::Followup => Mode::Followup,
            When::Steer => Mode::Steer,
            When::Collect => Mode::Collect,
            When::Interrupt => Mode::Interrupt,
        }
    }
}

// Where a message comes from. A doc comment would become what `send` says of itself.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "From a chat elsewhere (noted with the conversation)")]
pub(crate) struct InboundArgs {
    /// Its channel: slack, discord, …
    #[arg(long)]
    channel: Option<String>,
    /// Whom answers go to
    #[arg(long, value_name = "WHOM")]
    to: Option<String>,
    /// The account of the channel
    #[arg(long, value_name = "ID")]
    account: Option<String>,
    /// The thread or topic
    #[arg(long, value_name = "ID")]
    thread: Option<String>,
    /// Who wrote it
    #[arg(long, value_name = "WHO")]
    from: Option<String>,
    /// Where they wrote it: web, mobile, …
    #[arg(long)]
    surface: Option<String>,
    /// What kind of chat it is: dm, group, channel
    #[arg(long, value_parser = chat_type, value_name = "TYPE")]
    chat_type: Option<ChatType>,
}

pub(crate) fn chat_type(text: &str) -> Result<ChatType, String> {
    ChatType::parse(text).ok_or_else(|| "expected: dm, group, channel".to_owned())
}

impl InboundArgs {
    /// None where nothing is said about it.
    pub(crate) fn inbound(&self) -> Option<Inbound> {
        let inbound = Inbound {
            channel: self.channel.clone(),
            to: self.to.clone(),
            account_id: self.account.clone(),
            thread_id: self.thread.clone().map(ThreadId::Text),
            from: self.from.clone(),
            surface: self.surface.clone(),
            chat_type: self.chat_type,
        };
        (inbound != Inbound::default()).then_some(inbound)
    }
}
