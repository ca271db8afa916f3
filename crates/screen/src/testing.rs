//! Sessions for tests: one of each sort, at a fixed moment.

pub mod mission;

use ostler_client::{Campaign, Session};
use ostler_domain::{
    ApprovalId, Budget, CampaignId, ConversationId, Hint, SessionId, Time, Usage,
    campaign::Root,
    event::ContextMeasured,
    price::{Cost, Dollars},
    session::{
        Attention, Desired, Doing, Obituary, Outcome, Phase, RestartPolicy, RestartRefusal, Sandbox, Status,
    },
};

use crate::{Line, Look};

pub const NOW: Time = Time::from_micros(1_763_000_000_000_000);

const SECOND: i64 = 1_000_000;

pub fn ago(seconds: i64) -> Time {
    Time::from_micros(NOW.micros() - seconds * SECOND)
}

pub fn session(n: u32, name: &str) -> Session {
    let created_at = ago(2_460);
    let id = SessionId::new(created_at, 0x000f_1234_5678_9abc * u128::from(n + 1));
    Session {
        id,
        campaign: CampaignId::new(created_at, 1),
        conversation: ConversationId::new(created_at, u128::from(n)),
        name: name.parse().unwrap(),
        agent: None,
        provider: "script".to_owned(),
        model: None,
        status: Status::Running,
        phase: Phase::Live,
        attention: Some(Attention::Idle),
        attention_since: ago(540),
        evidence: "no turn is open".to_owned(),
        limited_until: None,
        context: None,
        outcome: None,
        obituary: None,
        restart: None,
        desired: Desired::Run,
        sandbox: Sandbox::On,
        working_dir: "/home/ann/code/shop".to_owned(),
        branch: None,
        worktree: None,
        ticket: None,
        ticket_id: None,
        mission: None,
        continues: None,
        chain: id,
        spawned_by: None,
        restart_count: 0,
        restart_policy: RestartPolicy::Never,
        provider_id: None,
        process: None,
        doing: None,
        turns: 1,
        usage: Usage {
            input: 41_000,
            cache_read: 1_900_000,
            cache_write: 96_000,
            output: 22_000,
            reasoning: 0,
        },
        cost: Cost { paid: Dollars(2_600_000), ..Cost::default() },
        budget: None,
        messages_waiting: 0,
        approvals_open: Vec::new(),
        denied: 0,
        redacted: 0,
        last_completion: None,
        created_at,
        started_at: Some(created_at),
        ended_at: None,
        last_activity_at: None,
        updated_at: ago(1),
        session_seq: 12,
        priority: Default::default(),
        imported: None,
        compactions: 0,
        auth_profile: None,
        continued_by: None,
        restart_refused: None,
    }
}

pub fn ended(n: u32, name: &str, outcome: Outcome, seconds_ago: i64, sentence: &str) -> Session {
    Session {
        status: if outcome.is_failure() { Status::Failed } else { Status::Stopped },
        phase: Phase::Ended,
        attention: None,
        outcome: Some(outcome),
        ended_at: Some(ago(seconds_ago)),
        obituary: Some(Obituary {
            sentence: sentence.to_owned(),
            exit_code: None,
            signal: None,
            rule: None,
            by: None,
            oom: outcome == Outcome::Oom,
            memory: None,
            last: None,
            leftovers: Vec::new(),
            cures: Vec::new(),
        }),
        ..session(n, name)
    }
}

/// One session of each sort.
pub fn fleet() -> Vec<Session> {
    let oom = "The kernel ended the agent: its processes used more memory than they may.";
    vec![
        Session {
            attention: Some(Attention::WaitingApproval),
            attention_since: ago(180),
            evidence: "run: cargo add governor".to_owned(),
            approvals_open: vec![ApprovalId::new(NOW, 0xabcdef)],
            budget: Some(Budget {
                tokens: Some(500_000),
                dollars: Some(Dollars(5_000_000)),
                ..Budget::default()
            }),
            context: Some(ContextMeasured { used: 122_000, window: Some(200_000) }),
            ..session(1, "api-auth")
        },
        Session {
            status: Status::Working,
            attention: Some(Attention::Working),
            doing: Some(Doing { text: "run: cargo test -p store".to_owned(), since: ago(72) }),
            model: Some("gpt-5.5".to_owned()),
            context: Some(ContextMeasured { used: 88_000, window: None }),
            ..session(2, "migrate")
        },
        session(3, "triage"),
        Session {
            attention: Some(Attention::Paused),
            attention_since: ago(120),
            evidence: "paused by a person".to_owned(),
            desired: Desired::Pause,
            ..session(4, "held")
        },
        Session {
            status: Status::Starting,
            phase: Phase::Starting,
            attention: Some(Attention::Idle),
            attention_since: ago(2),
            created_at: ago(2),
            ..session(5, "docs")
        },
        Session {
            attention: Some(Attention::Detached),
            attention_since: ago(4),
            evidence: "the keeper is not connected yet".to_owned(),
            ..session(6, "adopted")
        },
        ended(7, "flaky-hunt", Outcome::Oom, 3_300, oom),
        ended(
            8,
            "login-limit",
            Outcome::Done,
            7_300,
            "The turn ended and the agent was stopped in an orderly way.",
        ),
        ended(9, "old", Outcome::Killed, 11_000, "Killed, asked by ann."),
    ]
}

/// A screen as people see it: narrow and wide, without colour and with it.
pub fn in_all_looks(screen: impl Fn(&Look) -> Vec<Line>) -> String {
    let looks = [
        ("80 columns", Look::plain(Some(80))),
        ("120 columns", Look::plain(Some(120))),
        ("80 columns, colour", Look::coloured(Some(80))),
        ("120 columns, colour", Look::coloured(Some(120))),
    ];
    let shown = |(title, look): (&str, Look)| {
        let lines: Vec<String> = screen(&look).iter().map(|line| line.show(&look)).collect();
        format!("── {title}\n{}\n", lines.join("\n").replace('\u{1b}', "␛"))
    };
    looks.map(shown).join("\n")
}

/// Fields as [`crate::Ui::fields`] lays them out.
pub fn folded(lines: &[Line], look: &Look) -> Vec<Line> {
    lines.iter().flat_map(|line| line.folded(look.width, crate::FIELD)).collect()
}

pub fn campaign() -> Campaign {
    Campaign {
        id: CampaignId::new(ago(2_460), 1),
        name: "shop".parse().unwrap(),
        root: Root { path: "/home/ann/code/shop".to_owned(), device: 1, inode: 2 },
        added: ago(100_000),
        policy: ostler_domain::Policy::default(),
        tracked_hidden: vec![".env".to_owned()],
        unwatched: None,
    }
}

/// One that was to go on by itself, and cannot.
pub fn refused(session: Session) -> Session {
    let restart_refused = Some(RestartRefusal {
        since: ago(120),
        reason: "CAMPAIGN_ROOT".to_owned(),
        why: "/srv/shop does not exist".to_owned(),
        cures: vec![Hint {
            command: "ostler campaign relink shop DIR".to_owned(),
            effect: "says where it is now".to_owned(),
        }],
    });
    Session { restart_refused, ..session }
}
