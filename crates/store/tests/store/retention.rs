//! What rules do to the record of sessions that have ended: compressed, it is read as before; deleted, only the words go.

use std::{
    fs::{self, File},
    path::PathBuf,
    time::{Duration, SystemTime},
};

use ostler_domain::{
    Event, Kind, Recorded, SessionId,
    event::{By, ImageRecorded, SessionDeleted, SessionRestored, Text},
    image::{Image, base64},
    query::{Page, UsageBy, UsageFilter},
    retention::{Kept, Stage},
};
use ostler_store::{CheckDepth, Options, Store, block_on};

use crate::{
    samples::{at, campaign_id, conversation_id, event, session_id},
    support::{Owner, Place, dump, is_derived, node_commit, open, whole_log},
};

const WORDS: &str = "the cake is in the cellar";

fn large(n: u64) -> Event {
    Event::AgentCompletion(Text::from(format!("{n} {WORDS} ").repeat(2_000)))
}

/// A session that has said something short and something long, and has ended.
fn ended(store: &Store, n: u64, long: Event) -> Owner {
    let mut owner = Owner::create(store, n);
    let events = [
        event(Kind::MessageAccepted, n),
        Event::AgentThinking(Text::from(WORDS)),
        event(Kind::AgentToolCall, n),
        event(Kind::ApprovalRequested, n),
        event(Kind::ApprovalAnswered, n),
        long,
        event(Kind::UsageRecorded, n),
        event(Kind::SessionStopped, n),
    ];
    owner.record(store, events.into_iter().map(|event| (at(n + 2), event)).collect()).unwrap();
    owner
}

/// Records that a session is deleted, and deletes it; how many turns that took.
fn delete(store: &Store, session: SessionId) -> u64 {
    let by = By::ostler();
    let deleted = SessionDeleted { session, rule: "retention.delete_after=1d".to_owned(), by };
    store.commit_blocking(node_commit(vec![(at(99), Event::SessionDeleted(deleted))])).unwrap();
    let (mut from, mut turns) = (1, 1);
    while let Some(next) = block_on(store.erase(session, from, at(99))).unwrap() {
        (from, turns) = (next, turns + 1);
    }
    turns
}

fn blobs(place: &Place) -> Vec<PathBuf> {
    let shelves = fs::read_dir(place.paths().blobs).unwrap().map(|shelf| shelf.unwrap().path());
    let files = shelves.filter(|shelf| shelf.is_dir()).flat_map(|shelf| fs::read_dir(shelf).unwrap());
    files.map(|file| file.unwrap().path()).collect()
}

fn is_compressed(path: &std::path::Path) -> bool {
    path.extension().is_some_and(|extension| extension == "zst")
}

fn grow_old(place: &Place) {
    for blob in blobs(place) {
        File::open(blob).unwrap().set_modified(SystemTime::now() - Duration::from_secs(86_400)).unwrap();
    }
}

#[test]
fn an_archived_session_is_read_as_before_in_either_form_and_in_both() {
    let place = Place::new();
    let store = place.open();
    let owner = ended(&store, 1, large(1));
    let before: Vec<Recorded> = whole_log(&store);
    let is_whole = |what: &str| {
        assert_eq!(whole_log(&store), before, "{what}");
        assert_eq!(block_on(store.check(CheckDepth::Full)).unwrap().findings, vec![], "{what}");
    };
    let (plain, compressed) = block_on(store.compress_blobs(owner.id())).unwrap();
    assert!(plain > 40_000 && compressed < plain / 10, "{plain} {compressed}");
    assert_eq!(blobs(&place).len(), 2);
    is_whole("both forms");
    block_on(store.drop_plain_blobs(owner.id())).unwrap();
    assert!(blobs(&place).iter().all(|blob| is_compressed(blob)));
    is_whole("compressed");
    // The same words again: whoever says them finds them there.
    ended(&store, 2, large(1));
    assert_eq!(blobs(&place).len(), 1);
    let copy = place.dir.path().join("copy");
    block_on(store.backup(&copy, |_| {})).unwrap();
    assert_eq!(whole_log(&open(&copy)), whole_log(&store));
    block_on(store.expand_blobs(owner.id())).unwrap();
    assert!(blobs(&place).iter().all(|blob| !is_compressed(blob)));
    assert_eq!(whole_log(&store)[..before.len()], before);
}

fn picture() -> Event {
    let image = Image::from_base64("image/png", &base64(WORDS.repeat(50).as_bytes())).unwrap();
    Event::ImageRecorded(ImageRecorded { image, tool_id: None, message: None, subagent: None })
}

