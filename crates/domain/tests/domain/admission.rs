//! Who starts, who waits, and what is said of it.

use std::{collections::BTreeMap, time::Duration};

use ostler_domain::{
    CampaignId, SessionId,
    admission::{Account, Candidate, For, Hold, Limits, Priority, Room, Running, Wait, plan},
    limits::GIVES_WAY_AFTER,
};
use proptest::{collection::vec, option, prelude::*};

use crate::any::time;

const GIB: u64 = 1 << 30;
const PROVIDERS: [&str; 3] = ["claude-code", "codex", "script"];

fn campaign(n: u8) -> CampaignId {
    CampaignId::new(time(0), u128::from(n))
}

fn candidate(number: u64) -> Candidate {
    Candidate {
        id: SessionId::new(time(0), u128::from(number)),
        number,
        priority: Priority::Normal,
        continues: false,
        campaign: campaign(0),
        provider: "codex".to_owned(),
        account: None,
        memory: 0,
    }
}

fn running(n: u8) -> Running {
    Running {
        id: SessionId::new(time(0), 1_000 + u128::from(n)),
        campaign: campaign(n),
        provider: "codex".to_owned(),
        account: None,
        is_starting: false,
        memory: 0,
        frees: 0,
        hold: Hold::Firm,
    }
}

fn idle(n: u8, more: u64) -> Running {
    Running { hold: Hold::Idle(GIVES_WAY_AFTER + Duration::from_secs(more)), ..running(n) }
}

fn said(waiting: Vec<Candidate>, running: &[Running], limits: &Limits, room: &Room) -> Vec<String> {
    plan(waiting, running, limits, room).wait.iter().map(|(_, wait)| wait.words("shop")).collect()
}

#[test]
fn the_line_says_what_it_waits_for() {
    let none = Room::default();
    let sixty: Vec<Running> = (0..60).map(running).collect();
    let full = Limits { sessions: Some(60), ..Limits::default() };
    let three = || (1..=3).map(candidate).collect::<Vec<_>>();
    assert_eq!(said(three(), &sixty, &full, &none)[2], "waits for a slot (60 of 60; 3rd in line)");
    let of_accounts = BTreeMap::from([(account("work"), 1)]);
    let works = |one: Candidate| Candidate { account: Some(account("work")), ..one };
    let busy = [Running { account: Some(account("work")), ..running(7) }];
    let accounts = Limits { of_accounts, ..Limits::default() };
    assert_eq!(
        said(vec![works(candidate(1)), candidate(2)], &busy, &accounts, &none),
        ["waits for a slot of the account work of codex (1 of 1; 1st in line)"],
        "whose session it is does not matter, and others pass by"
    );
    let of_campaigns = BTreeMap::from([(campaign(0), 2)]);
    let of_campaign = Limits { of_campaigns, ..Limits::default() };
    assert_eq!(said(three(), &[], &of_campaign, &none), ["waits for a slot in shop (2 of 2; 1st in line)"]);
    let of_providers = BTreeMap::from([("codex".to_owned(), 1)]);
    let of_provider = Limits { of_providers, ..Limits::default() };
    assert_eq!(said(three(), &[], &of_provider, &none)[1], "waits for a slot of codex (1 of 1; 2nd in line)");
    let memory = Limits { free_memory: GIB, ..Limits::default() };
    let little = Room { memory: Some(GIB / 2), disk: None };
    assert_eq!(
        said(three(), &[running(0)], &memory, &little)[0],
        "waits for memory (512.0 MiB free, 1.0 GiB stay free; 1st in line)"
    );
    let disk = Limits { free_disk: GIB, ..Limits::default() };
    let full = Room { memory: None, disk: Some(GIB / 4) };
    assert_eq!(
        said(three(), &[], &disk, &full)[0],
        "waits for disk space (256.0 MiB free, 1.0 GiB stay free; 1st in line): ostler du"
    );
    let drained = Limits { drained: Some("drained by ann: kernel update".to_owned()), ..Limits::default() };
    assert_eq!(
        said(three(), &[], &drained, &none)[0],
        "waits: nothing starts here, drained by ann: kernel update (1st in line)"
    );
    let starts = Limits { starts: Some(2), ..Limits::default() };
    assert_eq!(said(three(), &[], &starts, &none), ["waits to start (2 are starting; 1st in line)"]);
}

