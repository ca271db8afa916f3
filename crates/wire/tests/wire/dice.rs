//! Values made from rolled numbers: every type that crosses the wire, with and without each of its parts.

mod conversation;
mod history;
mod http;
mod mission;
mod requests;
mod share;
mod ticket;
mod tree;

use std::time::Duration;

use ostler_domain::{
    ApprovalId, Budget, CampaignId, ConversationId, Event, Hint, Kind, Message, MessageId, Name, NodeId, Now,
    Policy, Recorded, SessionId, Time, Usage,
    admission::Priority,
    approval::Applied,
    budget::{Today, WhenUsedUp},
    campaign::{Campaign, Root},
    event::{Answer, AskKind, By, ContextMeasured, Leftover, Process, Text, UsageRecorded},
    price::{Cost, Dollars},
    query::{EventFilter, Scope, SessionFilter},
    reboot::{GoingOn, LostSession, MachineRestart},
    session::{
        Approve, Attention, Desired, Doing, LargestProcess, Obituary, OutOfMemory, Outcome, Phase, Restart,
        RestartPolicy, RestartRefusal, Sandbox, Status, StopRule, View, WatchdogLimits,
    },
    sql::Cell,
    time::{BootId, Deadline},
};
use ostler_wire::{
    reply::{
        Answered, Approval, Audit, BrokenLine, CampaignUse, Delivery, DiskRoom, DiskUse, DrainState, Finding,
        Halt, HaltState, NodeStatus, PartUse, Progress, Received, SessionUse, Severity, StoreSizes,
        UnknownEvent, UsageBy, UsageRow,
    },
    request::{AddCampaign, CreateSession, GetUsage, ListEvents, Place, ResumeSession, SendMessage},
};
use proptest::{collection::vec, prelude::*};

/// A row of rolls, read over and over.
#[derive(Debug, Clone)]
pub(crate) struct Dice {
    rolls: Vec<u64>,
    next: usize,
}

pub(crate) fn dice() -> impl Strategy<Value = Dice> {
    vec(any::<u64>(), 61).prop_map(|rolls| Dice { rolls, next: 0 })
}

impl Dice {
    pub(crate) fn number(&mut self) -> u64 {
        let roll = self.rolls[self.next % self.rolls.len()];
        self.next += 1;
        roll
    }

    fn small(&mut self) -> u32 {
        (self.number() >> 33) as u32
    }