#[test]
fn a_picture_is_kept_once_and_goes_with_the_last_who_names_it() {
    let place = Place::new();
    let store = place.open();
    let (one, other) = (ended(&store, 1, picture()), ended(&store, 2, picture()));
    let Event::ImageRecorded(shown) = picture() else { unreachable!() };
    let sha256 = shown.image.sha256.as_str();
    assert_eq!(blobs(&place).len(), 1, "the same bytes are one file");
    let is_there = |name: &str| block_on(store.image(name)).unwrap() == Some(WORDS.repeat(50).into_bytes());
    assert!(is_there(sha256) && is_there(&sha256[..9]));
    assert_eq!(block_on(store.image("00000000")).unwrap(), None);
    assert_eq!(block_on(store.image("no digits")).unwrap(), None);
    // Like all that is large, it is compressed with its session, copied, and looked at.
    block_on(store.compress_blobs(one.id())).unwrap();
    block_on(store.drop_plain_blobs(one.id())).unwrap();
    assert!(blobs(&place).iter().all(|blob| is_compressed(blob)) && is_there(sha256));
    let copy = place.dir.path().join("copy");
    block_on(store.backup(&copy, |_| {})).unwrap();
    assert!(block_on(open(&copy).image(sha256)).unwrap().is_some());
    let before = dump(&place.sql(), is_derived);
    block_on(store.reindex()).unwrap();
    assert_eq!(dump(&place.sql(), is_derived), before);
    let looked = block_on(store.check(CheckDepth::Full)).unwrap();
    assert_eq!((looked.findings, looked.blobs), (vec![], 2));

    delete(&store, one.id());
    grow_old(&place);
    block_on(store.drop_garbage()).unwrap();
    assert!(is_there(sha256), "the other session names it");
    delete(&store, other.id());
    grow_old(&place);
    block_on(store.drop_garbage()).unwrap();
    assert_eq!((blobs(&place), block_on(store.image(sha256)).unwrap()), (vec![], None));
    let before = dump(&place.sql(), is_derived);
    block_on(store.reindex()).unwrap();
    assert_eq!(dump(&place.sql(), is_derived), before);
}

#[test]
fn what_was_delivered_goes_with_the_session_before_it() {
    let place = Place::new();
    let store = place.open();
    let (one, _) = (ended(&store, 1, picture()), ended(&store, 2, picture()));
    let delivered = [1, 2, 1].map(|n| (at(60 + n), event(Kind::DeliveryMirrored, n)));
    store.commit_blocking(node_commit(delivered.to_vec())).unwrap();
    let of = |n: u64, after: u64| block_on(store.mirrored(conversation_id(n), after, 10)).unwrap();
    let [first, second] = of(1, 0).try_into().unwrap();
    assert_eq!(of(1, first.seq), [second]);
    delete(&store, one.id());
    let words = |n: u64| of(n, 0).iter().filter(|at| at.event.body().contains("the build is green")).count();
    assert_eq!((words(1), words(2)), (0, 1));
    let before = dump(&place.sql(), is_derived);
    block_on(store.reindex()).unwrap();
    assert_eq!(dump(&place.sql(), is_derived), before);
}

#[test]
fn a_picture_that_is_damaged_or_gone_is_a_finding() {
    let place = Place::new();
    let store = place.open();
    ended(&store, 1, picture());
    let [blob] = blobs(&place).try_into().unwrap();
    fs::write(&blob, "another").unwrap();
    let found = block_on(store.check(CheckDepth::Full)).unwrap().findings;
    assert!(
        found.len() == 1 && found[0].text.contains("the picture of event") && found[0].part == "blobs",
        "{found:?}"
    );
    fs::remove_file(&blob).unwrap();
    let found = block_on(store.check(CheckDepth::Quick)).unwrap().findings;
    assert!(found.len() == 1 && found[0].text.contains("is not there"), "{found:?}");
}

#[test]
fn a_compressed_form_that_is_damaged_takes_nothing_s_place() {
    let place = Place::new();
    let store = place.open();
    let owner = ended(&store, 1, large(1));
    block_on(store.compress_blobs(owner.id())).unwrap();
    let compressed = blobs(&place).into_iter().find(|blob| is_compressed(blob)).unwrap();
    fs::write(&compressed, zstd::encode_all(&b"other words"[..], 1).unwrap()).unwrap();
    block_on(store.drop_plain_blobs(owner.id())).unwrap();
    assert_eq!(block_on(store.check(CheckDepth::Full)).unwrap().findings, vec![]);
}