#[test]
fn the_pressing_come_first_then_what_goes_on_then_who_came_first() {
    let urgent = Candidate { priority: Priority::High, ..candidate(4) };
    let later = Candidate { priority: Priority::Low, ..candidate(1) };
    let goes_on = Candidate { continues: true, ..candidate(3) };
    let line = vec![later.clone(), candidate(2), goes_on.clone(), urgent.clone()];
    let plan = plan(line, &[], &Limits::default(), &Room::default());
    assert_eq!(plan.start, [urgent.id, goes_on.id, candidate(2).id, later.id]);
}

#[test]
fn a_full_campaign_lets_others_pass_and_short_memory_does_not() {
    let other = Candidate { campaign: campaign(1), ..candidate(2) };
    let of_campaigns = BTreeMap::from([(campaign(0), 1)]);
    let limits = Limits { of_campaigns, ..Limits::default() };
    let full = plan(vec![candidate(1), other.clone()], &[running(0)], &limits, &Room::default());
    assert_eq!(full.start, [other.id]);
    let large = Candidate { memory: GIB, ..candidate(1) };
    let room = Room { memory: Some(GIB), disk: None };
    let limits = Limits { free_memory: GIB / 2, ..Limits::default() };
    let short = plan(vec![large, other], &[running(0)], &limits, &room);
    assert!(short.start.is_empty(), "who needs much would wait for ever");
}

#[test]
fn what_is_about_to_be_taken_is_not_free() {
    let line = |memory| (1..=9).map(|n| Candidate { memory, ..candidate(n) }).collect::<Vec<_>>();
    let room = Room { memory: Some(2 * GIB), disk: None };
    let limits = Limits { free_memory: GIB, ..Limits::default() };
    assert_eq!(plan(line(GIB / 4), &[], &limits, &room).start.len(), 4);
    let settling = Running { memory: GIB / 2, ..running(0) };
    assert_eq!(plan(line(GIB / 4), &[settling], &limits, &room).start.len(), 2);
}

#[test]
fn the_longest_idle_give_way_as_many_as_wait() {
    let four = Limits { sessions: Some(4), ..Limits::default() };
    let held = [idle(0, 1), idle(1, 5), idle(2, 3), running(3)];
    let gives = |waiting: u64, held: &[Running]| {
        plan((1..=waiting).map(candidate).collect(), held, &four, &Room::default()).give_way
    };
    assert_eq!(gives(0, &held), []);
    assert_eq!(gives(2, &held), [held[1].id, held[2].id]);
    assert_eq!(gives(9, &held), [held[1].id, held[2].id, held[0].id], "who works is left alone");
    // One that ends already makes room for the first of them.
    let leaves = Running { hold: Hold::Leaves, ..running(3) };
    let held = [idle(0, 1), idle(1, 5), idle(2, 3), leaves];
    assert_eq!(gives(1, &held), []);
    assert_eq!(gives(2, &held), [held[1].id]);
    // Whoever has just answered may be spoken to.
    let just = Running { hold: Hold::Idle(GIVES_WAY_AFTER - Duration::from_millis(1)), ..running(0) };
    assert_eq!(gives(1, &[just, running(1), running(2), running(3)]), []);
}

