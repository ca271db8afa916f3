//! Events in words: for each kind, who did what. Exhaustive, so a new kind does not compile until it has its words.

mod messages;
mod tickets;

use ostler_domain::{
    Event,
    denied::Denied,
    event::{Answer, BudgetReached, Raw, StopReason},
    gateway::Network,
    price::Dollars,
    session::{Ended, Hold, Restart, Sandbox},
    text::one_line,
};

use super::{activity::Told, mission, retention, row, tree};
use crate::{Tone, hold, words};

/// How much of a text that is not the agent's own answer is shown.
const SHORT: usize = 400;

/// How much of a line is shown that nobody understood; the tape has it whole.
const RAW: usize = 120;

/// Says an event on its own. Calls and results are joined before (`Teller`); here each stands alone.
pub fn tell(event: &Event) -> Told {
    match event {
        Event::DaemonStarted(started) => Told::new(
            "daemon",
            format!("{} started, pid {}, epoch {}", started.version, started.pid, started.epoch),
        ),
        Event::DaemonStopped(stopped) => {
            let left = words::plural(stopped.sessions_left_running, "session goes on", "sessions go on");
            Told::new("daemon", format!("stopped by {}; {left}", stopped.by.0))
        }
        Event::CampaignAdded(campaign) => {
            Told::new("added", format!("campaign {} at {}", campaign.name, campaign.root.path))
        }
        Event::CampaignRemoved(removed) => {
            Told::new("removed", format!("campaign {} by {}", removed.id.short(), removed.by.0))
        }
        Event::CampaignPolicyChanged(changed) => Told::new(
            "policy",
            format!(
                "campaign {}: {} by {}",
                changed.campaign.short(),
                changed.settings.join(" "),
                changed.by.0
            ),
        ),
        Event::CampaignRelinked(relinked) => Told::new(
            "relinked",
            format!("campaign {} is at {} by {}", relinked.campaign.short(), relinked.to.path, relinked.by.0),
        ),
        Event::Drained(drained) => {
            let why = if drained.why.is_empty() { String::new() } else { format!(": {}", drained.why) };
            Told::new("drained", format!("nothing new starts, by {}{why}", drained.by.0)).tone(Tone::Warn)
        }
        Event::DrainEnded(ended) => Told::new("drained", format!("no longer, by {}", ended.by.0)),
        Event::ConversationOpened(opened) => {
            let at = opened.forked_at.map(|at| format!(" at turn {}", at.turn)).unwrap_or_default();
            let origin = opened.forked_from.map(|from| format!(", a fork of {}{at}", from.short()));
            Told::new("opened", format!("conversation {}{}", opened.name, origin.unwrap_or_default()))
        }
        Event::AgentAdded(agent) => {
            Told::new("added", format!("agent {} ({})", agent.name, agent.profile.role))
        }
        Event::AgentChanged(changed) => {
            let settings = one_line(&changed.settings.join(" "), 200);
            Told::new("agent", format!("{}: {settings} by {}", changed.id.short(), changed.by.0))
        }
        Event::AgentRemoved(removed) => {
            Told::new("removed", format!("agent {} by {}", removed.id.short(), removed.by.0))
        }
        Event::ConversationChanged(changed) => {
            let settings = one_line(&changed.settings.join(" "), 200);
            Told::new("noted", format!("conversation {}: {settings} by {}", changed.id.short(), changed.by.0))
        }
        Event::ConversationClosed(closed) => Told::new(
            "closed",
            format!("conversation {} ({}) by {}", closed.id.short(), closed.why.as_str(), closed.by.0),
        ),
        Event::DeliveryMirrored(mirrored) => {
            let to = mirrored.to.as_deref().map(|to| format!(" to {}", one_line(to, 80))).unwrap_or_default();
            let said = one_line(&mirrored.text, 160);
            Told::new("mirrored", format!("conversation {}{to}: {said}", mirrored.conversation.short()))
        }
        Event::ConversationReopened(reopened) => {
            Told::new("reopened", format!("conversation {} by {}", reopened.id.short(), reopened.by.0))
        }
        Event::TicketAdded(_)
        | Event::TicketChanged(_)
        | Event::TicketMoved(_)
        | Event::TicketLinked(_)
        | Event::TicketOutputAdded(_)
        | Event::TicketCheckpointMade(_)
        | Event::TicketStep(_) => tickets::tell(event),
        Event::CommitsSeen(_)
        | Event::SnapshotTaken(_)
        | Event::Rewound(_)
        | Event::WorktreeMade(_)
        | Event::WorktreeRemoved(_) => tree::tell(event),
        Event::SessionArchived(_)
        | Event::SessionRestored(_)
        | Event::DeletionMarked(_)
        | Event::SessionDeleted(_)
        | Event::RetentionHeld(_) => retention::tell(event),
        Event::MissionCreated(_)
        | Event::MissionStarted(_)
        | Event::MissionPaused(_)
        | Event::MissionResumed(_)
        | Event::MissionHeld(_)
        | Event::MissionReleased(_)
        | Event::MissionBudgetWarned(_)
        | Event::MissionBudgetChanged(_)
        | Event::MissionStopRequested(_)
        | Event::MissionEnded(_)
        | Event::AssignmentsReady(_)
        | Event::AssignmentStarted(_)
        | Event::AssignmentMoved(_)
        | Event::AssignmentCheckStarted(_)
        | Event::AssignmentRetried(_)
        | Event::AssignmentEnded(_)
        | Event::AssignmentsReopened(_)
        | Event::AssignmentsAdded(_)
        | Event::AssignmentsRemoved(_)
        | Event::AssignmentNudged(_)
        | Event::AssignmentBegan(_)
        | Event::AssignmentUnstuck(_)
        | Event::CollisionForecast(_)
        | Event::MergeStarted(_)
        | Event::MergeChecked(_)
        | Event::MergeMoving(_)
        | Event::MergeEnded(_)
        | Event::MissionArchived(_) => mission::tell(event),
        Event::HistoryRead(read) => {
            let lines = words::plural(read.lines, "line", "lines");
            let unreadable = match read.unreadable {
                0 => String::new(),
                n => format!(", {} not understood", words::number(n)),
            };
            Told::new("imported", format!("{lines}{unreadable} of {}", read.file)).faint()
        }
        Event::Halted(halted) => {
            let what = if halted.freeze { "all agents frozen" } else { "all agents killed" };
            Told::new("halted", with_reason(format!("{what} by {}", halted.by.0), &halted.why))
                .tone(Tone::Bad)
        }
        Event::LostLeft(left) => {
            let count = words::plural(left.sessions.len() as u64, "lost session", "lost sessions");
            Told::new("left", format!("{count} as they are, by {}", left.by.0))
        }
        Event::RestartRefused(refused) => {
            let text = format!(
                "session {} cannot go on: {}",
                refused.session.short(),
                one_line(&refused.why, SHORT)
            );
            Told::new("refused", text).tone(Tone::Bad)
        }
        Event::HaltReleased(released) => Told::new("released", format!("the halt, by {}", released.by.0)),

        Event::SessionCreated(created) => {
            let sandbox = match created.sandbox {
                _ if created.imported.is_some() => "imported",
                Sandbox::On => "sandbox on",
                Sandbox::Off => "sandbox off",
            };
            let text = format!("session {} · {} · {sandbox}", created.name, created.config.provider);
            Told::new("created", text).faint()
        }
        Event::SessionStarting(starting) => {
            Told::new("starting", format!("attempt {}", starting.attempt)).faint()
        }
        Event::SessionSpawned(spawned) => Told::new("spawned", format!("pid {}", spawned.agent.pid)).faint(),
        Event::LoginLent(lent) => {
            let until = row::until_when(lent.until, words::now(), &words::zone());
            Told::new("login", format!("lent until {until}")).faint()
        }
        Event::SessionStarted(started) => {
            let model = started.model.as_deref().map(|model| format!(", model {model}")).unwrap_or_default();
            Told::new("ready", format!("the agent takes messages{model}")).faint()
        }
        Event::SessionStopRequested(stop) => Told::new("stop", format!("asked by {}", stop.by.0)).faint(),
        Event::SessionStopped(ended) => end(ended).tone(Tone::Strong),
        Event::SessionFailed(ended) => end(ended).tone(Tone::Bad),
        Event::SessionPaused(paused) => Told::new("paused", format!("by {}", paused.by.0)).tone(Tone::Warn),
        Event::SessionResumed(resumed) => Told::new("resumed", format!("by {}", resumed.by.0)),
        Event::SessionHeld(held) => Told::new("held", &held.reason).tone(Tone::Warn),
        Event::SessionReleased(released) => Told::new(
            "released",
            format!(
                "the hold for {} is over",
                match released.hold {
                    Hold::Budget => "the budget",
                    Hold::CampaignBudget => "the campaign's budget",
                    Hold::AgentBudget => "the agent's budget",
                    Hold::Halt => "the halt",
                    Hold::Disk => "the disk",
                }
            ),
        ),
        Event::SessionStalled(stalled) => {
            Told::new("stalled", format!("watchdog {}: {}", stalled.watchdog.as_str(), stalled.evidence))
                .tone(Tone::Warn)
        }
        Event::SessionRecovered(_) => Told::new("recovered", "it makes progress again"),
        Event::WatchdogFired(fired) if fired.watchdog.is_of_a_budget() => {
            Told::new("held", hold::stands_still(fired.watchdog)).tone(Tone::Warn)
        }
        Event::WatchdogFired(fired) => {
            let rung = format!("{:?}", fired.rung).to_lowercase();
            Told::new("watchdog", format!("{} took too long: {rung}", fired.watchdog.as_str()))
                .tone(Tone::Warn)
        }
        Event::IntakeChanged(intake) => Told::new("intake", &intake.intake).tone(Tone::Warn),
        Event::TapeLimitRaised(raised) => {
            Told::new("tape", format!("may have {} bytes, set by {}", raised.bytes, raised.by.0))
        }
        Event::LeftoversEnded(left) => {
            let names: Vec<_> =
                left.processes.iter().map(|process| format!("{} ({})", process.name, process.pid)).collect();
            Told::new("cleaned", format!("processes that outlived the agent: {}", names.join(", ")))
                .tone(Tone::Warn)
        }

        Event::TurnStarted(turn) => Told::new("turn", turn.turn.to_string()).faint(),
        Event::TurnEnded(turn) => match (turn.stop_reason, turn.failure()) {
            (_, Some(why)) => {
                Told::new("turn", format!("{} failed: {}", turn.turn, one_line(why, SHORT))).tone(Tone::Bad)
            }
            (StopReason::Completed | StopReason::Error, None) => {
                Told::new("turn", format!("{} ended", turn.turn)).faint()
            }
            (StopReason::Interrupted, None) => {
                Told::new("turn", format!("{} was interrupted", turn.turn)).tone(Tone::Warn)
            }
            (StopReason::ProcessEnded, None) => {
                Told::new("turn", format!("{} was cut short by the end of the agent", turn.turn))
                    .tone(Tone::Bad)
            }
        },
        Event::InterruptRequested(interrupt) => {
            Told::new("interrupt", format!("asked by {}", interrupt.by.0)).faint()
        }

        Event::ProviderBound(bound) => {
            Told::new("bound", format!("the provider keeps it as {}", one_line(&bound.provider_id, 80)))
                .faint()
        }
        Event::ModelChanged(changed) => {
            let when = if changed.at_next_session { " from the next session on" } else { "" };
            Told::new("model", format!("{}{when}, asked by {}", one_line(&changed.model, 80), changed.by.0))
        }
        Event::ContextReset(reset) => {
            Told::new("reset", format!("the agent lost its memory: {}", one_line(&reset.why, SHORT)))
                .tone(Tone::Warn)
        }
        Event::BackgroundChanged(changed) if changed.tasks.is_empty() => {
            Told::new("backgr.", "nothing runs in the background any more").faint()
        }
        Event::BackgroundChanged(changed) => {
            Told::new("backgr.", one_line(&changed.tasks.join(", "), SHORT)).faint()
        }
        Event::ContextCompacted(compacted) => {
            let by = if compacted.automatic { "by itself" } else { "as asked" };
            let size = match (compacted.before.map(words::count), compacted.after.map(words::count)) {
                (Some(before), Some(after)) => format!(" {before} → {after} tokens"),
                (Some(before), None) => format!(" of {before} tokens"),
                (None, Some(after)) => format!(" → {after} tokens"),
                (None, None) => String::new(),
            };
            Told::new("compact", format!("context{size}, {by}"))
        }
        Event::ContextMeasured(measured) => Told::new("context", words::context(measured)).faint(),
        Event::AgentRetrying(retrying) => {
            let most = if retrying.most > 0 { format!(" of {}", retrying.most) } else { String::new() };
            // Seen on the wire, where nobody counts.
            let tries = if retrying.attempt > 0 {
                format!("; try {}{most}", retrying.attempt)
            } else {
                String::new()
            };
            let text = format!("{}{tries}", one_line(&retrying.why, SHORT));
            Told::new("retry", text).tone(Tone::Warn)
        }
        Event::RateLimited(limited) => {
            // Who does not say until when may be followed by one who does: the agent, or the model's server.
            let until = limited
                .until
                .map(|until| format!("; until {}", row::until_when(until, words::now(), &words::zone())));
            let what = one_line(&limited.what, SHORT);
            Told::new("limit", format!("{what}{}", until.unwrap_or_default())).tone(Tone::Warn)
        }
        Event::ProviderAuthFailed(said) => {
            Told::whole("error", &format!("the model's server refused the agent: {}", said.text))
                .tone(Tone::Bad)
        }
        Event::StepStarted(step) => {
            Told::new("step", with_reason(one_line(&step.name, SHORT), &step.note)).tone(Tone::Accent)
        }
        Event::StepEnded(step) if step.success => {
            Told::new("step", with_reason(format!("{} ended", one_line(&step.name, SHORT)), &step.note))
                .tone(Tone::Good)
        }
        Event::StepEnded(step) => {
            Told::new("step", with_reason(format!("{} failed", one_line(&step.name, SHORT)), &step.note))
                .tone(Tone::Bad)
        }
        Event::HandoffRequested(requested) => {
            let to = requested.wish.to.words();
            let to = if to.is_empty() { "to a fresh session".to_owned() } else { format!("to {to}") };
            let text = with_reason(format!("{to}, asked by {}", requested.by.0), &requested.wish.note);
            Told::new("handoff", text).tone(Tone::Strong)
        }
        Event::OutputAdded(output) => {
            Told::new("output", format!("{}: {}", one_line(&output.name, 64), one_line(&output.value, 200)))
        }
        Event::Asked(asked) => Told::new("asked", asked.ask.words()),
        Event::AskSettled(settled) => match (&settled.refused, settled.session, settled.message) {
            (Some(why), ..) => Told::new("refused", one_line(why, 200)).tone(Tone::Warn),
            (None, Some(session), _) => Told::new("spawned", format!("session {}", session.short())),
            (None, None, Some(message)) => Told::new("sent", format!("message {}", message.short())),
            (None, None, None) => Told::new("asked", "done").faint(),
        },
        Event::HandoffPacked(pack) => {
            let known = &pack.known;
            let parts = [
                words::plural(known.files.len() as u64, "file", "files"),
                words::plural(known.tests.len() as u64, "test run", "test runs"),
                words::plural(known.last_turns.len() as u64, "turn", "turns"),
            ];
            Told::new("handed", format!("the work of session {}: {}", pack.from.short(), parts.join(", ")))
        }
        Event::DoneReported(done) => {
            Told::new("done", with_reason("the agent says that its work is done".to_owned(), &done.note))
                .tone(Tone::Good)
        }

        Event::AgentThinking(thought) => {
            Told::new("think", one_line(&thought.text, SHORT)).by(thought.subagent.as_ref()).faint()
        }
        Event::AgentToolCall(call) => {
            Told::new(tool(&call.tool), one_line(&call.summary, SHORT)).by(call.subagent.as_ref())
        }
        Event::AgentToolResult(result) => {
            let output = one_line(&result.output, SHORT);
            let tone = if result.success { Tone::Plain } else { Tone::Bad };
            Told::new("result", output).by(result.subagent.as_ref()).tone(tone)
        }
        Event::ImageRecorded(shown) => {
            let (mime, size) = (one_line(&shown.image.mime, 64), words::bytes(shown.image.bytes));
            let name = shown.image.sha256.get(..16).unwrap_or("deleted");
            Told::new("picture", format!("{mime}, {size}, {name}")).faint()
        }
        Event::AgentCompletion(said) => Told::said(&said.text).by(said.subagent.as_ref()),
        Event::AgentStatus(status) => Told::new("status", one_line(&status.text, SHORT)).faint(),
        Event::AgentError(error) => Told::whole("error", &error.text).tone(Tone::Bad),
        Event::AgentStderr(raw) => Told::new("stderr", one_line(&raw.text, SHORT)).faint(),
        Event::Opaque(raw) => Told::new("raw", raw_words(raw)).faint(),
        Event::Oversize(raw) => Told::new(
            "raw",
            format!("a line of {}, too long to read; tape {}", words::bytes(raw.bytes), raw.at),
        )
        .tone(Tone::Warn),
        Event::Partial(raw) => Told::new("raw", format!("a line without an end: {}", raw_words(raw))).faint(),

        Event::UsageRecorded(recorded) if recorded.cut => {
            Told::new("usage", "the answer was cut before its usage came").faint()
        }
        Event::UsageRecorded(recorded) => {
            let usage = &recorded.usage;
            let text = format!(
                "input {} · cache read {} · cache write {} · output {}",
                words::count(usage.input),
                words::count(usage.cache_read),
                words::count(usage.cache_write),
                words::count(usage.output)
            );
            Told::new("usage", text).faint()
        }
        Event::BudgetWarned(budget) => budget_words("warning", budget).tone(Tone::Warn),
        Event::BudgetExceeded(budget) => budget_words("used up", budget).tone(Tone::Bad),
        Event::BudgetChanged(changed) => {
            let budget =
                changed.budget.map_or_else(|| "none".to_owned(), |budget| budget.amount().to_string());
            Told::new("budget", format!("{budget}, set by {}", changed.by.0))
        }
        Event::HelpersCharged(lent) => {
            let used = format!("its helpers have used {}", charge_words(lent.tokens, lent.dollars));
            let held = charge_words(lent.held_tokens, lent.held_dollars);
            Told::new("budget", format!("{used}, and hold {held} of what is left")).faint()
        }

        Event::MessageAccepted(_)
        | Event::MessageSent(_)
        | Event::MessageDelivered(_)
        | Event::MessageSeen(_)
        | Event::MessageAnswered(_)
        | Event::MessageUnknown(_)
        | Event::MessageReturned(_)
        | Event::MessageDropped(_)
        | Event::MessageUnheard(_)
        | Event::MessageCancelled(_)
        | Event::MessageEdited(_)
        | Event::MessageMoved(_) => messages::tell(event),

        Event::ApprovalRequested(asked) => Told::new("asks", one_line(&asked.asks(), SHORT))
            .tone(Tone::Warn)
            .right(format!("apr {}", asked.id.short())),
        Event::ApprovalAnswered(answered) => {
            let (verb, tone) = match answered.answer {
                Answer::Allowed => ("allowed", Tone::Good),
                Answer::Denied => ("denied", Tone::Bad),
                Answer::Expired => ("expired", Tone::Faint),
            };
            let rules: Vec<String> = answered.rules.iter().map(ToString::to_string).collect();
            let text = match rules.is_empty() {
                true => with_reason(format!("by {}", answered.by.0), &answered.message),
                false => format!("by {}", rules.join("; ")),
            };
            Told::new(verb, text).tone(tone).right(format!("apr {}", answered.id.short()))
        }

        Event::Tamper(tamper) => Told::new(
            "tamper",
            format!("files that make your own programs run code were changed: {}", tamper.names.join(", ")),
        )
        .tone(Tone::Bad),
        Event::HiddenTracked(tracked) => Told::new(
            "warning",
            format!(
                "hidden files that git tracks, so that agents can read them in its history: {}",
                one_line(&tracked.names.join(", "), SHORT)
            ),
        )
        .tone(Tone::Warn),
        Event::Network(network) => network_told(network),
        Event::Unreadable(unreadable) => {
            Told::new("damage", format!("this event cannot be read: {}", unreadable.why)).tone(Tone::Bad)
        }
        Event::Denied(denied) => denied_told(denied),
        Event::TapeDamaged(damage) => {
            Told::new("damage", format!("the tape cannot be read from {} to {}", damage.from, damage.to))
                .tone(Tone::Bad)
        }
    }
}