#[test]
fn a_deleted_session_has_lost_its_words_and_nothing_else() {
    let place = Place::new();
    let store = Store::open(&place.paths(), &Options { search: true }).unwrap().store;
    let (one, other) = (ended(&store, 1, large(1)), ended(&store, 2, large(2)));
    let found = |text: &str| {
        block_on(store.searchable(store.last_seq()));
        let hits = block_on(store.search(text, None, Page::of(0, None))).unwrap().rows;
        hits.into_iter().filter_map(|hit| hit.session).collect::<Vec<_>>()
    };
    assert!(found("cellar").contains(&one.id()));
    let cost = |store: &Store| block_on(store.usage(&UsageFilter::default(), UsageBy::Session)).unwrap();
    let (spent, was) = (cost(&store), block_on(store.session(one.id())).unwrap().unwrap());

    delete(&store, one.id());
    let is = block_on(store.session(one.id())).unwrap().unwrap();
    assert_eq!((is.outcome, is.turns, is.usage, &is.name), (was.outcome, was.turns, was.usage, &was.name));
    assert_eq!(is.last_completion.as_deref(), Some(""));
    assert_eq!(cost(&store), spent);
    assert!(!found("cellar").contains(&one.id()) && found("cellar").contains(&other.id()));
    assert!(!found("login").contains(&one.id()));
    let among = ostler_store::Among { sessions: vec![one.id()], tickets: false };
    let of_it = block_on(store.search("cellar", Some(among), Page::of(0, None))).unwrap();
    assert!(of_it.rows.is_empty(), "{of_it:?}");
    let index = rusqlite::Connection::open(place.paths().search).unwrap();
    index.execute("INSERT INTO search_text(search_text) VALUES ('integrity-check')", []).unwrap();
    let of = |session: SessionId| whole_log(&store).into_iter().filter(move |at| at.session == Some(session));
    assert!(of(one.id()).all(|at| !at.event.body().contains("cellar")));
    assert_eq!(of(one.id()).count() as u64, was.session_seq);
    assert!(of(other.id()).any(|at| at.event.body().contains("cellar")));
    let approvals = block_on(store.approvals(Page::of(0, None))).unwrap().rows;
    let asked = approvals.iter().find(|row| row.session == one.id()).unwrap();
    assert_eq!((asked.input.as_str(), asked.message.as_deref()), ("", None));

    // The file waits until nobody can be about to name it, and goes then.
    block_on(store.drop_garbage()).unwrap();
    assert_eq!(blobs(&place).len(), 2);
    grow_old(&place);
    block_on(store.drop_garbage()).unwrap();
    assert_eq!(blobs(&place).len(), 1);
    let left: i64 = place.sql().query_row("SELECT count(*) FROM node_garbage", [], |row| row.get(0)).unwrap();
    assert_eq!(left, 0);

    // Once more does nothing, and what is derived is what the log says.
    delete(&store, one.id());
    drop(store);
    let store = place.open();
    let before = dump(&place.sql(), is_derived);
    block_on(store.reindex()).unwrap();
    assert_eq!(dump(&place.sql(), is_derived), before);
    assert_eq!(block_on(store.check(CheckDepth::Full)).unwrap().findings, vec![]);
}

#[test]
fn a_long_session_is_deleted_some_events_at_a_time_from_wherever_it_was_left() {
    let place = Place::new();
    let store = Store::open(&place.paths(), &Options { search: true }).unwrap().store;
    let mut owner = Owner::create(&store, 1);
    let said = || Event::AgentThinking(Text::from(WORDS));
    let mut events: Vec<_> = (0..1_200).map(|_| (at(3), said())).collect();
    events.push((at(4), event(Kind::SessionStopped, 1)));
    owner.record(&store, events).unwrap();
    // Whoever dies after the first turn begins anew.
    assert_eq!(block_on(store.erase(owner.id(), 1, at(9))).unwrap(), Some(501));
    assert_eq!(delete(&store, owner.id()), 3);
    assert!(whole_log(&store).iter().all(|at| !at.event.body().contains("cellar")));
    block_on(store.searchable(store.last_seq()));
    assert_eq!(block_on(store.search("cellar", None, Page::of(0, None))).unwrap().rows, vec![]);
    assert_eq!(block_on(store.check(CheckDepth::Full)).unwrap().findings, vec![]);
}

