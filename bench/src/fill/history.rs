//! Two years of a busy team, made up from a seed: campaigns, conversations, lives of every kind, one after the
//! other. The same seed gives the same history.

use std::{collections::VecDeque, time::Duration};

use ostler_domain::{
    Budget, ConversationId, Event, Message, MessageId, Mode, Name, SessionId, Time,
    agent::Agent,
    budget::WhenUsedUp,
    campaign::Campaign,
    conversation::Key,
    event::{By, ConversationOpened, DaemonStarted, HaltReleased, Halted, StopReason},
    policy::Policy,
    session::{
        AgentRef, Approve, Billing, Config, Created, How, Outcome, Report, Request, Restart, RestartPolicy,
        Sandbox, WatchdogLimits,
    },
    time::BootId,
};
use ostler_store::Bulk;
use ostler_testkit::Seed;

use super::{
    campaign::{campaign, widened},
    ending::{OUTCOMES, end},
    imported,
    life::Life,
    mission,
    team::{Tickets, Work, agents, reference},
    words::{entropy, rank, text, unit},
};

/// 2023-12-01, in microseconds: the whole history lies in the past of any machine.
const BEGINNING: i64 = 1_701_388_800_000_000;
const SPAN: Duration = Duration::from_secs(700 * 86_400);
const CAMPAIGNS: usize = 120;
/// Events of a life that does nothing beyond being started, told one thing and ended.
const LEAST_EVENTS: f64 = 13.5;
/// A daemon's life in sessions.
const SESSIONS_PER_DAEMON: u64 = 5_000;
/// Sessions between two changes of a policy, and between two halts of everything.
const SESSIONS_PER_POLICY: u64 = 500;
const SESSIONS_PER_HALT: u64 = 20_000;
/// One session in so many has an output that is too large for the log.
const LARGE_EVERY: u64 = 2_000;

const PROVIDERS: &[(&str, &[&str])] = &[
    ("claude-code", &["claude-opus-4-5", "claude-sonnet-4-5", "claude-haiku-4-5"]),
    ("codex", &["gpt-5-codex", "gpt-5-mini"]),
    ("script", &["script"]),
    ("openai-api", &["local-70b", "local-8b"]),
];
pub(super) const PEOPLE: &[&str] = &["ann", "bob", "chidi", "dana", "emre", "fay"];

/// What is to be made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) sessions: u64,
    /// About this many; never fewer than a life has.
    pub(crate) events: u64,
}

/// The history, item by item.
pub(crate) struct History {
    size: Size,
    pub(super) seed: Seed,
    pub(super) campaigns: Vec<Campaign>,
    /// The agents of each campaign.
    teams: Vec<Vec<Agent>>,
    tickets: Tickets,
    pub(super) ready: VecDeque<Bulk>,
    made: Size,
    /// The mean of what a session does beyond the least, and the end of the distribution that has it.
    mean: f64,
    longest: f64,
    continued: Option<Continued>,
}

/// A session whose policy wants another one.
struct Continued {
    id: SessionId,
    chain: SessionId,
    conversation: ConversationId,
    campaign: usize,
    name: Name,
    agent: Option<AgentRef>,
    config: Config,
    work: Option<Work>,
    restart_count: u32,
    short_lives: u32,
    at: Time,
}

/// A session that is to be lived.
pub(super) struct Begun {
    pub(super) created: Created,
    campaign: usize,
    work: Option<Work>,
}

impl History {
    pub(crate) fn new(size: Size, seed: u64) -> Self {
        let mut seed = Seed::of(seed);
        let campaigns: Vec<Campaign> =
            (0..CAMPAIGNS).map(|n| campaign(n, Time::from_micros(BEGINNING), &mut seed)).collect();
        let teams: Vec<Vec<Agent>> = campaigns.iter().map(|campaign| agents(campaign, &mut seed)).collect();
        let first = campaigns.iter().map(|campaign| {
            Bulk::Node(campaign.added, Box::new(Event::CampaignAdded(Box::new(campaign.clone()))))
        });
        let added =
            |agent: &Agent| Bulk::Node(agent.added, Box::new(Event::AgentAdded(Box::new(agent.clone()))));
        let ready: VecDeque<Bulk> = first.chain(teams.iter().flatten().map(added)).collect();
        let mean = (ratio(size.events, size.sessions) - LEAST_EVENTS).max(0.0);
        Self {
            made: Size { sessions: 0, events: ready.len() as u64 },
            ready,
            campaigns,
            teams,
            tickets: Tickets::default(),
            seed,
            mean,
            longest: end_of_zipf_with_mean(mean),
            size,
            continued: None,
        }
    }

