//! The HTTP door as a part of the daemon: it is closed until somebody opens it, and what is asked by it is asked of the
//! services that everybody asks.

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use ostler_domain::{
    Refusal,
    event::By,
    home::Home,
    hub::{Hub, Listed},
    share::{Access, Scope},
};
use ostler_engine::{ChannelSettings, Engine, Linker, Wanted};
use ostler_server::{Answer, HttpDoor, Indoors};
use ostler_web::{Door, Household, HubSettings};
use ostler_wire::reply::{HttpToken, NewShare, NewToken, Share, WayIn};
use tokio::sync::OnceCell;

use super::config;

/// The door, once it stands: the services that it asks are served before.
pub(super) struct Http {
    household: OnceCell<Door>,
    home: Home,
    program: PathBuf,
    engine: Engine,
    indoors: Indoors,
}

impl Http {
    pub(super) fn new(home: &Home, program: PathBuf, engine: &Engine, indoors: Indoors) -> Arc<Http> {
        let household = OnceCell::new();
        Arc::new(Http { household, home: home.clone(), program, engine: engine.clone(), indoors })
    }

    /// The door; opened where the settings or the daemon before say so.
    pub(super) async fn door(&self) -> Result<&Door, Refusal> {
        self.household.get_or_try_init(|| Door::new(self.household())).await
    }

    fn household(&self) -> Household {
        let (engine, indoors, path): (_, _, PathBuf) =
            (self.engine.clone(), self.indoors.clone(), self.home.config_toml());
        Household {
            home: self.home.clone(),
            program: self.program.clone(),
            connect: Box::new(move |person| {
                let indoors = indoors.clone();
                Box::pin(async move { indoors.connect(&person).await })
            }),
            settings: Box::new(move || {
                config::read(&path)?.http().map_err(|fault| Refusal::invalid(format!("http: {fault}")))
            }),
            audit: Box::new(move |by, action, object| engine.note_access(by, action, object)),
        }
    }
}

/// The links that notices have. They are wanted of the engine before there is a door, which asks the engine.
#[derive(Clone, Default)]
pub(super) struct Links(Arc<OnceLock<Weak<Http>>>);

impl Links {
    pub(super) fn are_made_by(&self, http: &Arc<Http>) {
        let _ = self.0.set(Arc::downgrade(http));
    }

    pub(super) fn linker(&self) -> Linker {
        let links = self.clone();
        Linker::new(move |wanted| links.make(wanted))
    }

    fn make(&self, wanted: &Wanted<'_>) -> Option<String> {
        let http = self.0.get()?.upgrade()?;
        let door = http.household.get()?;
        match wanted.approval {
            Some((approval, until)) => door.approval_link(wanted.channel, approval, wanted.page, until),
            None => door.page_link(wanted.page),
        }
    }
}

/// Who is told of what happens, as the settings say by now.
pub(super) fn channels(home: &Home) -> ChannelSettings {
    let path = home.config_toml();
    ChannelSettings::new(move || {
        config::read(&path)?.channels().map_err(|fault| Refusal::invalid(format!("config.toml: {fault}")))
    })
}

impl HttpDoor for Http {
    fn open<'a>(&'a self, by: &'a By, person: Option<&'a str>, path: &'a str) -> Answer<'a, WayIn> {
        Box::pin(async move { self.door().await?.open(&by.0, person, path).await })
    }

    fn close<'a>(&'a self, by: &'a By) -> Answer<'a, bool> {
        Box::pin(async move { self.door().await?.close(&by.0).await })
    }

    fn create_token<'a>(&'a self, by: &'a By, name: &'a str, read_only: bool) -> Answer<'a, NewToken> {
        Box::pin(async move { self.door().await?.create_token(&by.0, name, read_only) })
    }

    fn tokens(&self) -> Answer<'_, Vec<HttpToken>> {
        Box::pin(async move { Ok(self.door().await?.tokens()) })
    }

    fn revoke_token<'a>(&'a self, by: &'a By, token: &'a str) -> Answer<'a, HttpToken> {
        Box::pin(async move { self.door().await?.revoke_token(&by.0, token) })
    }

    fn create_share<'a>(
        &'a self,
        by: &'a By,
        name: &'a str,
        access: Access,
        scope: Scope,
        lives: Duration,
    ) -> Answer<'a, NewShare> {
        Box::pin(async move { self.door().await?.create_share(&by.0, name, access, scope, lives) })
    }

    fn shares(&self) -> Answer<'_, Vec<Share>> {
        Box::pin(async move { Ok(self.door().await?.shares()) })
    }

    fn revoke_share<'a>(&'a self, by: &'a By, share: &'a str) -> Answer<'a, Share> {
        Box::pin(async move { self.door().await?.revoke_share(&by.0, share) })
    }

    fn hub_lists(&self) -> Answer<'_, Vec<Listed>> {
        Box::pin(async move { self.door().await?.hub_lists().await })
    }
}

/// Where the hub is, as the settings say by now, and the token for it.
pub(super) fn hub(home: &Home) -> HubSettings {
    let path = home.config_toml();
    Box::new(move || {
        let wrong = |fault: String| Refusal::invalid(format!("hub: {fault}"));
        let Some(Hub { url, token }) = config::read(&path)?.hub().map_err(wrong)? else { return Ok(None) };
        Ok(Some((url, token.read().map_err(wrong)?)))
    })
}
