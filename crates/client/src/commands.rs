//! Commands in a campaign's sandbox.

use ostler_wire::pb::{self, command_service_client::CommandServiceClient as Service};

use crate::{Client, Error};

/// A command that somebody wants to run.
#[derive(Debug, Clone, Default)]
pub struct PrepareCommand {
    /// The campaign: name, id, or any path in it.
    pub campaign: String,
    /// The command and its arguments; no shell.
    pub argv: Vec<String>,
    /// Run what is not on the list of commands.
    pub unlisted: bool,
    /// Where to run it, within the campaign.
    pub directory: Option<String>,
    /// A session of the campaign, whose conversation's home it is to have.
    pub session: Option<String>,
}

impl Client {
    /// Has a command allowed, or learns why it is not. Returns the document for `ostler internal command`, which runs it
    /// as a child of the caller.
    pub async fn prepare_command(&self, request: PrepareCommand) -> Result<String, Error> {
        let PrepareCommand { campaign, argv, unlisted, directory, session } = request;
        let request = pb::PrepareCommandRequest { campaign, argv, unlisted, directory, session };
        let answer =
            self.ask(async |channel| Service::new(channel).prepare_command(request.clone()).await).await?;
        Ok(answer.document)
    }
}
