//! What a session may take of its model is held by the gateway itself.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::TcpStream,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use ostler_domain::{
    gateway::{Allowance, CallEnd, KeyScheme, ModelOrder, Reach, Upstream},
    price::{Dollars, Price},
};

use crate::{
    keeper::Keeper,
    model::{head, upstream},
};

const HUNDRED: Allowance =
    Allowance { tokens: Some(100), dollars: None, prices: BTreeMap::new(), is_asked_for: false, number: 0 };
const CALL: &str = "POST /v1/messages HTTP/1.1\r\n\r\n";

/// Answers each call with the same usage: 60 tokens.
fn sixty() -> u16 {
    upstream(|mut stream| {
        head(&mut stream);
        let body =
            r#"{"id":"msg_1","model":"claude-sonnet-5","usage":{"input_tokens":50,"output_tokens":10}}"#;
        write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
    })
}

fn keeper(port: u16, allowance: Allowance, hold: Duration) -> Keeper {
    let upstream = Upstream::parse(&format!("http://127.0.0.1:{port}")).unwrap();
    let mut order = ModelOrder::new(upstream, KeyScheme::None, None);
    order.allowance = allowance;
    order.hold_ms = hold.as_millis() as u64;
    Keeper::with_model(Reach::Provider, &[], 60_000, Some(order))
}

fn is_refused(said: &str) -> bool {
    said.starts_with("HTTP/1.1 429 ") && said.contains("\"code\":\"budget_exceeded\"")
}

#[test]
fn the_call_after_the_end_waits_and_is_then_put_off() {
    let mut keeper = keeper(sixty(), HUNDRED, Duration::from_millis(300));
    for spent in [60, 120] {
        assert!(keeper.ask(CALL).starts_with("HTTP/1.1 200 "));
        assert_eq!(keeper.call().end, CallEnd::Complete);
        assert_eq!(keeper.spent().tokens, spent, "the call that reaches the end is the last");
    }
    let began = Instant::now();
    let said = keeper.ask(CALL);
    assert!(began.elapsed() >= Duration::from_millis(300));
    assert!(is_refused(&said) && said.contains("120 of 100 tokens are used"), "{said}");
    assert!(said.contains("Retry-After: 3600\r\nX-Should-Retry: false\r\n"), "{said}");
    let call = keeper.call();
    assert_eq!((call.end, call.status, call.bytes_out), (CallEnd::Held, 429, 0));
    assert_eq!(keeper.spent().tokens, 120);
    let models = keeper.ask("GET /v1/models HTTP/1.1\r\n\r\n");
    assert!(models.starts_with("HTTP/1.1 200 "), "to ask what there is spends nothing: {models}");
}

#[test]
fn a_call_that_waits_goes_on_when_more_is_allowed_and_goes_away_with_its_agent() {
    let mut keeper = keeper(sixty(), Allowance { tokens: Some(0), ..HUNDRED }, Duration::from_secs(60));
    let left = keeper.connect();
    (&left).write_all(CALL.as_bytes()).unwrap();
    let mut waiting = keeper.connect();
    waiting.write_all(CALL.as_bytes()).unwrap();
    waiting.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    assert!(waiting.read(&mut [0]).is_err(), "it waits");
    drop(left);
    waiting.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    keeper.allow(HUNDRED);
    let mut said = String::new();
    waiting.read_to_string(&mut said).unwrap();
    assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
    keeper.call();
    assert_eq!(keeper.spent().tokens, 60, "who left spent nothing");
}

#[test]
fn a_call_is_not_refused_while_a_person_is_asked_for_more() {
    let asked_for = Allowance { tokens: Some(0), is_asked_for: true, ..HUNDRED };
    let mut keeper = keeper(sixty(), asked_for, Duration::from_millis(100));
    let mut waiting = keeper.connect();
    waiting.write_all(CALL.as_bytes()).unwrap();
    waiting.set_read_timeout(Some(Duration::from_millis(900))).unwrap();
    assert!(waiting.read(&mut [0]).is_err(), "it waits for longer than a call does that nobody is asked for");
    waiting.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    keeper.allow(HUNDRED);
    let mut said = String::new();
    waiting.read_to_string(&mut said).unwrap();
    assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
    keeper.call();
}

#[test]
fn an_allowance_that_comes_right_behind_the_order_is_heard() {
    let mut keeper = keeper(sixty(), Allowance { tokens: Some(0), ..HUNDRED }, Duration::ZERO);
    keeper.allow(HUNDRED);
    assert!(keeper.ask(CALL).starts_with("HTTP/1.1 200 "));
    keeper.call();
}

#[test]
fn whoever_lowers_an_allowance_hears_how_far_the_calls_had_come_when_it_was_heeded() {
    let mut keeper = keeper(sixty(), HUNDRED, Duration::ZERO);
    keeper.ask(CALL);
    // Less than is used already.
    keeper.allow(Allowance { tokens: Some(10), number: 7, ..HUNDRED });
    keeper.call();
    let heeded = keeper.heeded();
    assert_eq!((heeded.heeds, heeded.tokens), (7, 60));
    assert!(is_refused(&keeper.ask(CALL)));
    keeper.call();
    assert_eq!(keeper.spent().heeds, 7, "every sum says which allowance holds");
}

