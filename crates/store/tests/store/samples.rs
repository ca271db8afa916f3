//! An event of every kind, with every field filled. `n` makes them differ.

use std::{collections::BTreeMap, time::Duration};

use ostler_domain::{
    AgentId, ApprovalId, Budget, CampaignId, ConversationId, Deadline, Event, Hint, Kind, Message, MessageId,
    Mode, Now, Policy, SessionId, TicketId, Time, Usage,
    agent::{Agent, Profile},
    approval::Applied,
    ask::{Ask, AskSettled, Asked, OutputAdded, Spawn},
    budget::{Amount, Lent, Period, WhenUsedUp},
    call::{DoneReported, StepEnded, StepMark, StepStarted},
    campaign::{Campaign, Root},
    conversation::{CloseReason, Key, Notes, TurnRef},
    denied::{Denied, DeniedKind},
    event::*,
    gateway::{NetDecision, Network},
    handoff::{HandoffRequested, Known, Pack, Said, TestRun, To, Wish},
    history::{HistoryRead, Origin, Prints, Source},
    image::Image,
    message::Summary,
    price::Dollars,
    session::{
        AgentRef, Approve, Begin, Billing, Config, Created, Ended, Hold, Obituary, Outcome, Restart,
        RestartPolicy, Sandbox, StopRequested, StopRule, Watchdog, WatchdogLimits, WatchdogRung,
    },
    snapshot::{Cause, Changed},
    ticket::{About, Checkpoint, Links, Output, OutputKind, Status},
    time::BootId,
    worktree::Worktree,
};

/// 2025-11-13, and a second later for each `n`.
pub(crate) fn at(n: u64) -> Time {
    Time::from_micros(1_763_000_000_000_000).plus(Duration::from_secs(n))
}

