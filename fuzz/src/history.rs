//! What must hold of reading another program's store, whatever is in its file. Used by the fuzz target and, on bytes of its own
//! making, by a test of `ostler-providers`.

use ostler_domain::{
    ConversationId, Event, Time,
    event::By,
    history::{Chronicle, Source, Told, What, Writing},
    price::PriceBook,
};
use ostler_providers::history::{glance, reader, take_in};

const NOW: Time = Time::from_micros(1_800_000_000_000_000);

pub(super) fn holds(bytes: &[u8]) {
    for source in Source::ALL {
        let whole = read(*source, bytes, usize::MAX);
        assert_eq!(read(*source, bytes, 1), whole, "wherever reading is left, it goes on the same");
        let places = whole.iter().filter_map(|told| match &told.what {
            What::Prompt { place, .. } => Some(*place),
            _ => None,
        });
        assert!(places.is_sorted_by(|one, other| one < other), "each prompt has a place of its own");
        write(whole);
        let middle = bytes.len() / 2;
        let _ = glance(*source, "", &bytes[..middle], &bytes[middle..]);
    }
}

fn read(source: Source, bytes: &[u8], pause: usize) -> Vec<Told> {
    let mut told = Vec::new();
    let mut reading = reader(source, None);
    let mut place = 0;
    for (number, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let whole = line.strip_suffix(b"\n").unwrap_or(line);
        take_in(reading.as_mut(), whole, place, whole.len() as u64, &mut told);
        place += line.len() as u64;
        if (number + 1).is_multiple_of(pause) {
            reading = reader(source, Some(&reading.memory()));
        }
    }
    reading.pause(&mut told);
    told
}

/// Turns begin and end one after another, and time does not go back.
fn write(told: Vec<Told>) {
    let (by, prices) = (By("fuzz".to_owned()), PriceBook::default());
    let conversation = ConversationId::new(NOW, 1);
    let writing = Writing { conversation, dialogue: "d", by: &by, prices: &prices, now: NOW };
    let mut chronicle = Chronicle::begun(Time::from_micros(0));
    let mut events = Vec::new();
    for told in told {
        chronicle.write(told, &writing, &mut events);
    }
    chronicle.end(&mut events);
    assert!(events.is_sorted_by_key(|(at, _)| *at), "times never go back");
    assert!(events.last().is_none_or(|(at, _)| *at <= NOW), "nor beyond now");
    let (mut turn, mut is_open) = (0, false);
    for (_, event) in &events {
        match event {
            Event::TurnStarted(started) => {
                assert!(!is_open && started.turn == turn + 1);
                (turn, is_open) = (started.turn, true);
            }
            Event::TurnEnded(ended) => {
                assert!(is_open && ended.turn == turn);
                is_open = false;
            }
            Event::AgentToolCall(_) | Event::AgentCompletion(_) | Event::AgentThinking(_) => assert!(is_open),
            _ => {}
        }
    }
    assert!(!is_open);
}