    fn yes(&mut self) -> bool {
        self.number().is_multiple_of(2)
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.small() as usize % choices.len()]
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.yes().then(|| make(self))
    }

    fn some<T>(&mut self, make: impl Fn(&mut Self) -> T) -> Vec<T> {
        (0..self.small() % 3).map(|_| make(self)).collect()
    }

    fn text(&mut self) -> String {
        let piece = self.of(&["", "a", "naïve ␛[2J", "{\"json\": 1}", "line\nline", "🐎"]);
        format!("t{piece}{}", self.small() % 100)
    }

    fn name(&mut self) -> Name {
        format!("name-{}", self.small()).parse().unwrap()
    }

    fn time(&mut self) -> Time {
        // Years 1653 to 2286: before 1970 too.
        Time::from_micros((self.number() % 20_000_000_000_000_000) as i64 - 10_000_000_000_000_000)
    }

    fn micros(&mut self) -> u64 {
        self.number() >> 20
    }

    fn entropy(&mut self) -> (Time, u128) {
        (Time::from_micros((self.number() >> 12) as i64), u128::from(self.number()))
    }

    pub(crate) fn session_id(&mut self) -> SessionId {
        let (at, entropy) = self.entropy();
        SessionId::new(at, entropy)
    }

    fn campaign_id(&mut self) -> CampaignId {
        let (at, entropy) = self.entropy();
        CampaignId::new(at, entropy)
    }

    fn conversation_id(&mut self) -> ConversationId {
        let (at, entropy) = self.entropy();
        ConversationId::new(at, entropy)
    }

    fn approval_id(&mut self) -> ApprovalId {
        let (at, entropy) = self.entropy();
        ApprovalId::new(at, entropy)
    }

    pub(crate) fn usage(&mut self) -> Usage {
        let [input, cache_read, cache_write, output, reasoning] = std::array::from_fn(|_| self.number());
        Usage { input, cache_read, cache_write, output, reasoning }
    }

    fn cost(&mut self) -> Cost {
        let (paid, plan) = (Dollars(self.number()), Dollars(self.number()));
        let unpriced = self.maybe(|dice| (dice.text(), dice.usage())).into_iter().collect();
        Cost { paid, plan, unpriced, plan_unpriced: self.usage() }
    }

    fn budget(&mut self) -> Budget {
        Budget {
            tokens: self.maybe(|dice| dice.number().max(1)),
            dollars: Some(Dollars(self.number())),
            when_used_up: self.of(&[WhenUsedUp::Hold, WhenUsedUp::Stop]),
        }
    }

    fn restart(&mut self) -> Restart {
        if self.yes() {
            return Restart::Quarantined { short_lives: self.small() };
        }
        // Of no boot: that part stays with the daemon.
        let now = Now { wall: self.time(), since_boot: Duration::ZERO, boot: BootId::default() };
        Restart::At(Deadline::after(&now, Duration::ZERO))
    }

    pub(crate) fn question(&mut self) -> ostler_domain::sql::Question {
        ostler_domain::sql::Question {
            sql: self.text(),
            rows: self.number().max(1),
            time: std::time::Duration::from_millis(self.number().max(1)),
        }
    }

    pub(crate) fn sql_rows(&mut self) -> Vec<Vec<Cell>> {
        let cells = vec![
            Cell::Null,
            Cell::Integer(self.number().cast_signed()),
            Cell::Real(1.5),
            Cell::Text(self.text()),
            Cell::Bytes(self.text().into_bytes()),
        ];
        vec![cells, Vec::new()]
    }

    pub(crate) fn models(&mut self) -> ostler_domain::provider::Models {
        ostler_domain::provider::Models {
            models: vec![self.text(), self.text()],
            asked: self.maybe(Self::text),
            why_not: self.maybe(Self::text),
        }
    }

    pub(crate) fn provider_status(&mut self) -> ostler_domain::provider::Status {
        ostler_domain::provider::Status {
            name: self.text(),
            program: self.maybe(Self::text),
            version: self.maybe(Self::text),
            problem: self.maybe(Self::text),
            lacks: self.maybe(Self::text),
            cure: self.maybe(Self::text),
            base_url: self.maybe(Self::text),
            key: self.text(),
            is_logged_in: self.yes(),
            model: self.maybe(Self::text),
            capabilities: vec![self.text(), self.text()],
            usage_sources: vec![self.text()],
            net_mode: self.maybe(|dice| dice.of(ostler_domain::policy::NetMode::ALL)),
            profiles: vec![ostler_domain::provider::Account {
                name: self.text(),
                base_url: self.maybe(Self::text),
                key: self.text(),
                is_logged_in: self.yes(),
            }],
        }
    }

    fn obituary(&mut self) -> Obituary {
        const RULES: &[StopRule] = &[
            StopRule::Stop,
            StopRule::Kill,
            StopRule::Halt,
            StopRule::TurnEnded,
            StopRule::Timeout,
            StopRule::Budget,
            StopRule::StartWatchdog,
            StopRule::StallWatchdog,
            StopRule::Restart,
            StopRule::ProviderAuth,
            StopRule::CannotStart,
            StopRule::Done,
            StopRule::Idle,
            StopRule::GaveWay,
            StopRule::Handoff,
            StopRule::Reset,
        ];
        Obituary {
            sentence: self.text(),
            exit_code: self.maybe(|dice| dice.small() as i32),
            signal: self.maybe(|dice| dice.small() as i32),
            rule: self.maybe(|dice| dice.of(RULES)),
            by: self.maybe(Self::text),
            oom: self.yes(),
            memory: self.maybe(|dice| OutOfMemory {
                limit_bytes: dice.maybe(Self::number),
                used_bytes: dice.maybe(Self::number),
                largest: dice.maybe(|dice| LargestProcess { name: dice.text(), bytes: dice.number() }),
                oom_kills: dice.number(),
            }),
            last: self.maybe(Self::text),
            leftovers: self.some(|dice| Leftover { pid: dice.small(), name: dice.text() }),
            cures: self.some(|dice| Hint { command: dice.text(), effect: dice.text() }),
        }
    }

    pub(crate) fn view(&mut self) -> View {
        View {
            id: self.session_id(),
            campaign: self.campaign_id(),
            conversation: self.conversation_id(),
            name: self.name(),
            agent: self.maybe(Self::agent_ref),
            provider: self.text(),
            model: self.maybe(Self::text),
            status: self.of(Status::ALL),
            phase: self.of(&[Phase::Created, Phase::Starting, Phase::Live, Phase::Stopping, Phase::Ended]),
            attention: self.maybe(|dice| dice.of(Attention::ALL)),
            attention_since: self.time(),
            evidence: self.text(),
            outcome: self.maybe(|dice| dice.of(Outcome::ALL)),
            obituary: self.maybe(Self::obituary),
            restart: self.maybe(Self::restart),
            desired: self.of(&[Desired::Run, Desired::Pause, Desired::Stop]),
            sandbox: Sandbox::Off,
            working_dir: self.text(),
            branch: self.maybe(Self::text),
            worktree: self.maybe(Self::worktree),
            ticket: self.maybe(Self::text),
            ticket_id: self.maybe(Self::ticket_id),
            mission: self.maybe(Self::membership),
            continues: self.maybe(Self::session_id),
            chain: self.session_id(),
            spawned_by: self.maybe(Self::session_id),
            restart_count: self.small(),
            restart_policy: self.restart_policy(),
            provider_id: self.maybe(Self::text),
            process: self.maybe(|dice| Process { pid: dice.small(), start_time: dice.number() }),
            doing: self.maybe(|dice| Doing { text: dice.text(), since: dice.time() }),
            turns: self.small(),
            usage: self.usage(),
            cost: self.cost(),
            budget: self.maybe(Self::budget),
            messages_waiting: self.small(),
            approvals_open: self.some(Self::approval_id),
            denied: self.small(),
            redacted: self.small(),
            last_completion: self.maybe(Self::text),
            created_at: self.time(),
            started_at: self.maybe(Self::time),
            ended_at: self.maybe(Self::time),
            last_activity_at: self.maybe(Self::time),
            updated_at: self.time(),
            session_seq: self.number(),
            priority: self.of(Priority::ALL),
            limited_until: self.maybe(Self::time),
            context: self
                .maybe(|dice| ContextMeasured { used: dice.number(), window: dice.maybe(Self::number) }),
            imported: self.maybe(Self::history_origin),
            compactions: self.small(),
            auth_profile: self.maybe(Self::name),
            continued_by: self.maybe(Self::session_id),
            restart_refused: self.maybe(Self::restart_refused),
        }
    }

    fn restart_refused(&mut self) -> RestartRefusal {
        RestartRefusal {
            since: self.time(),
            reason: self.text(),
            why: self.text(),
            cures: self.some(|dice| Hint { command: dice.text(), effect: dice.text() }),
        }
    }

    fn restart_policy(&mut self) -> RestartPolicy {
        self.of(&[RestartPolicy::Never, RestartPolicy::OnFailure, RestartPolicy::Always])
    }

    fn policy(&mut self) -> Policy {
        let settings = ["read+=@rust", "write+=/srv/a b", "net.mode=open", "limits.memory=8GiB", "ptrace=on"];
        let said: Vec<String> = settings
            .iter()
            .filter(|_| self.number().is_multiple_of(2))
            .map(|text| (*text).to_owned())
            .collect();
        Policy::default().changed_by(&said).unwrap()
    }

    pub(crate) fn campaign(&mut self) -> Campaign {
        let root = Root { path: format!("/{}", self.text()), device: self.number(), inode: self.number() };
        Campaign {
            id: self.campaign_id(),
            name: self.name(),
            root,
            added: self.time(),
            policy: self.policy(),
            tracked_hidden: (0..self.small() % 3).map(|_| self.text()).collect(),
            unwatched: self.maybe(Self::text).filter(|why| !why.is_empty()),
        }
    }

    pub(crate) fn received(&mut self) -> Received {
        let (seq, session, session_seq) =
            (self.number(), self.maybe(Self::session_id), self.maybe(Self::number));
        let time = self.time();
        let event = match self.small() % 4 {
            0 => Event::AgentCompletion(Text::from(self.text())),
            1 => Event::UsageRecorded(UsageRecorded {
                usage: self.usage(),
                model: self.maybe(Self::text),
                ..UsageRecorded::default()
            }),
            2 => Event::CampaignAdded(Box::new(Campaign {
                tracked_hidden: Vec::new(),
                unwatched: None,
                ..self.campaign()
            })),
            _ => {
                let (kind, body) = ("MOON_LANDED".to_owned(), self.text());
                return Received::Unknown(UnknownEvent { seq, session, session_seq, time, kind, body });
            }
        };
        Received::Known(Box::new(Recorded { seq, session, session_seq, time, event }))
    }

    pub(crate) fn session_filter(&mut self) -> SessionFilter {
        let scope = match self.small() % 3 {
            0 => Scope::All,
            1 => Scope::Current { failed_since: self.time() },
            _ => Scope::NotEnded,
        };
        SessionFilter {
            scope,
            campaigns: self.some(Self::campaign_id),
            conversation: self.maybe(Self::conversation_id),
            chains: self.some(Self::session_id),
            continues: self.maybe(Self::session_id),
            spawned_by: self.maybe(Self::session_id),
            name: self.maybe(Self::text),
            name_begins: self.maybe(Self::text),
            agents: self.some(Self::text),
            roles: self.some(Self::text),
            branches: self.some(Self::text),
            providers: self.some(Self::text),
            models: self.some(Self::text),
            tickets: self.some(Self::text),
            missions: self.some(Self::mission_id),
            statuses: self.some(|dice| dice.of(Status::ALL)),
            attention: self.some(|dice| dice.of(Attention::ALL)),
            outcomes: self.some(|dice| dice.of(Outcome::ALL)),
            since: self.maybe(Self::time),
            until: self.maybe(Self::time),
            min_cost: self.maybe(|dice| Dollars(dice.number())),
        }
    }

    pub(crate) fn event_filter(&mut self) -> EventFilter {
        EventFilter {
            session: self.maybe(Self::session_id),
            kinds: self.some(|dice| dice.of(Kind::ALL)),
            since: self.maybe(Self::time),
            until: self.maybe(Self::time),
            sessions: self.maybe(Self::session_filter).map(Box::new),
        }
    }

    pub(crate) fn delivery(&mut self) -> Delivery {
        use ostler_domain::{Mode, Receipt};
        let (at, entropy) = self.entropy();
        Delivery {
            message: Message { id: MessageId::new(at, entropy), text: self.text(), mode: self.of(Mode::ALL) },
            conversation: self.conversation_id(),
            session: self.session_id(),
            receipt: self.of(Receipt::ALL),
            by: By(self.text()),
            accepted: self.time(),
            receipt_at: self.time(),
            turn: self.maybe(Self::small),
            why: self.maybe(Self::text),
            rule: self.maybe(Self::text),
            key: self.maybe(Self::text),
        }
    }

    pub(crate) fn applied(&mut self) -> Applied {
        Applied { number: self.maybe(Self::small), text: self.text() }
    }

    pub(crate) fn approval(&mut self) -> Approval {
        Approval {
            id: self.approval_id(),
            session: self.session_id(),
            tool: self.text(),
            input: self.text(),
            asks: self.text(),
            kind: self.of(&[AskKind::Leave, AskKind::Question]),
            why: self.text(),
            deadline: self.maybe(Self::time),
            asked: self.time(),
            answer: self.maybe(|dice| Answered {
                answer: dice.of(&[Answer::Allowed, Answer::Denied, Answer::Expired]),
                by: By(dice.text()),
                message: dice.text(),
                at: dice.time(),
                rules: dice.some(Self::applied),
            }),
        }
    }

    pub(crate) fn halt(&mut self) -> Halt {
        Halt { state: self.halt_state(), sessions: self.number() }
    }

    fn halt_state(&mut self) -> HaltState {
        HaltState { freeze: self.yes(), by: By(self.text()), why: self.text(), since: self.time() }
    }

    pub(crate) fn lost(&mut self) -> LostSession {
        let price = GoingOn {
            is_free: self.yes(),
            tokens: self.maybe(Self::number),
            cost: self.maybe(|dice| Dollars(dice.number())),
            is_on_plan: self.yes(),
        };
        LostSession { session: self.view(), restarted_at: self.time(), price }
    }

    pub(crate) fn disk_use(&mut self) -> DiskUse {
        let (at, entropy) = self.entropy();
        let campaign = CampaignId::new(at, entropy);
        DiskUse {
            disk: DiskRoom { free: self.number(), total: self.number(), least: self.number() },
            parts: self.some(|dice| PartUse {
                part: dice.text(),
                bytes: dice.number(),
                files: dice.number(),
            }),
            campaigns: self.some(|dice| CampaignUse {
                campaign,
                sessions: dice.number(),
                tapes: dice.number(),
                homes: dice.number(),
            }),
            sessions: self.some(|dice| SessionUse {
                id: dice.session_id(),
                name: "api-auth".parse().unwrap(),
                campaign,
                has_ended: dice.yes(),
                tape: dice.number(),
                home: dice.number(),
            }),
        }
    }

    pub(crate) fn node_status(&mut self) -> NodeStatus {
        let (at, entropy) = self.entropy();
        let [database_bytes, search_bytes, sessions, unsearched_events] =
            std::array::from_fn(|_| self.number());
        NodeStatus {
            pid: self.small(),
            version: self.text(),
            node: NodeId::new(at, entropy),
            epoch: self.number(),
            started: self.time(),
            state_dir: self.text(),
            live_sessions: self.number(),
            memory_held_by: self.text(),
            waiting_sessions: self.number(),
            disk: self.maybe(|dice| DiskRoom {
                free: dice.number(),
                total: dice.number(),
                least: dice.number(),
            }),
            machine_restart: self.maybe(|dice| MachineRestart { at: dice.time(), lost: dice.number() }),
            keeper_versions: self.some(|dice| (dice.text(), dice.number())).into_iter().collect(),
            detached_sessions: self.number(),
            halt: self.maybe(Self::halt_state),
            drain: self.maybe(|dice| DrainState {
                by: By(dice.text()),
                why: dice.text(),
                since: dice.time(),
            }),
            store: StoreSizes { database_bytes, search_bytes, sessions, unsearched_events },
            last_seq: self.number(),
            schema_version: self.small(),
        }
    }

    pub(crate) fn usage_row(&mut self) -> UsageRow {
        let (key, name) = (self.text(), self.text());
        UsageRow {
            key,
            name,
            usage: self.usage(),
            sessions: self.number(),
            calls: self.number(),
            cost: Dollars(self.number()),
            plan: Dollars(self.number()),
            unpriced: self.usage(),
            plan_unpriced: self.usage(),
        }
    }

    pub(crate) fn today(&mut self) -> Today {
        Today {
            paid: Dollars(self.number()),
            plan: Dollars(self.number()),
            is_unknown: self.yes(),
            budget: self.maybe(|dice| Dollars(dice.number())),
            tokens: self.number(),
        }
    }

    pub(crate) fn audit(&mut self) -> Audit {
        let broken = self.maybe(|dice| BrokenLine { line: dice.number(), why: dice.text() });
        Audit { path: self.text(), lines: self.number(), torn: self.number(), broken }
    }

    pub(crate) fn progress(&mut self) -> Progress {
        Progress { step: self.text(), done: self.number(), total: self.number() }
    }

    pub(crate) fn finding(&mut self) -> Finding {
        let severity = self.of(&[Severity::Note, Severity::Repairable, Severity::Damage]);
        Finding { severity, place: self.text(), message: self.text() }
    }
}
