//! What stays of an event when what was said is deleted: that something happened, when, for how long, and what it cost. A
//! session's events still fold to how it ended, and every reference to it still leads somewhere.

use crate::{
    ask::Ask,
    event::{Action, Event, ImageRecorded, Raw, Text},
    handoff::{Known, Wish},
    message::Summary,
    session::Begin,
};

/// The event without what people, agents or tools said in it. The same again for one that has nothing of it left.
pub fn erased(event: Event) -> Event {
    match event {
        Event::SessionCreated(mut created) => {
            match &mut created.begin {
                Begin::Fresh => {}
                Begin::Resume { interrupted, seed, .. } => {
                    *interrupted = None;
                    seed.clear();
                }
                Begin::Fork { seed, .. } | Begin::Reseed { seed, .. } => seed.clear(),
            }
            created.config.system_prompt = None;
            created.config.environment.values_mut().for_each(String::clear);
            Event::SessionCreated(created)
        }
        Event::SessionStopped(mut ended) => {
            ended.obituary.last = None;
            Event::SessionStopped(ended)
        }
        Event::SessionFailed(mut ended) => {
            ended.obituary.last = None;
            Event::SessionFailed(ended)
        }
        Event::SessionStalled(mut stalled) => {
            stalled.evidence.clear();
            Event::SessionStalled(stalled)
        }
        Event::TurnEnded(mut ended) => {
            ended.failure = None;
            Event::TurnEnded(ended)
        }
        Event::BackgroundChanged(mut changed) => {
            changed.tasks.iter_mut().for_each(String::clear);
            Event::BackgroundChanged(changed)
        }
        Event::AgentRetrying(mut retrying) => {
            retrying.why.clear();
            Event::AgentRetrying(retrying)
        }
        Event::ProviderAuthFailed(text) => Event::ProviderAuthFailed(unsaid(text)),
        Event::StepStarted(mut step) => {
            step.note.clear();
            Event::StepStarted(step)
        }
        Event::StepEnded(mut step) => {
            step.note.clear();
            Event::StepEnded(step)
        }
        Event::DoneReported(mut done) => {
            done.note.clear();
            Event::DoneReported(done)
        }
        Event::HandoffRequested(mut asked) => {
            asked.wish = Wish { to: asked.wish.to, ..Wish::default() };
            Event::HandoffRequested(asked)
        }
        Event::HandoffPacked(mut pack) => {
            pack.wish = Wish { to: pack.wish.to, ..Wish::default() };
            pack.known = Known::default();
            Event::HandoffPacked(pack)
        }
        Event::OutputAdded(mut output) => {
            output.value.clear();
            Event::OutputAdded(output)
        }
        Event::Asked(mut asked) => {
            match &mut asked.ask {
                Ask::Spawn(spawn) => spawn.task.clear(),
                Ask::Send { text, .. } | Ask::Search { text } => text.clear(),
                Ask::Assign { agents } => agents.clear(),
                Ask::Ticket { .. } | Ask::Show { .. } => {}
            }
            Event::Asked(asked)
        }
        Event::AgentThinking(text) => Event::AgentThinking(unsaid(text)),
        Event::AgentCompletion(text) => Event::AgentCompletion(unsaid(text)),
        Event::AgentStatus(text) => Event::AgentStatus(unsaid(text)),
        Event::AgentError(text) => Event::AgentError(unsaid(text)),
        Event::AgentToolCall(mut call) => {
            call.summary.clear();
            call.input.clear();
            Event::AgentToolCall(call)
        }
        Event::AgentToolResult(mut result) => {
            result.output.clear();
            Event::AgentToolResult(result)
        }
        Event::ImageRecorded(shown) => {
            Event::ImageRecorded(ImageRecorded { image: shown.image.erased(), ..shown })
        }
        Event::DeliveryMirrored(mut mirrored) => {
            mirrored.text.clear();
            mirrored.media_urls.clear();
            mirrored.to = None;
            Event::DeliveryMirrored(mirrored)
        }
        Event::AgentStderr(raw) => Event::AgentStderr(unread(raw)),
        Event::Opaque(raw) => Event::Opaque(unread(raw)),
        Event::Oversize(raw) => Event::Oversize(unread(raw)),
        Event::Partial(raw) => Event::Partial(unread(raw)),
        Event::MessageAccepted(mut accepted) => {
            accepted.message.text.clear();
            accepted.untold = Summary::default();
            Event::MessageAccepted(accepted)
        }
        Event::MessageUnheard(mut unheard) => {
            unheard.message.text.clear();
            Event::MessageUnheard(unheard)
        }
        Event::MessageEdited(mut edited) => {
            edited.text.clear();
            Event::MessageEdited(edited)
        }
        Event::ApprovalRequested(mut asked) => {
            asked.input.clear();
            asked.why.clear();
            asked.action = match asked.action {
                Action::Run { .. } => Action::Run { command: String::new() },
                Action::Write { .. } => Action::Write { paths: Vec::new() },
                Action::Read { .. } => Action::Read { paths: Vec::new() },
                Action::Fetch { .. } => Action::Fetch { url: String::new() },
                Action::Other => Action::Other,
            };
            Event::ApprovalRequested(asked)
        }
        Event::ApprovalAnswered(mut answered) => {
            answered.message.clear();
            Event::ApprovalAnswered(answered)
        }
        // Facts of Ostler's own, tokens, and what was denied: none of it is anybody's words. Exhaustive, so that a new kind
        // is thought about.
        kept @ (Event::HistoryRead(_)
        | Event::Unreadable(_)
        | Event::DaemonStarted(_)
        | Event::DaemonStopped(_)
        | Event::CampaignAdded(_)
        | Event::CampaignRemoved(_)
        | Event::ConversationOpened(_)
        | Event::Halted(_)
        | Event::HaltReleased(_)
        | Event::CampaignPolicyChanged(_)
        | Event::LostLeft(_)
        | Event::RestartRefused(_)
        | Event::CampaignRelinked(_)
        | Event::Drained(_)
        | Event::DrainEnded(_)
        | Event::AgentAdded(_)
        | Event::AgentChanged(_)
        | Event::AgentRemoved(_)
        | Event::ConversationChanged(_)
        | Event::ConversationClosed(_)
        | Event::ConversationReopened(_)
        | Event::SessionStarting(_)
        | Event::SessionSpawned(_)
        | Event::LoginLent(_)
        | Event::SessionStarted(_)
        | Event::SessionStopRequested(_)
        | Event::SessionPaused(_)
        | Event::SessionResumed(_)
        | Event::SessionHeld(_)
        | Event::SessionReleased(_)
        | Event::SessionRecovered(_)
        | Event::WatchdogFired(_)
        | Event::IntakeChanged(_)
        | Event::TapeLimitRaised(_)
        | Event::ProviderBound(_)
        | Event::ModelChanged(_)
        | Event::ContextReset(_)
        | Event::LeftoversEnded(_)
        | Event::TurnStarted(_)
        | Event::InterruptRequested(_)
        | Event::ContextCompacted(_)
        | Event::ContextMeasured(_)
        | Event::RateLimited(_)
        | Event::AskSettled(_)
        | Event::TicketAdded(_)
        | Event::TicketChanged(_)
        | Event::TicketMoved(_)
        | Event::TicketLinked(_)
        | Event::TicketOutputAdded(_)
        | Event::TicketCheckpointMade(_)
        | Event::TicketStep(_)
        | Event::UsageRecorded(_)
        | Event::BudgetWarned(_)
        | Event::BudgetExceeded(_)
        | Event::BudgetChanged(_)
        | Event::HelpersCharged(_)
        | Event::MessageSent(_)
        | Event::MessageDelivered(_)
        | Event::MessageSeen(_)
        | Event::MessageAnswered(_)
        | Event::MessageUnknown(_)
        | Event::MessageReturned(_)
        | Event::MessageDropped(_)
        | Event::MessageCancelled(_)
        | Event::MessageMoved(_)
        | Event::TapeDamaged(_)
        | Event::Tamper(_)
        | Event::Network(_)
        | Event::Denied(_)
        | Event::HiddenTracked(_)
        | Event::CommitsSeen(_)
        | Event::SnapshotTaken(_)
        | Event::Rewound(_)
        | Event::WorktreeMade(_)
        | Event::WorktreeRemoved(_)
        | Event::SessionArchived(_)
        | Event::SessionRestored(_)
        | Event::DeletionMarked(_)
        | Event::SessionDeleted(_)
        | Event::RetentionHeld(_)
        | Event::MissionCreated(_)
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
        | Event::MissionArchived(_)) => kept,
    }
}

fn unsaid(text: Text) -> Text {
    Text { text: String::new(), subagent: text.subagent }
}

fn unread(raw: Raw) -> Raw {
    Raw { text: String::new(), ..raw }
}
