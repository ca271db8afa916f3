//! Lists the sessions that have not ended, then follows everything that happens.
//!
//! Run it beside a daemon: `cargo run -p ostler-client --example watch`.
#![allow(clippy::print_stdout)]

use std::error::Error;

use ostler_client::{
    Client, Watched,
    query::{EventFilter, Page, Scope, SessionFilter},
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::connect(&ostler_client::home()?).await?;

    let not_ended = SessionFilter { scope: Scope::NotEnded, ..SessionFilter::default() };
    let mut page = Page::of(0, None);
    loop {
        let sessions = client.sessions(&not_ended, page).await?;
        for session in sessions.rows {
            println!(
                "{} {:12} {:8} {}",
                session.id.short(),
                session.name,
                session.status.as_str(),
                session.evidence
            );
        }
        match sessions.next_cursor {
            Some(cursor) => page = Page::of(0, Some(cursor)),
            None => break,
        }
    }

    let mut watch = client.watch(EventFilter::default(), None).await?;
    while let Some(item) = watch.next().await {
        match item? {
            Watched::Event(event) => {
                let session = event.session.map(|session| session.short()).unwrap_or_default();
                println!("{} {session:5} {} {}", event.seq, event.event.kind(), event.event.body());
            }
            Watched::Unknown(event) => println!("{} {} {}", event.seq, event.kind, event.body),
            Watched::Reconnected => println!("the daemon is back; nothing was missed"),
        }
    }
    Ok(())
}