/// A tool's name where verbs stand.
pub(crate) fn tool(name: &str) -> String {
    one_line(name, 24)
}

fn network_told(network: &Network) -> Told {
    if let Some(denied) = Denied::of_network(network) {
        return denied_told(&denied);
    }
    let whom = one_line(&format!("{}:{}", network.host, network.port), SHORT);
    if network.failure.is_empty() {
        let (to, from) = (words::bytes(network.bytes_out), words::bytes(network.bytes_in));
        Told::new("network", format!("{whom}: {to} sent, {from} received")).faint()
    } else {
        Told::new("network", one_line(&format!("{whom}: {}", network.failure), 2 * SHORT)).faint()
    }
}

fn denied_told(denied: &Denied) -> Told {
    let grant = denied.grant.as_ref().map(|grant| format!("; to allow it: {grant}"));
    let what = format!("{} {}", denied.kind.as_str(), one_line(&denied.target, SHORT));
    let text = format!("{what} (rule: {}){}", denied.rule, grant.unwrap_or_default());
    Told::new("denied", one_line(&text, 2 * SHORT)).tone(Tone::Bad)
}

fn end(ended: &Ended) -> Told {
    let follows = match &ended.restart {
        Some(Restart::At(_)) => " A new session is to go on with it.".to_owned(),
        Some(Restart::Quarantined { short_lives }) => {
            format!(" Quarantined after {short_lives} short lives.")
        }
        None => String::new(),
    };
    Told::new(ended.outcome.as_str(), format!("{}{follows}", ended.obituary.sentence))
}

/// `12k tokens ($0.30)`.
fn charge_words(tokens: u64, dollars: Dollars) -> String {
    format!("{} tokens ({dollars})", words::count(tokens))
}

fn budget_words(what: &str, reached: &BudgetReached) -> Told {
    let whose = match (reached.agent, reached.campaign) {
        (Some(_), _) => "agent's, ",
        (None, Some(_)) => "campaign's, ",
        (None, None) => "",
    };
    Told::new("budget", format!("{whose}{what}: {}", reached.reason()))
}

fn with_reason(text: String, reason: &str) -> String {
    if reason.is_empty() { text } else { format!("{text}: {}", one_line(reason, SHORT)) }
}

fn raw_words(raw: &Raw) -> String {
    one_line(&raw.text, RAW)
}