#[test]
fn what_cannot_be_read_any_more_is_deleted_too() {
    let place = Place::new();
    let store = place.open();
    let one = ended(&store, 1, large(1));
    fs::remove_file(&blobs(&place)[0]).unwrap();
    delete(&store, one.id());
    let is = block_on(store.session(one.id())).unwrap().unwrap();
    assert_eq!(is.last_completion, None);
    assert!(whole_log(&store).iter().all(|at| !at.event.body().contains("cellar")));
}

#[test]
fn a_blob_of_which_another_session_has_the_words_stays() {
    let place = Place::new();
    let store = place.open();
    let (one, other) = (ended(&store, 1, large(1)), ended(&store, 2, large(1)));
    delete(&store, one.id());
    grow_old(&place);
    block_on(store.drop_garbage()).unwrap();
    let said = whole_log(&store).into_iter().filter(|at| at.session == Some(other.id()));
    assert!(said.into_iter().any(|at| at.event == large(1)));
    // Said again after the last one lost it: the file is there for them.
    delete(&store, other.id());
    ended(&store, 3, large(1));
    block_on(store.drop_garbage()).unwrap();
    assert_eq!(block_on(store.check(CheckDepth::Full)).unwrap().findings, vec![]);
}

#[test]
fn a_session_that_lives_is_not_deleted_and_nothing_of_it_changes() {
    let place = Place::new();
    let store = place.open();
    let mut owner = Owner::create(&store, 1);
    owner.record(&store, vec![(at(2), Event::AgentThinking(Text::from(WORDS)))]).unwrap();
    let before = whole_log(&store);
    block_on(store.erase(owner.id(), 1, at(9))).unwrap_err();
    assert_eq!(block_on(store.erase(session_id(5), 1, at(9))).unwrap(), None, "nobody knows that one");
    assert_eq!(whole_log(&store), before);
    owner.record(&store, vec![(at(3), event(Kind::SessionStarting, 1))]).unwrap();
}

#[test]
fn rules_are_asked_about_those_that_ended_long_enough_ago_and_those_that_are_marked() {
    let place = Place::new();
    let store = place.open();
    for n in [0, 3, 6, 9] {
        ended(&store, n, event(Kind::AgentStatus, n));
    }
    Owner::create(&store, 12);
    let found = |until, after, limit| {
        let found = block_on(store.retention_candidates(campaign_id(0), until, after, limit)).unwrap();
        let sessions: Vec<_> = found.rows.iter().map(|row| row.standing.session).collect();
        (sessions, found.next)
    };
    assert_eq!(found(Some(at(6)), 0, 10), (vec![session_id(0), session_id(3)], None));
    let (first, next) = found(Some(at(99)), 0, 3);
    assert_eq!((first.len(), found(Some(at(99)), next.unwrap(), 3).0), (3, vec![session_id(9)]));
    let (marked, held) = (event(Kind::DeletionMarked, 9), event(Kind::RetentionHeld, 6));
    store.commit_blocking(node_commit(vec![(at(50), marked), (at(51), held)])).unwrap();
    assert!(block_on(store.has_marked_or_removed()).unwrap());
    assert_eq!(found(None, 0, 10).0, [session_id(9)]);
    let listed = block_on(store.retention(Page::of(10, None))).unwrap().rows;
    let stages: Vec<_> = listed.iter().map(|row| (row.session, row.kept.stage())).collect();
    assert_eq!(stages, [(session_id(9), Stage::Marked), (session_id(6), Stage::Hot)]);
    assert_eq!(listed[1].kept.held.as_ref().unwrap().why, "an audit");
    store.commit_blocking(node_commit(vec![(at(60), event(Kind::SessionRestored, 9))])).unwrap();
    assert!(!block_on(store.has_marked_or_removed()).unwrap());
}

#[test]
fn who_is_brought_back_is_young_again_and_whose_mark_is_called_off_is_as_old_as_before() {
    let place = Place::new();
    let store = place.open();
    let session = ended(&store, 9, event(Kind::AgentStatus, 9)).id();
    let kept = |by_rule| {
        let marks = [Kind::SessionArchived, Kind::DeletionMarked].map(|kind| (at(50), event(kind, 9)));
        store.commit_blocking(node_commit(marks.to_vec())).unwrap();
        let restored = SessionRestored { session, why: String::new(), by_rule, by: By::ostler() };
        store.commit_blocking(node_commit(vec![(at(60), Event::SessionRestored(restored))])).unwrap();
        block_on(store.retention_candidate(session)).unwrap().unwrap().standing.kept
    };
    assert_eq!(kept(true), Kept { archived: Some(at(50)), ..Kept::default() });
    assert_eq!(kept(false), Kept { restored: Some(at(60)), ..Kept::default() });
}
