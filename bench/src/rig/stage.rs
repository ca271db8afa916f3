//! A home whose record has live sessions in the middle of a turn, as a daemon that died would have left it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ostler_domain::{
    CampaignId, ConversationId, Event, SessionId, Time,
    campaign::{Campaign, Root},
    conversation::Key,
    event::{By, ConversationOpened},
    home::Home,
    limits::SEGMENT_BYTES,
    session::{Approve, Config, Created, Report, RestartPolicy, Sandbox, WatchdogLimits},
};
use ostler_store::{Bulk, Options, Paths, Store, block_on};
use ostler_tape::{Record, Stream, Writer};

use super::{line, wall_us};
use crate::{Outcome, fill::life::Life};

/// A home that goes with its value.
pub(crate) struct Stage {
    pub(crate) home: Home,
    pub(crate) sessions: Vec<SessionId>,
    _dir: tempfile::TempDir,
}

impl Stage {
    /// Records `count` live sessions in a new home below `dir`.
    pub(crate) fn set(dir: &Path, count: u64) -> Outcome<Self> {
        let place = tempfile::Builder::new().prefix("stage-").tempdir_in(dir)?;
        let home = Home::at(place.path().canonicalize()?.join("home"));
        fs::create_dir_all(home.state())?;
        let at = Time::from_micros(wall_us());
        let campaign = campaign(at, place.path());
        let lives: Vec<(Created, Life)> = (0..count).map(|n| live(&campaign, n, at)).collect();
        let sessions = lives.iter().map(|(created, _)| created.id).collect();
        let added = std::iter::once(Bulk::Node(at, Box::new(Event::CampaignAdded(Box::new(campaign)))));
        let lived = lives.into_iter().flat_map(move |(created, life)| {
            let key = Key::adhoc(created.id);
            let opened = ConversationOpened::new(created.conversation, created.campaign, key, created.name);
            [
                Bulk::Node(at, Box::new(Event::ConversationOpened(Box::new(opened)))),
                Bulk::Session(life.events),
            ]
        });
        let store = Store::open(&Paths::below(home.state()), &Options::default())?.store;
        block_on(store.bulk(added.chain(lived)))?;
        drop(store);
        let stage = Self { home, sessions, _dir: place };
        for dir in stage.session_dirs() {
            fs::create_dir_all(dir)?;
        }
        Ok(stage)
    }

    pub(crate) fn session_dirs(&self) -> impl Iterator<Item = PathBuf> {
        self.sessions.iter().map(|id| self.home.session_dir(id))
    }

    /// Tapes this many lines in every session; nobody has read them yet.
    pub(crate) fn tape(&self, lines: u64) -> Outcome<()> {
        for dir in self.session_dirs() {
            let mut tape = Writer::open(&dir, SEGMENT_BYTES)?;
            let lines: Vec<String> = (1..=lines).map(line).collect();
            let now = wall_us();
            let records: Vec<Record<'_>> =
                lines.iter().map(|line| Record::line(Stream::Out, now, line.as_bytes())).collect();
            tape.append(&records)?;
        }
        Ok(())
    }
}

fn campaign(at: Time, dir: &Path) -> Campaign {
    let root = Root { path: dir.display().to_string(), device: 1, inode: 1 };
    let name = "shop".parse().unwrap_or_else(|_| unreachable!("a name"));
    Campaign {
        id: CampaignId::new(at, 1),
        name,
        root,
        added: at,
        policy: Default::default(),
        tracked_hidden: Vec::new(),
        unwatched: None,
    }
}

/// A session whose turn has just begun.
pub(crate) fn live(campaign: &Campaign, n: u64, at: Time) -> (Created, Life) {
    let id = SessionId::new(at, u128::from(n) << 16 | 0xfeed);
    let created = Created {
        id,
        campaign: campaign.id,
        conversation: ConversationId::new(at, u128::from(n)),
        name: format!("busy-{n}").parse().unwrap_or_else(|_| unreachable!("a name")),
        agent: None,
        config: config(&campaign.root.path),
        sandbox: Sandbox::Off,
        policy: Default::default(),
        continues: None,
        chain: id,
        spawned_by: None,
        bounded_by: None,
        restart_count: 0,
        short_lives: 0,
        begin: Default::default(),
        imported: None,
    };
    let mut life = Life::begin(created.clone(), None, &By("ann".to_owned()), at, u128::from(n));
    life.start(1_000_000 + u32::try_from(n).unwrap_or(0), None);
    life.report(Report::TurnStarted { messages: Vec::new() });
    (created, life)
}

fn config(working_dir: &str) -> Config {
    Config {
        provider: "script".to_owned(),
        model: None,
        working_dir: working_dir.to_owned(),
        branch: None,
        worktree: None,
        budget: None,
        when_used_up: Default::default(),
        billing: Default::default(),
        timeout_us: None,
        deadline: None,
        restart: RestartPolicy::Never,
        approve: Approve::All,
        ends_with_turn: false,
        environment: Default::default(),
        provider_config: Default::default(),
        system_prompt: None,
        auth_profile: None,
        ticket: None,
        ticket_id: None,
        mission: None,
        leases: Default::default(),
        watchdogs: WatchdogLimits::default(),
        resumes_after_limit: true,
        approval_us: ostler_domain::session::approval_limit(),
        priority: Default::default(),
        idle_stop_us: None,
        no_tools: false,
    }
}