#[test]
fn what_was_spent_outlives_a_gateway() {
    let mut keeper = keeper(sixty(), HUNDRED, Duration::ZERO);
    for _ in 0..2 {
        keeper.ask(CALL);
        keeper.call();
        keeper.replace();
    }
    assert!(is_refused(&keeper.ask(CALL)));
    keeper.call();
}

#[test]
fn dollars_are_counted_with_ones_own_prices_and_what_has_none_ends_them() {
    let dollars = |micros| Allowance { tokens: None, dollars: Some(Dollars(micros)), ..HUNDRED };
    // 50 and 10 tokens at 2 and 10 dollars a million.
    let mut usual = keeper(sixty(), dollars(200), Duration::ZERO);
    usual.ask(CALL);
    usual.call();
    assert_eq!(usual.spent().dollars, Dollars(200));
    assert!(is_refused(&usual.ask(CALL)));

    let mut own = keeper(sixty(), dollars(200), Duration::ZERO);
    let price = Price { input: Dollars(1_000_000), output: Dollars(1_000_000), ..Price::default() };
    own.order.model.as_mut().unwrap().prices.insert("claude-sonnet-5".to_owned(), price);
    own.replace();
    own.ask(CALL);
    own.call();
    assert_eq!(own.spent().dollars, Dollars(60));

    let unknown = upstream(|mut stream| {
        head(&mut stream);
        let body = "data: {\"choices\":[]}\n\n".repeat(20);
        let _ = write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n{body}");
    });
    let mut unknown = keeper(unknown, dollars(1_000_000), Duration::ZERO);
    unknown.ask("POST /chat/completions HTTP/1.1\r\n\r\n");
    assert_eq!(unknown.call().usage, None);
    let spent = unknown.spent();
    assert!(
        spent.unpriced[""].budgeted() == 110 && spent.tokens == 110,
        "what is not said is estimated: {spent:?}"
    );
    let said = unknown.ask(CALL);
    assert!(is_refused(&said) && said.contains("a model without a price"), "{said}");
}

#[test]
fn a_price_that_is_set_later_lets_a_held_session_go_on_and_counts_what_it_had_used() {
    let unknown = upstream(|mut stream| {
        head(&mut stream);
        let body = r#"{"id":"msg_1","model":"new-model","usage":{"input_tokens":50,"output_tokens":10}}"#;
        let length = body.len();
        let head = format!("content-type: application/json\r\ncontent-length: {length}");
        write!(stream, "HTTP/1.1 200 OK\r\n{head}\r\n\r\n{body}").unwrap();
    });
    let dollar = Allowance { tokens: None, dollars: Some(Dollars(1_000_000)), ..HUNDRED };
    let mut keeper = keeper(unknown, dollar.clone(), Duration::ZERO);
    assert!(keeper.ask(CALL).starts_with("HTTP/1.1 200 "));
    keeper.call();
    assert!(is_refused(&keeper.ask(CALL)), "nobody knows what was used");
    keeper.call();
    let price = Price { input: Dollars(1_000_000), output: Dollars(1_000_000), ..Price::default() };
    let prices = BTreeMap::from([("new-model".to_owned(), price)]);
    keeper.allow(Allowance { prices, ..dollar });
    let deadline = Instant::now() + Duration::from_secs(20);
    while !keeper.ask(CALL).starts_with("HTTP/1.1 200 ") {
        assert!(Instant::now() < deadline, "the gateway does not hear of the price");
        keeper.call();
    }
    keeper.call();
    assert_eq!(keeper.spent().dollars, Dollars(120), "both calls, at the price that was set");
}

#[test]
fn only_calls_under_way_go_beyond_the_end_with_nobody_watching() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let port = sixty();
    let counted = upstream(move |mut client| {
        CALLS.fetch_add(1, Ordering::SeqCst);
        let mut server = TcpStream::connect(("127.0.0.1", port)).unwrap();
        server.write_all(head(&mut client).as_bytes()).unwrap();
        let _ = std::io::copy(&mut server, &mut client);
    });
    let keeper = keeper(counted, Allowance { tokens: Some(600), ..HUNDRED }, Duration::ZERO);
    let agents: Vec<_> = (0..4)
        .map(|_| {
            let keeper = keeper.listener.local_addr().unwrap();
            thread::spawn(move || {
                for _ in 0..25 {
                    let mut client = TcpStream::connect(keeper).unwrap();
                    client.write_all(CALL.as_bytes()).unwrap();
                    let mut said = String::new();
                    client.read_to_string(&mut said).unwrap();
                }
            })
        })
        .collect();
    agents.into_iter().for_each(|agent| agent.join().unwrap());
    let calls = CALLS.load(Ordering::SeqCst);
    assert!(
        (10..=13).contains(&calls),
        "ten calls use it up, and three more were under way at most: {calls}"
    );
}
