//! What somebody who is not looking should hear of, as it becomes due.

use std::{collections::BTreeMap, time::Duration};

use ostler_domain::{
    Reason, Recorded, SessionId, Time,
    notice::{About, Notice, Occasion, OfMission, Pace, Whose},
    query::{EventFilter, Page},
};
use ostler_wire::pb::{self, notice_service_client::NoticeServiceClient as Service};
use tokio::{sync::mpsc, task::JoinHandle, time::Instant};

use crate::{Client, Error, Watched};

/// Notices that nobody has taken yet.
const WAITING: usize = 16;
/// Before a daemon that could not be asked is asked again.
const AGAIN: Duration = Duration::from_secs(1);
/// Campaigns are few: their names are asked for at once.
const CAMPAIGNS: u32 = 500;

/// A channel that is not told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UntoldChannel {
    /// Its name.
    pub channel: String,
    /// In words: a secret that is not there, or what came of the last try.
    pub why: String,
}

/// Which notices are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WantedNotices {
    /// None: every occasion.
    pub on: Vec<Occasion>,
    /// With what the agent works on.
    pub details: bool,
    /// Of this session alone.
    pub session: Option<SessionId>,
}

/// Notices from now on, when they are due: approvals at once, the rest when it has lasted, of each session one a minute.
/// Goes on when the daemon was away. Ends when it is dropped.
#[derive(Debug)]
pub struct Notices {
    due: mpsc::Receiver<Notice>,
    task: JoinHandle<()>,
}

impl Notices {
    /// The next one. Nothing is lost by not waiting for it to the end.
    pub async fn next(&mut self) -> Option<Notice> {
        self.due.recv().await
    }
}

impl Drop for Notices {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Client {
    /// Follows what somebody who is not looking should hear of, from now on. Within a tokio runtime.
    pub fn notices(&self, wanted: WantedNotices) -> Notices {
        let (to, due) = mpsc::channel(WAITING);
        let client = self.clone();
        Notices { due, task: tokio::spawn(async move { client.tell(wanted, to).await }) }
    }

    /// Has the daemon tell a channel that it is told, and says what sort of channel it is.
    pub async fn test_channel(&self, channel: &str) -> Result<String, Error> {
        let request = pb::TestChannelRequest { channel: channel.to_owned() };
        let answer =
            self.ask_once(|channel| async move { Service::new(channel).test_channel(request).await }).await?;
        Ok(answer.to)
    }

    /// The channels that cannot be told as things are, or were not when it was tried last.
    pub async fn untold(&self) -> Result<Vec<UntoldChannel>, Error> {
        let ask = |channel| async move { Service::new(channel).list_untold(pb::ListUntoldRequest {}).await };
        let told = self.ask(ask).await?;
        let untold = |told: pb::UntoldChannel| UntoldChannel { channel: told.channel, why: told.why };
        Ok(told.channels.into_iter().map(untold).collect())
    }

    async fn tell(&self, wanted: WantedNotices, to: mpsc::Sender<Notice>) {
        let filter = EventFilter {
            kinds: Occasion::KINDS.to_vec(),
            session: wanted.session,
            ..EventFilter::default()
        };
        let (begun, mut pace, mut cursor) = (Instant::now(), Pace::default(), None);
        let mut events: BTreeMap<u64, Box<Recorded>> = BTreeMap::new();
        loop {
            let mut watch = match self.watch(filter.clone(), cursor).await {
                Ok(watch) => watch,
                Err(error) => {
                    // A log that was put back from a copy is another one.
                    cursor = cursor.filter(|_| !error.is_refused_for(Reason::CursorUnknown));
                    tokio::time::sleep(AGAIN).await;
                    continue;
                }
            };
            loop {
                while let Some((about, due)) = pace.due(begun.elapsed()) {
                    let group = due.iter().filter_map(|seq| events.remove(seq)).map(|event| *event).collect();
                    if let Some(notice) = self.first_worth(group, wanted.details).await {
                        pace.told(about, begun.elapsed());
                        if to.send(notice).await.is_err() {
                            return;
                        }
                    }
                }
                let rest = pace.next().map(|due| due.saturating_sub(begun.elapsed()));
                let watched = tokio::select! {
                    watched = watch.next(), if pace.has_room() => watched,
                    () = tokio::time::sleep(rest.unwrap_or(Duration::MAX)), if rest.is_some() => continue,
                };
                cursor = watch.cursor();
                match watched {
                    Some(Ok(Watched::Event(event))) => {
                        let is_wanted = |on: &Occasion| wanted.on.is_empty() || wanted.on.contains(on);
                        let on = Occasion::of(&event.event).filter(is_wanted);
                        if let Some((on, about)) = on.zip(About::of(&event)) {
                            let age = now().since(event.time);
                            pace.heard(event.seq, on, about, age, begun.elapsed());
                            events.insert(event.seq, event);
                        }
                    }
                    Some(Ok(Watched::Unknown(_) | Watched::Reconnected)) => {}
                    Some(Err(_)) | None => break,
                }
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    async fn first_worth(&self, group: Vec<Recorded>, details: bool) -> Option<Notice> {
        let mut worth = Vec::new();
        for recorded in group {
            worth.extend(self.notice(&recorded, details).await.ok().flatten());
        }
        let more = u32::try_from(worth.len().saturating_sub(1)).unwrap_or(u32::MAX);
        worth.into_iter().next().map(|notice| notice.with_more(more))
    }

    /// None of what somebody has answered meanwhile.
    async fn notice(&self, recorded: &Recorded, details: bool) -> Result<Option<Notice>, Error> {
        let campaigns = self.campaigns(Page::of(CAMPAIGNS, None)).await?.rows;
        let named = |id| campaigns.iter().find(|known| known.id == id).map(|known| known.name.to_string());
        Ok(match About::of(recorded) {
            Some(About::Session(id)) => {
                let session = self.session(&id.to_string()).await?;
                let notice = |campaign: &str| {
                    let whose = Whose { node: "", session: &session, campaign };
                    Notice::of(recorded, whose, details)
                };
                let notice = notice(&named(session.campaign).unwrap_or_default());
                let is_open = |id: &String| session.approvals_open.iter().any(|open| open.to_string() == *id);
                notice.filter(|notice| notice.approval.as_ref().is_none_or(is_open))
            }
            Some(About::Mission(id)) => {
                let mission = self.mission(&id.to_string()).await?.mission;
                let (name, campaign) =
                    (mission.name.to_string(), named(mission.campaign).unwrap_or_default());
                let whose = OfMission { node: "", name: &name, campaign: &campaign };
                Notice::of_mission(recorded, whose, details)
            }
            None => None,
        })
    }
}

fn now() -> Time {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Time::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}
