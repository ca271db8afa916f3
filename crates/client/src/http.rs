//! The HTTP door: opening it, and who may come in.

use ostler_wire::{
    from_proto,
    pb::{self, http_service_client::HttpServiceClient as Service},
    reply::{HttpToken, NewToken, WayIn},
};

use crate::{Client, Error};

impl Client {
    /// Opens the HTTP door, if it is closed, and makes a link that lets one browser in, once. `path` is where it goes
    /// then; empty means the first page.
    pub async fn open_http(&self, path: &str) -> Result<WayIn, Error> {
        let request = pb::OpenHttpRequest { path: path.to_owned() };
        let answer = self.ask(async |channel| Service::new(channel).open_http(request.clone()).await).await?;
        Ok(from_proto::way_in(answer)?)
    }

    /// Closes the HTTP door and turns all browsers out. Says whether it was open.
    pub async fn close_http(&self) -> Result<bool, Error> {
        let request = pb::CloseHttpRequest {};
        Ok(self.ask(async |channel| Service::new(channel).close_http(request).await).await?.was_open)
    }

    /// Makes a token for a program. Its secret is told once.
    pub async fn create_token(&self, name: &str, read_only: bool) -> Result<NewToken, Error> {
        let request = pb::CreateTokenRequest { name: name.to_owned(), read_only };
        // Once: a second try after a lost answer would find the name taken, and the secret is lost with the answer.
        let answer =
            self.ask_once(|channel| async move { Service::new(channel).create_token(request).await }).await?;
        Ok(from_proto::new_token(answer)?)
    }

    /// Lists tokens, and browsers that were let in, the newest first.
    pub async fn tokens(&self) -> Result<Vec<HttpToken>, Error> {
        let request = pb::ListTokensRequest {};
        let answer = self.ask(async |channel| Service::new(channel).list_tokens(request).await).await?;
        Ok(answer.tokens.into_iter().map(from_proto::http_token).collect::<Result<_, _>>()?)
    }

    /// Takes a token back, or turns a browser out, by name or id.
    pub async fn revoke_token(&self, token: &str) -> Result<HttpToken, Error> {
        let request = pb::RevokeTokenRequest { token: token.to_owned() };
        let answer =
            self.ask_once(|channel| async move { Service::new(channel).revoke_token(request).await }).await?;
        Ok(from_proto::http_token(from_proto::required(answer.token, "token")?)?)
    }
}
