//! Who starts, who waits, and what is said of it.

use std::collections::BTreeMap;

use ostler_domain::{
    CampaignId, SessionId,
    admission::{Candidate, For, Limits, Priority, Room, Running, plan},
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
        memory: 0,
    }
}

fn running(n: u8) -> Running {
    Running { campaign: campaign(n), provider: "codex".to_owned(), is_starting: false, memory: 0 }
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

fn any_candidate() -> impl Strategy<Value = Candidate> {
    let priority = prop_oneof![Just(Priority::Low), Just(Priority::Normal), Just(Priority::High)];
    (priority, any::<bool>(), 0_u8..3, 0_usize..3, 0_u64..3).prop_map(
        |(priority, continues, of, provider, gib)| Candidate {
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
    (0_u8..3, 0_usize..3, any::<bool>(), 0_u64..3).prop_map(|(of, provider, is_starting, gib)| Running {
        campaign: campaign(of),
        provider: PROVIDERS[provider].to_owned(),
        is_starting,
        memory: gib * GIB,
    })
}

fn any_limits() -> impl Strategy<Value = Limits> {
    let most = || option::of(1_u32..9);
    (most(), vec(most(), 3), vec(most(), 3), most(), 0_u64..9, 0_u64..3).prop_map(
        |(sessions, campaigns, providers, starts, memory, disk)| Limits {
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
        // The order in which they are listed does not matter: a daemon that starts finds the same line.
        let mut other = line;
        other.reverse();
        prop_assert_eq!(plan(other, &running, &limits, &room), planned);
    }
}
