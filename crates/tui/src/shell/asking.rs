//! What is asked of the daemon: how things stand, and what somebody wants done.

use std::time::Duration;

use ostler_client::{
    Client, Error, GetUsage, ResumeSession, Session, Taken,
    query::{Page, Scope, SessionFilter},
    reply::NodeStatus,
};
use ostler_domain::{
    MissionId, Time, budget::Period, handoff::Wish, limits::PAGE_MOST, mission, price::Prices,
};
use ostler_screen::{
    Line, Tone, approval,
    cost::{self, By},
    row,
    sessions::CampaignNames,
    words,
};

use crate::{
    message::{Drawn, Effect, Message},
    state::Overview,
};

const DAY: Duration = Duration::from_secs(24 * 3_600);
/// Days that are summed up one by one.
const DAYS: u32 = 7;
/// Missions that are listed, the newest first.
const MISSIONS: u32 = 50;

/// How things stand now.
pub(super) async fn overview(client: &Client, with_ended: bool) -> Result<Overview, Error> {
    let now = words::now();
    let scope = if with_ended { Scope::All } else { Scope::Current { failed_since: now.minus(DAY) } };
    let filter = SessionFilter { scope, ..SessionFilter::default() };
    let live = SessionFilter { scope: Scope::NotEnded, ..SessionFilter::default() };
    let (page, all) = (Page::of(PAGE_MOST, None), SessionFilter::default());
    let midnight = Period::Day.start(now);
    // All at once: each of them alone would be a way there and back.
    let (sessions, live, any, names, approvals, today, status) = tokio::join!(
        client.sessions(&filter, page),
        client.sessions(&live, page),
        client.sessions(&all, Page::of(1, None)),
        client.campaign_names(page),
        client.approvals(true, page),
        client.today(midnight),
        client.status(),
    );
    let sessions = sessions?;
    let mut rows = sessions.rows;
    let known: std::collections::HashSet<_> = rows.iter().map(|session| session.id).collect();
    // Who may need somebody is there, however old.
    rows.extend(live?.rows.into_iter().filter(|session| !known.contains(&session.id)));
    rows.sort_by(row::in_order);
    let mut approvals = approvals?.rows;
    approvals.sort_by_key(|approval| approval.asked);
    let names = names?.rows.into_iter().map(|(id, name)| (id, name.to_string()));
    Ok(Overview {
        sessions: rows,
        is_cut: sessions.next_cursor.is_some(),
        has_any: !any?.rows.is_empty(),
        campaigns: CampaignNames(names.collect()),
        approvals,
        // A daemon of another version may not know all of it.
        today: today.ok(),
        stands: status.ok().map(|status| stands(&status)).unwrap_or_default(),
    })
}

/// Why everything stands still, or nothing new starts.
fn stands(status: &NodeStatus) -> Vec<String> {
    let halt = status.halt.as_ref().map(|halt| {
        let word = if halt.freeze { "frozen" } else { "halted" };
        format!("{word} by {}: ostler halt --release", halt.by.0)
    });
    let drain =
        status.drain.as_ref().map(|drain| format!("{}: ostler node drain --end", words::drained(drain)));
    let disk = status.disk.filter(|disk| disk.is_short()).map(|disk| {
        format!("disk nearly full, {} free: nothing new starts (ostler du)", words::bytes(disk.free))
    });
    [halt, disk, drain].into_iter().flatten().collect()
}

/// Asks what an effect wants, and says what came of it. None where nothing is said.
pub(super) async fn ask(client: &Client, prices: &Prices, effect: Effect) -> Option<Message> {
    let written = effect.written();
    let outcome = match effect {
        Effect::Answer { answer, campaign } => {
            let allow = answer.allow;
            client.answer_approval(answer).await.map(|given| {
                let (tone, word) = if allow { (Tone::Good, "allowed") } else { (Tone::Bad, "denied") };
                let said = Line::toned(tone, word).plain(format!("  {}", given.approval.asks));
                let rules = approval::rules(&given, &campaign).into_iter();
                let about = approval::about_rules(&given, &campaign);
                Message::Done(std::iter::once(said).chain(rules).chain(about).collect())
            })
        }
        Effect::Send(message) => client.send_message(message).await.map(|taken| match taken {
            Taken::Sent(sent) => {
                let line = Line::of(format!("to {}: {}", sent.session.name, sent.receipt.as_str()));
                let woke = if sent.woke { "; a new session goes on with it" } else { "" };
                Message::Went(sent.session.id, vec![line.plain(woke)])
            }
            Taken::Reset(_) => {
                Message::Done(vec![Line::of("the conversation begins anew with your next message")])
            }
        }),
        Effect::Create(wanted) => {
            client.create_session(*wanted).await.map(|session| went("started", &session))
        }
        Effect::Stop(id) => {
            client.stop_session(&id.to_string(), false).await.map(|session| done("ends", &session))
        }
        Effect::Pause(id) => {
            client.pause_session(&id.to_string()).await.map(|session| done("paused", &session))
        }
        Effect::Resume(id) => {
            let wanted = ResumeSession { who: id.to_string(), ..ResumeSession::default() };
            client.resume_session(wanted).await.map(|session| done("goes on", &session))
        }
        Effect::HandOff { who, note } => {
            let wish = Wish { note, ..Wish::default() };
            client
                .hand_off(&who.to_string(), "", wish)
                .await
                .map(|session| went("goes on with the work", &session))
        }
        Effect::AskCost(by) => sums(client, prices, by).await,
        Effect::AskMissions => {
            let filter = mission::Filter { over_too: true, ..mission::Filter::default() };
            client
                .missions(&filter, Page::of(MISSIONS, None))
                .await
                .map(|listed| Message::Missions(listed.rows))
        }
        Effect::AskMission(id) => drawn(client, id).await,
        Effect::Refresh | Effect::Follow(_) | Effect::Attach(_) | Effect::Ring(_) | Effect::Quit => {
            return None;
        }
    };
    Some(outcome.unwrap_or_else(|error| Message::Refused(Box::new(error.to_refusal()), written)))
}

fn line(word: &str, session: &Session) -> Line {
    Line::new()
        .strong(session.name.as_str())
        .plain(format!("  {word}"))
        .faint(format!("   {}", session.id.short()))
}

fn done(word: &str, session: &Session) -> Message {
    Message::Done(vec![line(word, session)])
}

fn went(word: &str, session: &Session) -> Message {
    Message::Went(session.id, vec![line(word, session)])
}

async fn sums(client: &Client, prices: &Prices, by: By) -> Result<Message, Error> {
    let midnight = Period::Day.start(words::now());
    let days = |from: Time, _| from.minus(DAY);
    let since = if by == By::Day { (1..DAYS).fold(midnight, days) } else { midnight };
    let question = GetUsage { since: Some(since), ..GetUsage::default() };
    let sums = cost::sums(client, &question, by, prices, &[]).await?;
    Ok(Message::Cost(by, Box::new(sums)))
}

async fn drawn(client: &Client, id: MissionId) -> Result<Message, Error> {
    let who = id.to_string();
    let filter = SessionFilter { missions: vec![id], ..SessionFilter::default() };
    let (state, whole, sessions) = tokio::join!(
        client.mission_state(&who),
        client.mission(&who),
        client.sessions(&filter, Page::of(PAGE_MOST, None)),
    );
    let (state, _) = state?;
    Ok(Message::Mission(Box::new(Drawn { state, sessions: sessions?.rows, whole: whole? })))
}