    pub(crate) fn sessions_made(&self) -> u64 {
        self.made.sessions
    }

    fn make_session(&mut self) {
        let spacing = SPAN.mul_f64(1.0 / self.size.sessions.max(1) as f64);
        let regular = Time::from_micros(BEGINNING).plus(spacing.mul_f64(self.made.sessions as f64));
        if self.made.sessions.is_multiple_of(SESSIONS_PER_DAEMON) {
            self.push_node(regular, daemon_started(self.made.sessions / SESSIONS_PER_DAEMON + 1));
        }
        self.happen(regular);
        if mission::is_due(self.made.sessions) {
            self.make_mission(regular);
        }
        if imported::is_due(self.made.sessions) {
            self.make_imported(regular);
        }
        let continued = self.continued.take();
        let at = continued.as_ref().map_or(regular, |earlier| earlier.at.max(regular));
        let activities = self.activities();
        let outcome = self.outcome(continued.is_some());
        let begun = self.begun(at, outcome, continued);
        self.record(begun, outcome, activities, at, None);
    }

    pub(super) fn count(&mut self, life: &Life) {
        self.made.sessions += 1;
        self.made.events += life.events.len() as u64;
    }

    /// Has a session live from its beginning to its end, for somebody.
    pub(super) fn record(
        &mut self,
        begun: Begun,
        outcome: Outcome,
        activities: u64,
        at: Time,
        by: Option<&By>,
    ) {
        let policy = self.campaigns[begun.campaign].policy.clone();
        let by = by.cloned().unwrap_or_else(|| self.somebody());
        let life = self.live(begun.created.clone(), policy, outcome, activities, (at, &by));
        self.count(&life);
        let (ended, now) = (life.state.ended().map(|ended| ended.outcome), life.now());
        let id = begun.created.id;
        let (continued, over) = follow(&life, begun);
        self.continued = continued.or(self.continued.take());
        self.ready.push_back(Bulk::Session(life.events));
        let moved =
            over.zip(ended).and_then(|(work, ended)| self.tickets.end(&work, id, ended, &mut self.seed));
        if let Some(moved) = moved {
            self.push_node(now, moved);
        }
    }

    /// What happens to the node now and then.
    fn happen(&mut self, at: Time) {
        let made = self.made.sessions;
        let is_due = |every: u64| made % every == every / 2;
        if is_due(SESSIONS_PER_POLICY) {
            let by = self.somebody();
            let place = rank(&mut self.seed, CAMPAIGNS as f64);
            let widened = widened(&mut self.campaigns[place], &by, &mut self.seed);
            self.push_node(at, widened);
        }
        if is_due(SESSIONS_PER_HALT) {
            let by = self.somebody();
            let why = text(&mut self.seed, 30);
            self.push_node(at, Event::Halted(Halted { freeze: false, by: by.clone(), why }));
            self.push_node(at.plus(Duration::from_millis(1)), Event::HaltReleased(HaltReleased { by }));
        }
    }

    pub(super) fn push_node(&mut self, at: Time, event: Event) {
        self.made.events += 1;
        self.ready.push_back(Bulk::Node(at, Box::new(event)));
    }

    /// How much the next session does: a few do a great deal. What was made so far is made up for.
    fn activities(&mut self) -> u64 {
        let left = Size {
            sessions: self.size.sessions.saturating_sub(self.made.sessions),
            events: self.size.events.saturating_sub(self.made.events),
        };
        let needed = (ratio(left.events, left.sessions) - LEAST_EVENTS).max(0.0);
        let correction = if self.mean > 0.0 { (needed / self.mean).clamp(0.2, 5.0) } else { 0.0 };
        let drawn = self.longest.powf(unit(&mut self.seed)) * correction;
        let whole = drawn.round() as u64;
        whole.min(100_000)
    }

    fn outcome(&mut self, goes_on: bool) -> Outcome {
        if goes_on && self.seed.chance(70) {
            return Outcome::Done;
        }
        // A store of any size has an end of every kind.
        if let Some((outcome, _)) = usize::try_from(self.made.sessions).ok().and_then(|n| OUTCOMES.get(n)) {
            return *outcome;
        }
        let mut place = self.seed.below(OUTCOMES.iter().map(|(_, share)| share).sum());
        for (outcome, share) in OUTCOMES {
            match place.checked_sub(*share) {
                Some(rest) => place = rest,
                None => return *outcome,
            }
        }
        Outcome::Done
    }

