//! Events of missions, with every field filled.

use std::{collections::BTreeMap, time::Duration};

use ostler_domain::{
    AssignmentId, Deadline, Event, Kind, MissionId, Now, Usage,
    admission::Priority,
    budget::{Amount, WhenUsedUp},
    event::*,
    mission::{
        Assignment, AssignmentStatus, Hold, Interval, Key, Member, Plan, Product, Spent, Status, StopRule,
        Strategy, StuckKind,
        plan::{CompleteWhen, Given, Limits, Merge, OnDepFailure, Settings, Worktree},
    },
    price::Dollars,
    session::{Approve, Outcome},
    ticket::{Output, OutputKind},
    time::BootId,
};

use crate::samples::{at, campaign_id, session_id};

fn by() -> By {
    By("ann".to_owned())
}

pub(crate) fn mission_id(n: u64) -> MissionId {
    MissionId::new(at(n), u128::from(n) + 1)
}

pub(crate) fn assignment_id(n: u64) -> AssignmentId {
    AssignmentId::new(at(n), u128::from(n) + 1)
}

fn deadline(n: u64) -> Deadline {
    let boot = BootId("6f1b".to_owned());
    let now = Now { wall: at(n), since_boot: Duration::from_secs(1_000 + n), boot };
    Deadline::after(&now, Duration::from_secs(60))
}

fn settings() -> Settings {
    Settings {
        provider: Some("script".to_owned()),
        model: Some("model-1".to_owned()),
        account: Some("work".parse().unwrap()),
        approve: Some(Approve::Policy),
        worktree: Some(Worktree::Branch("agent/build".to_owned())),
        budget: Some(Amount { tokens: Some(500_000), dollars: Some(Dollars(2_000_000)) }),
        timeout_us: Some(1_800_000_000),
        retries: Some(2),
        on_dep_failure: Some(OnDepFailure::Block),
        complete_when: Some(CompleteWhen::Check("cargo test".to_owned())),
        priority: Some(Priority::High),
        side_effects: Some(false),
    }
}

fn member(n: u64) -> Member {
    Member {
        name: format!("build-{n}").parse().unwrap(),
        role: "builder".parse().unwrap(),
        instances: 1,
        agent: Some("api-auth".parse().unwrap()),
        kind: "bug".to_owned(),
        task: "Build it".to_owned(),
        needs: vec!["plan".parse().unwrap()],
        stage: Some(2),
        inputs: vec![Given::File("docs/spec.md".to_owned()), Given::Text("be brief".to_owned())],
        paths: vec!["src/api".to_owned()],
        settings: settings(),
    }
}

fn assignment(n: u64) -> Assignment {
    Assignment {
        id: assignment_id(n),
        name: format!("build-{n}").parse().unwrap(),
        role: "builder".parse().unwrap(),
        instance: 1,
        member: 0,
        needs: vec![0],
        stage: Some(2),
        added_by: Some(assignment_id(n + 1)),
        depth: 1,
    }
}

fn plan(n: u64) -> Plan {
    Plan {
        name: Some("checkout-v2".parse().unwrap()),
        objective: "Move the checkout into its own crate".to_owned(),
        strategy: Strategy::Pipeline,
        priority: Priority::High,
        budget: Some(Amount { tokens: Some(1_000_000), dollars: Some(Dollars(20_000_000)) }),
        when_used_up: WhenUsedUp::Stop,
        time_us: Some(7_200_000_000),
        defaults: settings(),
        limits: Limits {
            concurrency: Some(4),
            roles: BTreeMap::from([("builder".to_owned(), 2)]),
            providers: BTreeMap::from([("script".to_owned(), 3)]),
            accounts: BTreeMap::from([("work".to_owned(), 1)]),
            added: 5,
            depth: 1,
        },
        merge: Some(Merge { into: "main".to_owned(), from: Vec::new(), gate: Some("cargo test".to_owned()) }),
        metadata: BTreeMap::from([("issue".to_owned(), "7".to_owned())]),
        agents: vec![member(n)],
    }
}

fn spent(n: u64) -> Spent {
    let usage = Usage { input: 100 + n, cache_read: 20, cache_write: 30, output: 40, reasoning: 5 };
    Spent { usage, cost: Dollars(410_000), unpriced: false }
}

fn product() -> Product {
    let output = Output { name: "report".to_owned(), kind: OutputKind::Path, value: "REPORT.md".to_owned() };
    Product { text: "It works.".to_owned(), outputs: vec![output] }
}

fn key() -> Key {
    serde_json::from_str("\"6d5f5e0c2b1a09f8e7d6c5b4a3928170\"").unwrap()
}