#[test]
fn only_who_holds_what_is_waited_for_gives_way() {
    let of_campaigns = BTreeMap::from([(campaign(0), 1)]);
    let limits = Limits { of_campaigns, ..Limits::default() };
    let room = Room::default();
    let gives = |limits: &Limits, held: &[Running], room: &Room| {
        plan(vec![Candidate { memory: GIB, ..candidate(1) }], held, limits, room).give_way
    };
    assert_eq!(gives(&limits, &[idle(1, 9), idle(0, 1)], &room), [idle(0, 1).id]);
    assert_eq!(gives(&limits, &[idle(1, 9), running(0)], &room), []);
    // The machine's slot alone would not help where the campaign's are in use as well.
    let both = Limits { sessions: Some(2), ..limits.clone() };
    assert_eq!(gives(&both, &[idle(1, 9), running(0)], &room), []);
    assert_eq!(gives(&both, &[idle(1, 9), idle(0, 1)], &room), [idle(0, 1).id]);
    let of_providers = BTreeMap::from([("codex".to_owned(), 1)]);
    let provider = Limits { of_providers, ..Limits::default() };
    let script = Running { provider: "script".to_owned(), ..idle(0, 9) };
    assert_eq!(gives(&provider, &[script, idle(1, 1)], &room), [idle(1, 1).id]);
    let memory = Limits { free_memory: GIB, ..Limits::default() };
    let short = Room { memory: Some(GIB), disk: None };
    assert_eq!(gives(&memory, &[idle(0, 1), idle(1, 2)], &short), [idle(1, 2).id], "one at a time");
    let leaves = Running { hold: Hold::Leaves, frees: GIB, ..running(2) };
    assert_eq!(gives(&memory, &[idle(0, 1), leaves], &short), [], "that will be enough");
    // Nobody's end makes room on the disk, nor ends a drain.
    let disk = Limits { sessions: Some(1), free_disk: GIB, ..Limits::default() };
    assert_eq!(gives(&disk, &[idle(0, 1)], &Room { memory: None, disk: Some(0) }), []);
    let drained = Limits { sessions: Some(1), drained: Some(String::new()), ..Limits::default() };
    assert_eq!(gives(&drained, &[idle(0, 1)], &room), []);
}

fn any_hold() -> impl Strategy<Value = Hold> {
    let idle = (0_u64..20).prop_map(|seconds| Hold::Idle(Duration::from_secs(seconds)));
    prop_oneof![2 => Just(Hold::Firm), 3 => idle, 1 => Just(Hold::Leaves)]
}

/// Whether a session holds what another is told that it waits for.
fn holds(one: &Running, wait: &Wait) -> bool {
    match &wait.what {
        For::Slot { .. } | For::Memory { .. } => true,
        For::CampaignSlot { campaign, .. } => one.campaign == *campaign,
        For::ProviderSlot { provider, .. } => one.provider == *provider,
        For::AccountSlot { account, .. } => one.account.as_ref() == Some(account),
        For::Drain { .. } | For::Disk { .. } | For::Start { .. } => false,
    }
}

fn account(name: &str) -> Account {
    Account { provider: "codex".to_owned(), profile: name.parse().unwrap() }
}

fn any_account() -> impl Strategy<Value = Option<Account>> {
    option::of(prop_oneof![Just(account("work")), Just(account("home"))])
}

fn any_candidate() -> impl Strategy<Value = Candidate> {
    let priority = prop_oneof![Just(Priority::Low), Just(Priority::Normal), Just(Priority::High)];
    (priority, any::<bool>(), 0_u8..3, 0_usize..3, any_account(), 0_u64..3).prop_map(
        |(priority, continues, of, provider, account, gib)| Candidate {
            account,
            priority,
            continues,
            campaign: campaign(of),
            provider: PROVIDERS[provider].to_owned(),
            memory: gib * GIB,
            ..candidate(0)
        },
    )
}

fn any_running() -> impl Strategy<Value = Running> {
    (0_u8..3, 0_usize..3, any_account(), any::<bool>(), 0_u64..3, 0_u64..3, any_hold()).prop_map(
        |(of, provider, account, is_starting, gib, frees, hold)| Running {
            account,
            provider: PROVIDERS[provider].to_owned(),
            is_starting,
            memory: gib * GIB,
            frees: frees * GIB,
            hold,
            ..running(of)
        },
    )
}