    fn begun(&mut self, at: Time, outcome: Outcome, continued: Option<Continued>) -> Begun {
        let id = SessionId::new(at, self.entropy());
        if let Some(earlier) = continued {
            let created = Created {
                id,
                campaign: self.campaigns[earlier.campaign].id,
                conversation: earlier.conversation,
                name: earlier.name,
                agent: earlier.agent,
                config: earlier.config,
                sandbox: Sandbox::Off,
                policy: Default::default(),
                continues: Some(earlier.id),
                chain: earlier.chain,
                spawned_by: None,
                bounded_by: None,
                restart_count: earlier.restart_count,
                short_lives: earlier.short_lives,
                begin: Default::default(),
                imported: None,
            };
            return Begun { created, campaign: earlier.campaign, work: earlier.work };
        }
        let place = rank(&mut self.seed, CAMPAIGNS as f64);
        let mut begun = self.begun_as(id, place, at, outcome);
        begun.work = self.work_on(place, id, at);
        begun.created.config.ticket = begun.work.as_ref().map(|work| work.external.clone());
        begun.created.config.ticket_id = begun.work.as_ref().map(|work| work.id);
        begun
    }

    /// A session that goes on with nothing, in this campaign and on no ticket.
    pub(super) fn begun_as(&mut self, id: SessionId, place: usize, at: Time, outcome: Outcome) -> Begun {
        let campaign = self.campaigns[place].clone();
        let conversation = ConversationId::new(at, self.entropy());
        let name = self.name();
        let agent = self.seed.chance(35).then(|| {
            let team = &self.teams[place];
            reference(&team[rank(&mut self.seed, team.len() as f64)])
        });
        // An agent has a conversation for each thing that it works on.
        let key = if agent.is_some() { Key::handed(id) } else { Key::adhoc(id) };
        let opened = ConversationOpened::new(conversation, campaign.id, key, name.clone());
        let opened = ConversationOpened { agent: agent.as_ref().map(|agent| agent.id), ..opened };
        self.push_node(at, Event::ConversationOpened(Box::new(opened)));
        let config = self.config(&campaign, outcome);
        let created = Created {
            id,
            campaign: campaign.id,
            conversation,
            name,
            agent,
            config,
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
        Begun { created, campaign: place, work: None }
    }

    /// The ticket that a new session works on, if it does on one.
    fn work_on(&mut self, place: usize, session: SessionId, at: Time) -> Option<Work> {
        if !self.seed.chance(30) {
            return None;
        }
        let by = self.somebody();
        let campaign = &self.campaigns[place];
        let (work, events) = self.tickets.begin(place, campaign, session, at, &mut self.seed, &by)?;
        for event in events {
            self.push_node(at, event);
        }
        Some(work)
    }

    fn name(&mut self) -> Name {
        let words = text(&mut self.seed, 18);
        Name::slug(&words).unwrap_or_else(|| "work".parse().unwrap_or_else(|_| unreachable!("a name")))
    }

    fn config(&mut self, campaign: &Campaign, outcome: Outcome) -> Config {
        let seed = &mut self.seed;
        let (provider, models) = PROVIDERS[rank(seed, PROVIDERS.len() as f64)];
        let restarts = outcome.is_failure() && seed.chance(40);
        Config {
            provider: provider.to_owned(),
            model: Some(models[rank(seed, models.len() as f64)].to_owned()),
            working_dir: campaign.root.path.clone(),
            branch: None,
            worktree: None,
            budget: match outcome {
                Outcome::Budget => {
                    Some(Budget { tokens: Some(20_000), dollars: None, when_used_up: WhenUsedUp::Stop })
                }
                _ => seed.chance(20).then_some(Budget { tokens: Some(50_000_000), ..Budget::default() }),
            },
            when_used_up: Default::default(),
            billing: if provider == "claude-code" && seed.chance(30) {
                Billing::Plan
            } else {
                Billing::Calls
            },
            timeout_us: (outcome == Outcome::Timeout).then_some(1_800_000_000),
            deadline: None,
            restart: if restarts { RestartPolicy::OnFailure } else { RestartPolicy::Never },
            approve: [Approve::All, Approve::Ask, Approve::Policy][seed.below(3) as usize],
            ends_with_turn: outcome == Outcome::Done && seed.chance(50),
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

    fn live(
        &mut self,
        created: Created,
        policy: Policy,
        outcome: Outcome,
        activities: u64,
        (at, by): (Time, &By),
    ) -> Life {
        let message = self.message(at);
        let entropy = self.entropy();
        let mut life = Life::begin(created, Some(message), by, at, entropy).under(policy);
        let pid = 1_000 + u32::try_from(self.seed.below(4_000_000)).unwrap_or(0);
        if outcome == Outcome::FailedStart {
            life.ask(Request::Start, &By::ostler());
            life.pass(Duration::from_millis(30));
            let message = "No such file or directory (os error 2)".to_owned();
            life.exit(How::NeverStarted { stage: "exec".to_owned(), message, cures: Vec::new() }, false);
            return life;
        }
        let provider_id = format!("{:016x}", self.seed.below(u64::MAX));
        life.start(pid, Some(provider_id));
        self.work(&mut life, outcome, activities, by);
        end(&mut life, outcome, by);
        life
    }

    /// Turns with everything that happens in them.
    fn work(&mut self, life: &mut Life, outcome: Outcome, activities: u64, by: &By) {
        let (mut done, mut turn) = (0, 0);
        // A life that does more than this has several turns, each for a message of its own.
        let per_turn = 10 + self.seed.below(60);
        let is_large = self.made.sessions % LARGE_EVERY == LARGE_EVERY / 2;
        let cut_short = matches!(outcome, Outcome::Crashed | Outcome::Lost | Outcome::Oom | Outcome::Killed);
        loop {
            if cut_short && self.seed.chance(10) {
                // It was told, and died before it showed that it had heard.
                return;
            }
            let asked = life.events.iter().rev().find_map(|(_, event)| match event {
                Event::MessageAccepted(accepted) => Some(accepted.message.id),
                _ => None,
            });
            life.report(Report::TurnStarted { messages: asked.into_iter().collect() });
            if is_large && turn == 0 {
                self.tool(life, 40_000);
            }
            let until = activities.min(done + per_turn);
            while done < until {
                done += self.activity(life);
            }
            self.call(life, if outcome == Outcome::Budget { 30_000 } else { 0 });
            if done >= activities && cut_short && self.seed.chance(70) {
                return;
            }
            life.report(Report::TurnEnded { stop_reason: StopReason::Completed });
            if done >= activities || life.state.stop().is_some() {
                return;
            }
            turn += 1;
            life.pass(Duration::from_secs(20 + self.seed.below(300)));
            let message = self.message(life.now());
            life.ask(Request::prompt(message), by);
        }
    }

    pub(super) fn message(&mut self, at: Time) -> Message {
        let bytes = self.length(30, 1_200);
        let entropy = self.entropy();
        Message { id: MessageId::new(at, entropy), text: text(&mut self.seed, bytes), mode: Mode::Followup }
    }

    /// A length between two, the shorter the likelier.
    pub(super) fn length(&mut self, least: usize, most: usize) -> usize {
        least + rank(&mut self.seed, (most - least) as f64)
    }

    fn entropy(&mut self) -> u128 {
        entropy(&mut self.seed)
    }
}

impl Iterator for History {
    type Item = Bulk;

    fn next(&mut self) -> Option<Bulk> {
        // A promised restart is kept even beyond the number: a daemon that finds one unkept would keep it.
        while self.ready.is_empty() && (self.made.sessions < self.size.sessions || self.continued.is_some()) {
            self.make_session();
        }
        self.ready.pop_front()
    }
}

/// What the next session must go on with; else the ticket that nobody works on any more.
fn follow(life: &Life, begun: Begun) -> (Option<Continued>, Option<Work>) {
    let Begun { created, campaign, work } = begun;
    let Some(Restart::At(deadline)) = life.state.ended().and_then(|ended| ended.restart.as_ref()) else {
        return (None, work);
    };
    let continued = Continued {
        id: created.id,
        chain: created.chain,
        conversation: created.conversation,
        campaign,
        name: created.name,
        agent: created.agent,
        config: created.config,
        work,
        restart_count: created.restart_count + 1,
        short_lives: life.state.short_lives(),
        at: deadline.wall(),
    };
    (Some(continued), None)
}

fn daemon_started(epoch: u64) -> Event {
    let boot = BootId("6f1b0c5e-3b1d-4f0a-9d58-2c6a4e8f7a31".to_owned());
    Event::DaemonStarted(DaemonStarted { version: "0.1.0".to_owned(), epoch, pid: 4_321, boot })
}

/// `end` such that `end` to the power of a number from 0 to 1 has this mean.
fn end_of_zipf_with_mean(mean: f64) -> f64 {
    let mean_of = |end: f64| (end - 1.0) / end.ln();
    let (mut low, mut high) = (1.000_001, 1e9);
    while high - low > 1e-3 {
        let middle = f64::midpoint(low, high);
        if mean_of(middle) < mean { low = middle } else { high = middle }
    }
    low
}

fn ratio(events: u64, sessions: u64) -> f64 {
    events as f64 / sessions.max(1) as f64
}