pub(crate) fn event(kind: Kind, n: u64) -> Event {
    let (mission, one) = (mission_id(n), assignment_id(n));
    let assignments = vec![assignment_id(n), assignment_id(n + 1)];
    match kind {
        Kind::MissionCreated => Event::MissionCreated(Box::new(MissionCreated {
            id: mission,
            campaign: campaign_id(n),
            name: format!("checkout-{n}").parse().unwrap(),
            plan: plan(n),
            assignments: vec![assignment(n)],
            by: by(),
        })),
        Kind::MissionStarted => Event::MissionStarted(MissionStarted {
            mission,
            by: by(),
            deadline: Some(deadline(n)),
            forecast: Some(Interval { low_us: 600_000_000, likely_us: 840_000_000, high_us: 1_320_000_000 }),
        }),
        Kind::MissionPaused => Event::MissionPaused(MissionPaused {
            mission,
            by: by(),
            why: "lunch".to_owned(),
            spared: vec![session_id(n)],
            time_left_us: Some(60_000_000),
        }),
        Kind::MissionResumed => {
            Event::MissionResumed(MissionResumed { mission, by: by(), deadline: Some(deadline(n)) })
        }
        Kind::MissionHeld => Event::MissionHeld(MissionHeld {
            mission,
            hold: Hold::Loop,
            assignment: Some(one),
            why: "the same call 5 times".to_owned(),
            spared: vec![session_id(n)],
            time_left_us: Some(60_000_000),
        }),
        Kind::MissionReleased => Event::MissionReleased(MissionReleased {
            mission,
            hold: Hold::Loop,
            assignment: Some(one),
            by: by(),
            deadline: Some(deadline(n)),
        }),
        Kind::MissionBudgetWarned => Event::MissionBudgetWarned(MissionBudgetWarned {
            mission,
            why: "$16.00 of $20.00 used".to_owned(),
        }),
        Kind::MissionBudgetChanged => Event::MissionBudgetChanged(MissionBudgetChanged {
            mission,
            budget: Some(Amount { tokens: Some(1_000), dollars: Some(Dollars(30_000_000)) }),
            by: by(),
        }),
        Kind::MissionStopRequested => Event::MissionStopRequested(MissionStopRequested {
            mission,
            rule: StopRule::Cancel,
            by: by(),
            why: "not needed".to_owned(),
        }),
        Kind::MissionEnded => Event::MissionEnded(MissionEnded {
            mission,
            status: Status::Partial,
            why: "1 failed".to_owned(),
            ran_us: 1_080_000_000 + n,
        }),
        Kind::AssignmentsReady => Event::AssignmentsReady(AssignmentsReady { mission, assignments }),
        Kind::AssignmentStarted => Event::AssignmentStarted(AssignmentStarted {
            mission,
            assignment: one,
            attempt: 2,
            session: session_id(n),
            continues: Some(session_id(n + 1)),
            key: key(),
        }),
        Kind::AssignmentMoved => Event::AssignmentMoved(AssignmentMoved {
            mission,
            assignment: one,
            attempt: 2,
            session: session_id(n),
        }),
        Kind::AssignmentCheckStarted => Event::AssignmentCheckStarted(Box::new(AssignmentCheckStarted {
            mission,
            assignment: one,
            attempt: 2,
            command: "cargo test".to_owned(),
            spent: spent(n),
            product: product(),
        })),
        Kind::AssignmentRetried => Event::AssignmentRetried(AssignmentRetried {
            mission,
            assignment: one,
            attempt: 2,
            outcome: Some(Outcome::Crashed),
            why: "exit code 1".to_owned(),
            spent: spent(n),
            after: deadline(n),
            never_started: true,
            awaits: None,
        }),
        Kind::AssignmentEnded => Event::AssignmentEnded(Box::new(AssignmentEnded {
            mission,
            assignment: one,
            status: AssignmentStatus::Failed,
            attempt: 2,
            session: Some(session_id(n)),
            outcome: Some(Outcome::Crashed),
            why: "exit code 1".to_owned(),
            product: product(),
            spent: spent(n),
            took_us: Some(n),
        })),
        Kind::AssignmentsReopened => Event::AssignmentsReopened(AssignmentsReopened {
            mission,
            assignments,
            by: by(),
            deadline: Some(deadline(n)),
            time_left_us: None,
        }),
        Kind::AssignmentsAdded => Event::AssignmentsAdded(Box::new(AssignmentsAdded {
            mission,
            members: vec![member(n)],
            assignments: vec![assignment(n)],
            by: by(),
            from: Some(one),
        })),
        Kind::AssignmentsRemoved => {
            Event::AssignmentsRemoved(AssignmentsRemoved { mission, assignments, by: by() })
        }
        Kind::AssignmentNudged => Event::AssignmentNudged(AssignmentNudged {
            mission,
            assignment: one,
            attempt: 2,
            stuck: StuckKind::Loop,
            evidence: "the same call 5 times".to_owned(),
        }),
        Kind::AssignmentBegan => Event::AssignmentBegan(AssignmentBegan {
            mission,
            assignment: one,
            attempt: 2,
            session: session_id(n),
            waited_us: n,
        }),
        Kind::AssignmentUnstuck => {
            Event::AssignmentUnstuck(AssignmentUnstuck { mission, assignment: one, attempt: 2 })
        }
        Kind::CollisionForecast => Event::CollisionForecast(CollisionForecast {
            mission,
            one,
            other: assignment_id(n + 1),
            paths: vec!["Cargo.lock".to_owned()],
            turn: Some(3),
        }),
        Kind::MergeStarted => {
            Event::MergeStarted(MergeStarted { mission, attempt: 1, into: "main".to_owned(), assignments })
        }
        Kind::MissionArchived => Event::MissionArchived(MissionArchived {
            mission,
            rule: "retention.missions=completed:7d".to_owned(),
            worktrees: 3,
            bytes: 1_000 + n,
            archived_bytes: 100,
            by: by(),
        }),
        Kind::MergeChecked => Event::MergeChecked(MergeChecked {
            mission,
            attempt: 1,
            old: "0123abb".to_owned(),
            commit: "0123abc".to_owned(),
        }),
        Kind::MergeMoving => Event::MergeMoving(MergeMoving { mission, attempt: 1 }),
        Kind::MergeEnded => Event::MergeEnded(MergeEnded {
            mission,
            attempt: 1,
            ok: n.is_multiple_of(2),
            output: "Already up to date.".to_owned(),
            commit: Some("0123abc".to_owned()),
        }),
        other => unreachable!("{other} is no mission's"),
    }
}