fn any_limits() -> impl Strategy<Value = Limits> {
    let most = || option::of(1_u32..9);
    (most(), vec(most(), 3), vec(most(), 3), most(), most(), 0_u64..9, 0_u64..3).prop_map(
        |(sessions, campaigns, providers, of_account, starts, memory, disk)| Limits {
            of_accounts: of_account.map(|most| (account("work"), most)).into_iter().collect(),
            sessions,
            of_campaigns: (0..).zip(campaigns).filter_map(|(n, most)| Some((campaign(n), most?))).collect(),
            of_providers: PROVIDERS
                .iter()
                .zip(providers)
                .filter_map(|(name, most)| Some(((*name).to_owned(), most?)))
                .collect(),
            starts,
            free_memory: memory * GIB,
            free_disk: disk * GIB,
            drained: None,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nobody_is_lost_and_no_limit_is_passed(
        line in vec(any_candidate(), 0..20),
        running in vec(any_running(), 0..10),
        limits in any_limits(),
        memory in option::of(0_u64..20),
        disk in option::of(0_u64..3),
    ) {
        let line: Vec<Candidate> = (1..).zip(line).map(|(number, one)| {
            Candidate { id: candidate(number).id, number, ..one }
        }).collect();
        let running: Vec<Running> = (0..).zip(running).map(|(n, one)| {
            Running { id: super::admission::running(n).id, ..one }
        }).collect();
        let room = Room { memory: memory.map(|n| n * GIB), disk: disk.map(|n| n * GIB) };
        let planned = plan(line.clone(), &running, &limits, &room);
        // Everybody is told, once.
        let mut told: Vec<SessionId> =
            planned.start.iter().copied().chain(planned.wait.iter().map(|(id, _)| *id)).collect();
        told.sort();
        let mut all: Vec<SessionId> = line.iter().map(|one| one.id).collect();
        all.sort();
        prop_assert_eq!(told, all);
        // Who starts fits: where there were too many before, nobody does.
        let started: Vec<&Candidate> = line.iter().filter(|one| planned.start.contains(&one.id)).collect();
        let fits = |before: usize, more: usize, most: Option<u32>| {
            more == 0 || most.is_none_or(|most| before + more <= most as usize)
        };
        prop_assert!(fits(running.len(), started.len(), limits.sessions));
        let starting = running.iter().filter(|one| one.is_starting).count();
        prop_assert!(fits(starting, started.len(), limits.starts));
        for (of, most) in &limits.of_campaigns {
            let before = running.iter().filter(|one| one.campaign == *of).count();
            prop_assert!(fits(before, started.iter().filter(|one| one.campaign == *of).count(), Some(*most)));
        }
        for (of, most) in &limits.of_providers {
            let before = running.iter().filter(|one| one.provider == *of).count();
            prop_assert!(fits(before, started.iter().filter(|one| one.provider == *of).count(), Some(*most)));
        }
        for (of, most) in &limits.of_accounts {
            let of = Some(of);
            let before = running.iter().filter(|one| one.account.as_ref() == of).count();
            prop_assert!(fits(before, started.iter().filter(|one| one.account.as_ref() == of).count(), Some(*most)));
        }
        // Nobody waits for memory where nothing of ours runs, and somebody starts where the disk lets it.
        let has_disk = room.disk.is_none_or(|free| free >= limits.free_disk);
        prop_assert_eq!(has_disk || started.is_empty(), true);
        if running.is_empty() && has_disk && !line.is_empty() {
            prop_assert!(!started.is_empty(), "nothing runs and nothing starts");
        }
        // Places in a line have no holes.
        let mut places: BTreeMap<For, u32> = BTreeMap::new();
        for (_, wait) in &planned.wait {
            let last = places.entry(wait.what.clone()).or_default();
            *last += 1;
            prop_assert_eq!(wait.place, *last);
        }
        // Only idle ones give way, once, for somebody who waits for what they hold; never more than wait.
        let mut waits: Vec<&Wait> = planned.wait.iter().map(|(_, wait)| wait).collect();
        let mut left = running.clone();
        for id in &planned.give_way {
            let at = left.iter().position(|one| one.id == *id);
            prop_assert!(at.is_some(), "nobody gives way twice");
            let one = left.remove(at.unwrap());
            prop_assert!(matches!(one.hold, Hold::Idle(span) if span >= GIVES_WAY_AFTER));
            let waited = waits.iter().position(|wait| holds(&one, wait));
            prop_assert!(waited.is_some(), "nobody waits for what it holds");
            waits.remove(waited.unwrap());
        }
        // The order in which they are listed does not matter: a daemon that starts finds the same line.
        let mut other = line;
        other.reverse();
        let running: Vec<Running> = running.into_iter().rev().collect();
        prop_assert_eq!(plan(other, &running, &limits, &room), planned);
    }
}