/// Spreads over all 80 bits of an id's entropy, so that ends of ids differ as they do in life.
fn entropy(n: u64) -> u128 {
    (u128::from(n) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
}

pub(crate) fn campaign_id(n: u64) -> CampaignId {
    CampaignId::new(at(n), entropy(n))
}

pub(crate) fn conversation_id(n: u64) -> ConversationId {
    ConversationId::new(at(n), entropy(n))
}

pub(crate) fn session_id(n: u64) -> SessionId {
    SessionId::new(at(n), entropy(n))
}

pub(crate) fn message_id(n: u64) -> MessageId {
    MessageId::new(at(n), entropy(n))
}

pub(crate) fn approval_id(n: u64) -> ApprovalId {
    ApprovalId::new(at(n), entropy(n))
}

pub(crate) fn agent_id(n: u64) -> AgentId {
    AgentId::new(at(n), entropy(n))
}

pub(crate) fn ticket_id(n: u64) -> TicketId {
    TicketId::new(at(n), entropy(n))
}

fn about(n: u64) -> About {
    About::new(&format!("Fix the login {n}\n\nIt fails at noon."), Some("bug")).unwrap()
}

fn links(n: u64) -> Links {
    Links {
        external: Some(format!("gh:shop#{n}").parse().unwrap()),
        conversation: Some(conversation_id(n)),
        depends_on: vec![ticket_id(n + 1), ticket_id(n + 2)],
    }
}

fn profile() -> Profile {
    let settings =
        ["role=fixer", "provider=codex", "model=m", "auth_profile=work", "system_prompt=x", "budget=2usd"];
    Profile::default().changed_by(&settings.map(str::to_owned)).unwrap()
}

fn wish(n: u64) -> Wish {
    Wish {
        to: To {
            provider: Some("codex".to_owned()),
            model: Some(format!("model-{n}")),
            agent: Some("api".parse().unwrap()),
        },
        note: "mind the cache".to_owned(),
        done: vec!["a".to_owned()],
        decided: vec!["b".to_owned()],
        open: vec!["c".to_owned()],
    }
}

fn notes() -> Notes {
    let settings = ["model=model-9", "label=Login", "channel=slack", "state.phase=3", "metadata.owner=ann"];
    Notes::default().changed_by(&settings.map(str::to_owned)).unwrap()
}

pub(crate) fn deadline(n: u64) -> Deadline {
    let now = Now { wall: at(n), since_boot: Duration::from_secs(n), boot: boot() };
    Deadline::after(&now, Duration::from_secs(60))
}

fn boot() -> BootId {
    BootId("2f5c6a54-7d9c-4bd8-9d7a-0a6b7c8d9e0f".to_owned())
}

fn changed() -> Changed {
    Changed { files: 3, added: 10, removed: 2 }
}

fn by() -> By {
    By("ann".to_owned())
}

pub(crate) fn campaign(n: u64) -> Campaign {
    Campaign {
        id: campaign_id(n),
        name: format!("shop-{n}").parse().unwrap(),
        root: Root { path: format!("/home/ann/shop-{n}"), device: 64_769, inode: u64::MAX - n },
        added: at(n),
        policy: Policy::default(),
        tracked_hidden: Vec::new(),
        unwatched: None,
    }
}

pub(crate) fn created(n: u64) -> Created {
    Created {
        id: session_id(n),
        campaign: campaign_id(n % 3),
        conversation: conversation_id(n),
        name: format!("fix-login-{}", n % 7).parse().unwrap(),
        agent: n.is_multiple_of(3).then(|| AgentRef {
            id: agent_id(n % 7),
            name: format!("fix-login-{}", n % 7).parse().unwrap(),
            role: "fixer".parse().unwrap(),
        }),
        config: Config {
            provider: ["claude-code", "codex", "script"][(n % 3) as usize].to_owned(),
            model: Some(format!("model-{}", n % 2)),
            working_dir: format!("/home/ann/shop-{}", n % 3),
            branch: (n % 3 == 1).then(|| "agent/login".to_owned()),
            worktree: (n % 3 == 1).then(worktree),
            budget: Some(Budget { tokens: Some(1_000_000), dollars: None, when_used_up: WhenUsedUp::Stop }),
            when_used_up: WhenUsedUp::Stop,
            billing: Billing::Plan,
            timeout_us: Some(3_600_000_000),
            deadline: None,
            restart: RestartPolicy::OnFailure,
            approve: Approve::All,
            ends_with_turn: n.is_multiple_of(2),
            environment: BTreeMap::from([("LANG".to_owned(), "C.UTF-8".to_owned())]),
            provider_config: BTreeMap::from([("effort".to_owned(), "high".to_owned())]),
            system_prompt: Some("Be brief.".to_owned()),
            auth_profile: Some("work".parse().unwrap()),
            ticket: match n % 8 {
                0 | 4 => Some(format!("gh:{}", n % 8)),
                1 => Some(format!("gh:shop#{}", n % 4)),
                3 => Some(ostler_domain::query::TRIAL_TICKET.to_owned()),
                _ => None,
            },
            ticket_id: (n % 8 == 1).then(|| ticket_id(n % 4)),
            mission: None,
            watchdogs: WatchdogLimits::default(),
            resumes_after_limit: true,
            approval_us: ostler_domain::session::approval_limit(),
            priority: Default::default(),
            idle_stop_us: None,
            no_tools: false,
            leases: Vec::new(),
        },
        sandbox: Sandbox::Off,
        policy: Default::default(),
        continues: (n > 0 && n.is_multiple_of(5)).then(|| session_id(n - 1)),
        chain: session_id(n - n % 5),
        spawned_by: (n % 6 == 5).then(|| session_id(0)),
        bounded_by: None,
        restart_count: 1,
        short_lives: 1,
        begin: Begin::Resume {
            provider_id: format!("thread-{n}"),
            interrupted: Some("You were interrupted.".to_owned()),
            seed: String::new(),
        },
        imported: (n % 50 == 49).then(|| Origin {
            source: Source::Codex,
            dialogue: format!("thread-{n}"),
            file: format!("/home/ann/.codex/sessions/rollout-{n}.jsonl"),
            from: 4_096,
        }),
    }
}

pub(crate) fn ended(n: u64, outcome: Outcome) -> Ended {
    Ended {
        outcome,
        obituary: Obituary {
            sentence:
                "The agent was ended by signal 9 (SIGKILL) in the middle of a turn; Ostler did not send it."
                    .to_owned(),
            exit_code: Some(1),
            signal: Some(9),
            rule: Some(StopRule::Timeout),
            by: Some("ann".to_owned()),
            oom: true,
            memory: None,
            last: Some("Bash: cargo test".to_owned()),
            leftovers: vec![Leftover { pid: 4242, name: "node".to_owned() }],
            cures: Vec::new(),
        },
        restart: Some(Restart::At(deadline(n))),
        machine_restarted: (outcome == Outcome::Lost).then(|| at(n)),
    }
}

pub(crate) fn usage(n: u64) -> Usage {
    Usage { input: 100 + n, cache_read: 2_000, cache_write: 300, output: 40, reasoning: 10 }
}

/// An event of a kind.
pub(crate) fn event(kind: Kind, n: u64) -> Event {
    let text = || Text {
        text: format!("I look at the login of shop {n} and see näive code."),
        subagent: (n % 4 == 3).then(|| "tool-1".to_owned()),
    };
    let raw = || Raw { text: "{\"odd\":".to_owned(), bytes: 7, at: 4_096 + n };
    let mark = || MessageMark { id: message_id(n), turn: Some(3) };
    let reached = || BudgetReached {
        used: 1_600_000 + n,
        tokens: Some(2_000_000),
        spent: Some(Dollars(4_000_000)),
        dollars: Some(Dollars(5_000_000)),
        unpriced: Some("model-9".to_owned()),
        campaign: Some(campaign_id(1)),
        agent: None,
        period: Some(Period::Day),
    };
    match kind {
        Kind::DaemonStarted => Event::DaemonStarted(DaemonStarted {
            version: "0.1.0".to_owned(),
            epoch: 7,
            pid: 4_200,
            boot: boot(),
        }),
        Kind::DaemonStopped => Event::DaemonStopped(DaemonStopped { by: by(), sessions_left_running: n }),
        Kind::CampaignAdded => Event::CampaignAdded(Box::new(campaign(n))),
        Kind::CampaignRemoved => Event::CampaignRemoved(CampaignRemoved { id: campaign_id(n), by: by() }),
        Kind::CampaignPolicyChanged => Event::CampaignPolicyChanged(Box::new(CampaignPolicyChanged {
            campaign: campaign_id(n),
            settings: vec!["read+=@rust".to_owned()],
            policy: Policy { read: vec!["@rust".to_owned()], ..Policy::default() },
            by: by(),
        })),
        Kind::CampaignRelinked => Event::CampaignRelinked(CampaignRelinked {
            campaign: campaign_id(n),
            from: Root { path: "/home/ann/old".to_owned(), device: 1, inode: 2 },
            to: Root { path: format!("/home/ann/new-{n}"), device: 1, inode: 3 + n },
            by: by(),
        }),
        Kind::Drained => Event::Drained(Drained { by: by(), why: format!("kernel update {n}") }),
        Kind::DrainEnded => Event::DrainEnded(DrainEnded { by: by() }),
        Kind::ConversationOpened => Event::ConversationOpened(Box::new(ConversationOpened {
            id: conversation_id(n),
            campaign: campaign_id(n % 3),
            key: Key::main(),
            name: format!("fix-login-{n}").parse().unwrap(),
            agent: Some(agent_id(n)),
            forked_from: Some(conversation_id(n + 1)),
            forked_at: Some(TurnRef { session: session_id(n), turn: 3 }),
            spawned_by: Some(session_id(n)),
            replaces: Some(conversation_id(n + 2)),
            notes: notes(),
        })),
        Kind::AgentAdded => Event::AgentAdded(Box::new(Agent {
            id: agent_id(n),
            campaign: campaign_id(n % 3),
            name: format!("api-{n}").parse().unwrap(),
            added: at(n),
            profile: profile(),
        })),
        Kind::AgentChanged => Event::AgentChanged(Box::new(AgentChanged {
            id: agent_id(n),
            settings: vec!["role=reviewer".to_owned()],
            profile: profile(),
            by: by(),
        })),
        Kind::AgentRemoved => Event::AgentRemoved(AgentRemoved { id: agent_id(n), by: by() }),
        Kind::ConversationChanged => Event::ConversationChanged(Box::new(ConversationChanged {
            id: conversation_id(n),
            settings: vec!["model=model-9".to_owned()],
            notes: notes(),
            by: by(),
        })),
        Kind::ConversationClosed => Event::ConversationClosed(ConversationClosed {
            id: conversation_id(n),
            why: CloseReason::Archived,
            by: by(),
        }),
        Kind::CommitsSeen => Event::CommitsSeen(CommitsSeen {
            session: session_id(n),
            turn: 1,
            branch: Some("agent/login".to_owned()),
            head: Some("0a1b2c3d".to_owned()),
            commits: vec![SeenCommit { hash: "0a1b2c3d".to_owned(), subject: "fix login".to_owned() }],
        }),
        Kind::SnapshotTaken => Event::SnapshotTaken(SnapshotTaken {
            session: session_id(n),
            campaign: campaign_id(0),
            turn: 1,
            cause: Cause::Turn,
            commit: Some("deadbeef".to_owned()),
            changed: changed(),
            why: Some("too large".to_owned()),
        }),
        Kind::WorktreeMade => Event::WorktreeMade(WorktreeMade {
            session: session_id(n),
            campaign: campaign_id(0),
            worktree: worktree(),
            commit: "0a1b2c3d".to_owned(),
            again: true,
        }),
        Kind::WorktreeRemoved => Event::WorktreeRemoved(WorktreeRemoved {
            session: session_id(n),
            campaign: campaign_id(0),
            path: worktree().path,
            branch: worktree().branch,
            commit: Some("0a1b2c3d".to_owned()),
            snapshot: Some("deadbeef".to_owned()),
            branch_deleted: true,
            by: by(),
        }),
        Kind::Rewound => Event::Rewound(Rewound {
            session: session_id(n),
            campaign: campaign_id(0),
            turn: 1,
            from: "deadbeef".to_owned(),
            to: "0a1b2c3d".to_owned(),
            changed: changed(),
            by: by(),
        }),
        Kind::ImageRecorded => Event::ImageRecorded(ImageRecorded {
            image: Image::from_base64("image/png", "aGVsbG8=").unwrap(),
            tool_id: Some("t1".to_owned()),
            message: Some(message_id(n)),
            subagent: Some("t0".to_owned()),
        }),
        Kind::DeliveryMirrored => Event::DeliveryMirrored(Box::new(DeliveryMirrored {
            conversation: conversation_id(n),
            session: session_id(n),
            text: "the build is green".to_owned(),
            media_urls: vec!["https://example.org/shot.png".to_owned()],
            to: Some("user:U1".to_owned()),
            by: by(),
        })),
        Kind::ConversationReopened => {
            Event::ConversationReopened(ConversationReopened { id: conversation_id(n), by: by() })
        }
        Kind::Halted => Event::Halted(Halted { freeze: true, by: by(), why: "the build is red".to_owned() }),
        Kind::LostLeft => Event::LostLeft(LostLeft { sessions: vec![session_id(n)], by: by() }),
        Kind::RestartRefused => Event::RestartRefused(RestartRefused {
            session: session_id(n),
            reason: "CAMPAIGN_ROOT".to_owned(),
            why: "/srv/shop does not exist".to_owned(),
            cures: vec![Hint {
                command: "ostler campaign relink shop DIR".to_owned(),
                effect: "says where it is now".to_owned(),
            }],
        }),
        Kind::HaltReleased => Event::HaltReleased(HaltReleased { by: by() }),
        Kind::SessionCreated => Event::SessionCreated(Box::new(created(n))),
        Kind::SessionStarting => Event::SessionStarting(Starting { attempt: 2 }),
        Kind::SessionSpawned => Event::SessionSpawned(Spawned {
            agent: Process { pid: 4_242, start_time: 123_456 },
            boot: boot(),
            holds_calls: false,
        }),
        Kind::LoginLent => Event::LoginLent(LoginLent { until: at(n) }),
        Kind::SessionStarted => Event::SessionStarted(Started {
            provider_id: Some(format!("thread-{n}")),
            model: Some("model-9".to_owned()),
            deadline: Some(deadline(n)),
        }),
        Kind::SessionStopRequested => {
            Event::SessionStopRequested(StopRequested { rule: StopRule::Stop, by: by() })
        }
        Kind::SessionStopped => Event::SessionStopped(ended(n, Outcome::Timeout)),
        Kind::SessionFailed => Event::SessionFailed(ended(n, Outcome::Crashed)),
        Kind::SessionPaused => Event::SessionPaused(Paused {
            by: by(),
            timeout_left_us: Some(5_000_000),
            approvals_left_us: [(approval_id(n), 7_000_000)].into(),
            asks: Some(Asks { about: AsksAbout::Progress, words: format!("it does not get on {n}") }),
        }),
        Kind::SessionResumed => Event::SessionResumed(Resumed {
            by: by(),
            deadline: Some(deadline(n)),
            approval_deadlines: [(approval_id(n), deadline(n))].into(),
        }),
        Kind::SessionHeld => Event::SessionHeld(Held {
            hold: Hold::Budget,
            reason: "1 000 000 tokens are used up".to_owned(),
            settles: false,
        }),
        Kind::SessionReleased => Event::SessionReleased(Released { hold: Hold::Budget }),
        Kind::SessionStalled => Event::SessionStalled(Stalled {
            watchdog: Watchdog::Silent,
            evidence: "no output for 10 min".to_owned(),
        }),
        Kind::SessionRecovered => Event::SessionRecovered(Recovered {}),
        Kind::WatchdogFired => {
            Event::WatchdogFired(WatchdogFired { watchdog: Watchdog::Silent, rung: WatchdogRung::Interrupt })
        }
        Kind::IntakeChanged => Event::IntakeChanged(IntakeChanged { intake: "throttled".to_owned() }),
        Kind::LeftoversEnded => Event::LeftoversEnded(LeftoversEnded {
            processes: vec![Leftover { pid: 4_243, name: "node".to_owned() }],
        }),
        Kind::TurnStarted => Event::TurnStarted(TurnStarted { turn: 3 }),
        Kind::TurnEnded => Event::TurnEnded(TurnEnded {
            turn: 3,
            stop_reason: StopReason::Error,
            failure: Some("429: too many requests".to_owned()),
            goes_on: Some(Time::from_micros(1_760_000_000_000_000)),
            ends_session: false,
        }),
        Kind::InterruptRequested => Event::InterruptRequested(InterruptRequested { by: by() }),
        Kind::ProviderBound => {
            Event::ProviderBound(ProviderBound { provider_id: format!("thread-{n}"), model: None })
        }
        Kind::ModelChanged => Event::ModelChanged(ModelChanged {
            model: "model-8".to_owned(),
            by: by(),
            at_next_session: false,
        }),
        Kind::ContextReset => Event::ContextReset(ContextReset { why: "its file is gone".to_owned() }),
        Kind::BackgroundChanged => {
            Event::BackgroundChanged(BackgroundChanged { tasks: vec!["npm test".to_owned()] })
        }
        Kind::ContextCompacted => Event::ContextCompacted(ContextCompacted {
            automatic: true,
            before: Some(180_000),
            after: Some(20_000 + n),
        }),
        Kind::ContextMeasured => {
            Event::ContextMeasured(ContextMeasured { used: 122_000 + n, window: Some(200_000) })
        }
        Kind::AgentRetrying => Event::AgentRetrying(AgentRetrying {
            why: "529 overloaded".to_owned(),
            attempt: 2,
            most: 10,
            after_ms: Some(1_000 + n),
        }),
        Kind::RateLimited => {
            Event::RateLimited(RateLimited { what: "five_hour".to_owned(), until: Some(at(n + 60)) })
        }
        Kind::ProviderAuthFailed => Event::ProviderAuthFailed(text()),
        Kind::AgentThinking => Event::AgentThinking(text()),
        Kind::AgentToolCall => Event::AgentToolCall(ToolCall {
            tool: "Bash".to_owned(),
            tool_id: format!("tool-{n}"),
            summary: "cargo test".to_owned(),
            input: "{\"command\":\"cargo test --workspace\"}".to_owned(),
            subagent: None,
        }),
        Kind::AgentToolResult => Event::AgentToolResult(ToolResult {
            tool_id: format!("tool-{n}"),
            success: false,
            exit: Some(101),
            output: "test login::works ... FAILED".to_owned(),
            subagent: Some("tool-1".to_owned()),
        }),
        Kind::AgentCompletion => Event::AgentCompletion(text()),
        Kind::AgentStatus => Event::AgentStatus(text()),
        Kind::AgentError => Event::AgentError(text()),
        Kind::AgentStderr => Event::AgentStderr(raw()),
        Kind::Opaque => Event::Opaque(raw()),
        Kind::Oversize => Event::Oversize(raw()),
        Kind::Partial => Event::Partial(raw()),
        Kind::UsageRecorded => Event::UsageRecorded(UsageRecorded {
            usage: usage(n),
            model: (n % 2 == 1).then(|| "model-9".to_owned()),
            source: UsageSource::Wire,
            call: Some(format!("msg_{n}")),
            said: Some(usage(n + 1)),
            cost: (n % 3 == 1).then_some(Dollars(n * 1_000 + 7)),
            prices: Some("2026-11-16".to_owned()),
            plan: n % 4 == 1,
            cut: false,
        }),
        Kind::BudgetWarned => Event::BudgetWarned(reached()),
        Kind::BudgetExceeded => Event::BudgetExceeded(reached()),
        Kind::BudgetChanged => Event::BudgetChanged(BudgetChanged {
            budget: Some(Budget {
                tokens: Some(2_000_000),
                dollars: Some(Dollars(5_000_000)),
                when_used_up: WhenUsedUp::Hold,
            }),
            by: by(),
        }),
        Kind::HelpersCharged => Event::HelpersCharged(Lent {
            tokens: n * 10,
            dollars: Dollars(n * 1_000),
            held_tokens: n * 3,
            held_dollars: Dollars(n * 300),
            unpriced: (n % 2 == 1).then(|| "model-9".to_owned()),
        }),
        Kind::MessageAccepted => Event::MessageAccepted(MessageAccepted {
            message: Message {
                id: message_id(n),
                text: format!("Please fix the login of shop {n}."),
                mode: Mode::Followup,
            },
            conversation: conversation_id(n % 7),
            by: by(),
            moved_from: (n % 5 == 4).then(|| session_id(0)),
            rule: (n % 3 == 2).then(|| "send.rule 1: allow channel=slack".to_owned()),
            key: (n % 4 == 3).then(|| format!("ticket-{n}")),
            quiet_until: (n % 7 == 6).then(|| deadline(n)),
            untold: match n % 7 {
                6 => Summary { count: 1, lines: vec!["Please fix the login".to_owned()] },
                _ => Summary::default(),
            },
        }),
        Kind::MessageSent => Event::MessageSent(MessageSent {
            id: message_id(n),
            with: (n % 6 == 5).then(|| message_id(n - 1)),
        }),
        Kind::MessageDelivered => Event::MessageDelivered(mark()),
        Kind::MessageSeen => Event::MessageSeen(mark()),
        Kind::MessageAnswered => Event::MessageAnswered(mark()),
        Kind::MessageUnknown => Event::MessageUnknown(MessageUnknown {
            id: message_id(n),
            why: "the agent ended before it".to_owned(),
        }),
        Kind::MessageReturned => Event::MessageReturned(MessageUnknown {
            id: message_id(n),
            why: "its model has not read it".to_owned(),
        }),
        Kind::MessageDropped => Event::MessageDropped(MessageDropped {
            id: message_id(n),
            why: "more than 20 messages waited (queue_cap=20, queue_drop=summarize)".to_owned(),
            made_room_for: Some(message_id(n + 1)),
            is_summarised: true,
        }),
        Kind::MessageUnheard => Event::MessageUnheard(Box::new(MessageUnheard {
            message: Message {
                id: message_id(n),
                text: format!("Is anybody there, shop {n}?"),
                mode: Mode::Followup,
            },
            conversation: conversation_id(n),
            session: session_id(n),
            by: by(),
            why: "it does not mention @api (group_activation=mention)".to_owned(),
            rule: None,
            key: Some(format!("chat-{n}")),
        })),
        Kind::MessageCancelled => Event::MessageCancelled(MessageCancelled {
            id: message_id(n),
            why: "taken back by ann".to_owned(),
            by: by(),
        }),
        Kind::MessageEdited => Event::MessageEdited(MessageEdited {
            id: message_id(n),
            text: format!("Please fix the logout of shop {n}."),
            by: by(),
        }),
        Kind::MessageMoved => Event::MessageMoved(MessageMoved {
            id: message_id(n),
            to: match n % 2 {
                0 => MovedTo::Before { message: message_id(n + 1) },
                _ => {
                    MovedTo::Conversation { conversation: conversation_id(n % 7), message: message_id(n + 1) }
                }
            },
            by: by(),
        }),
        Kind::ApprovalRequested => Event::ApprovalRequested(Box::new(ApprovalRequested {
            id: approval_id(n),
            ask: format!("ask-{n}"),
            tool: "Bash".to_owned(),
            input: "rm -rf target".to_owned(),
            kind: AskKind::Leave,
            action: Action::Run { command: "rm -rf target".to_owned() },
            subagent: None,
            why: "no rule allows rm -rf target".to_owned(),
            deadline: Some(deadline(n)),
        })),
        Kind::ApprovalAnswered => Event::ApprovalAnswered(ApprovalAnswered {
            id: approval_id(n),
            answer: Answer::Denied,
            by: by(),
            message: "not now".to_owned(),
            rules: vec![Applied { number: Some(2), text: "deny run rm *".to_owned() }],
        }),
        Kind::TapeLimitRaised => Event::TapeLimitRaised(TapeLimitRaised { bytes: 8 << 30, by: by() }),
        Kind::Tamper => Event::Tamper(Tamper { names: vec![".git/hooks/pre-commit".to_owned()] }),
        Kind::HiddenTracked => Event::HiddenTracked(Tamper { names: vec![".env".to_owned()] }),
        Kind::Network => Event::Network(Network {
            host: "files.example".to_owned(),
            port: 443,
            decision: NetDecision::Denied,
            rule: "net=provider".to_owned(),
            grant: Some("ostler campaign set shop net.allow+=files.example".to_owned()),
            bytes_in: n,
            bytes_out: 0,
            failure: "connection refused".to_owned(),
        }),
        Kind::SessionArchived => Event::SessionArchived(SessionArchived {
            session: session_id(n),
            rule: "retention.archive_after=30d".to_owned(),
            bytes: 1_000_000 + n,
            archived_bytes: 90_000 + n,
            by: by(),
        }),
        Kind::SessionRestored => Event::SessionRestored(SessionRestored {
            session: session_id(n),
            why: "an audit".to_owned(),
            by_rule: false,
            by: by(),
        }),
        Kind::DeletionMarked => Event::DeletionMarked(DeletionMarked {
            session: session_id(n),
            due: at(n + 14 * 86_400),
            rule: "retention.delete_after=180d".to_owned(),
            by: by(),
        }),
        Kind::SessionDeleted => Event::SessionDeleted(SessionDeleted {
            session: session_id(n),
            rule: "retention.delete_after=180d".to_owned(),
            by: by(),
        }),
        Kind::RetentionHeld => Event::RetentionHeld(RetentionHeld {
            session: session_id(n),
            is_held: n.is_multiple_of(2),
            why: "an audit".to_owned(),
            by: by(),
        }),
        Kind::Unreadable => unreachable!("it is never stored"),
        Kind::TicketAdded => Event::TicketAdded(Box::new(TicketAdded {
            id: ticket_id(n),
            campaign: campaign_id(n % 3),
            about: about(n),
            links: links(n),
            status: Status::Initialized,
            by: by(),
        })),
        Kind::TicketChanged => {
            Event::TicketChanged(TicketChanged { id: ticket_id(n), about: about(n + 1), by: by() })
        }
        Kind::TicketMoved => Event::TicketMoved(TicketMoved {
            id: ticket_id(n),
            from: Status::Initialized,
            to: Status::Running,
            by: by(),
            why: "a session works on it".to_owned(),
            session: Some(session_id(n)),
        }),
        Kind::TicketLinked => {
            Event::TicketLinked(TicketLinked { id: ticket_id(n), links: links(n), by: by() })
        }
        Kind::TicketOutputAdded => Event::TicketOutputAdded(TicketOutputAdded {
            id: ticket_id(n),
            output: Output::new("pull request", OutputKind::Url, "https://example.org/7").unwrap(),
            session: Some(session_id(n)),
            by: by(),
        }),
        Kind::TicketCheckpointMade => Event::TicketCheckpointMade(TicketCheckpointMade {
            id: ticket_id(n),
            checkpoint: Checkpoint {
                name: "green".to_owned(),
                at: Some(TurnRef { session: session_id(n), turn: 3 }),
                snapshot: Some("deadbeef".to_owned()),
            },
            by: by(),
        }),
        Kind::TicketStep => Event::TicketStep(TicketStep {
            id: ticket_id(n),
            name: "review".to_owned(),
            mark: [StepMark::Start, StepMark::End, StepMark::Fail][(n % 3) as usize],
            note: "by hand".to_owned(),
            by: by(),
        }),
        Kind::HistoryRead => Event::HistoryRead(Box::new(HistoryRead {
            source: Source::Claude,
            dialogue: format!("5e55-{n}"),
            file: format!("/home/ann/.claude/projects/-srv-shop/5e55-{n}.jsonl"),
            from: 100,
            to: 4_000 + n,
            lines: 12,
            unreadable: 1,
            prints: Prints { head: "0a".repeat(16), tail: "0b".repeat(16) },
            memory: "{}".to_owned(),
        })),
        Kind::StepStarted => {
            Event::StepStarted(StepStarted { name: "build".to_owned(), note: format!("{n}") })
        }
        Kind::StepEnded => Event::StepEnded(StepEnded {
            name: "build".to_owned(),
            success: n.is_multiple_of(2),
            note: "two warnings".to_owned(),
        }),
        Kind::HandoffRequested => {
            Event::HandoffRequested(Box::new(HandoffRequested { wish: wish(n), by: by() }))
        }
        Kind::OutputAdded => Event::OutputAdded(OutputAdded {
            name: format!("report-{n}"),
            kind: OutputKind::Path,
            value: "docs/report.md".to_owned(),
        }),
        Kind::Asked => Event::Asked(Box::new(Asked {
            at: 4_096 + n,
            ask: Ask::Spawn(Spawn {
                worker: "tester".parse().unwrap(),
                task: format!("test shop {n}"),
                provider: Some("codex".to_owned()),
                model: Some("model-9".to_owned()),
                budget: Some(Amount { tokens: Some(5_000), dollars: None }),
            }),
        })),
        Kind::AskSettled => Event::AskSettled(AskSettled {
            at: 4_096 + n,
            session: Some(session_id(n)),
            message: Some(message_id(n)),
            refused: Some("no".to_owned()),
        }),
        Kind::HandoffPacked => Event::HandoffPacked(Box::new(Pack {
            from: session_id(n),
            why: "It was handed on.".to_owned(),
            wish: wish(n),
            known: Known {
                asked: format!("fix the login of shop {n}"),
                finished: vec!["the limit".to_owned()],
                unfinished: vec!["the docs".to_owned()],
                files: vec!["src/login.rs".to_owned()],
                commits: vec!["0f1e2d3 Limit logins".to_owned()],
                tests: vec![TestRun { command: "cargo test".to_owned(), success: Some(false) }],
                last_turns: vec![Said { told: "go on".to_owned(), answered: "half done".to_owned() }],
            },
            instead: Some("codex has no key".to_owned()),
        })),
        Kind::DoneReported => Event::DoneReported(DoneReported { note: format!("all {n} tests pass") }),
        Kind::Denied => Event::Denied(Denied {
            kind: DeniedKind::Command,
            target: "make install".to_owned(),
            rule: "command list".to_owned(),
            grant: Some("ostler campaign set shop commands+=make".to_owned()),
        }),
        Kind::MissionCreated
        | Kind::MissionStarted
        | Kind::MissionPaused
        | Kind::MissionResumed
        | Kind::MissionHeld
        | Kind::MissionReleased
        | Kind::MissionBudgetWarned
        | Kind::MissionBudgetChanged
        | Kind::MissionStopRequested
        | Kind::MissionEnded
        | Kind::AssignmentsReady
        | Kind::AssignmentStarted
        | Kind::AssignmentMoved
        | Kind::AssignmentCheckStarted
        | Kind::AssignmentRetried
        | Kind::AssignmentEnded
        | Kind::AssignmentsReopened
        | Kind::AssignmentsAdded
        | Kind::AssignmentsRemoved
        | Kind::AssignmentNudged
        | Kind::AssignmentBegan
        | Kind::AssignmentUnstuck
        | Kind::CollisionForecast
        | Kind::MergeStarted
        | Kind::MergeChecked
        | Kind::MergeMoving
        | Kind::MergeEnded
        | Kind::MissionArchived => crate::mission_samples::event(kind, n),
        Kind::TapeDamaged => Event::TapeDamaged(TapeDamaged { from: 10, to: 20 + n }),
    }
}

/// Says whether events of a kind belong to a session.
pub(crate) fn is_of_session(kind: Kind) -> bool {
    let of_sessions = Kind::SessionCreated.code()..Kind::TicketAdded.code();
    of_sessions.contains(&kind.code()) || kind == Kind::ImageRecorded
}

fn worktree() -> Worktree {
    Worktree {
        path: "/state/worktrees/shop/login".to_owned(),
        branch: "agent/login".to_owned(),
        base: "0a1b2c3d".to_owned(),
        from: Some("trunk".to_owned()),
        told: Some("It was gone.".to_owned()),
    }
}
