//! From events to derived rows, all but the sessions' own: one function for the commit and for the rebuild, so
//! that both give the same.

use ostler_domain::{Event, Kind, Recorded};
use rusqlite::Connection;

use crate::{
    agent, approval, campaign, conversation, drain, halt, history, image, lost, message, mirrored, mission,
    refused, retention, snapshot, ticket, usage, worktree,
};

/// What a session's events take from its first one.
pub(crate) struct Origin<'a> {
    pub(crate) num: i64,
    pub(crate) campaign: &'a str,
    pub(crate) provider: &'a str,
}

/// Says whether events of a kind have rows here. Exhaustive, so that a new kind is thought about.
pub(crate) const fn derives(kind: Kind) -> bool {
    match kind {
        Kind::CampaignAdded
        | Kind::CampaignRemoved
        | Kind::CampaignPolicyChanged
        | Kind::CampaignRelinked
        | Kind::Drained
        | Kind::DrainEnded
        | Kind::AgentAdded
        | Kind::AgentChanged
        | Kind::AgentRemoved
        | Kind::ConversationOpened
        | Kind::ConversationChanged
        | Kind::ConversationClosed
        | Kind::ConversationReopened
        | Kind::CommitsSeen
        | Kind::SnapshotTaken
        | Kind::WorktreeMade
        | Kind::WorktreeRemoved
        | Kind::SessionArchived
        | Kind::SessionRestored
        | Kind::DeletionMarked
        | Kind::SessionDeleted
        | Kind::RetentionHeld
        | Kind::Halted
        | Kind::HaltReleased
        | Kind::TicketAdded
        | Kind::TicketChanged
        | Kind::TicketMoved
        | Kind::TicketLinked
        | Kind::TicketOutputAdded
        | Kind::TicketCheckpointMade
        | Kind::TicketStep
        | Kind::StepStarted
        | Kind::StepEnded
        | Kind::OutputAdded
        | Kind::LostLeft
        | Kind::RestartRefused
        | Kind::SessionCreated
        | Kind::SessionStopped
        | Kind::SessionFailed
        | Kind::SessionPaused
        | Kind::SessionResumed
        | Kind::UsageRecorded
        | Kind::MessageAccepted
        | Kind::MessageSent
        | Kind::MessageDelivered
        | Kind::MessageSeen
        | Kind::MessageAnswered
        | Kind::MessageUnknown
        | Kind::MessageReturned
        | Kind::MessageDropped
        | Kind::MessageCancelled
        | Kind::MessageUnheard
        | Kind::MessageEdited
        | Kind::MessageMoved
        | Kind::ApprovalRequested
        | Kind::ApprovalAnswered
        | Kind::ImageRecorded
        | Kind::DeliveryMirrored
        | Kind::MissionCreated
        | Kind::MissionStarted
        | Kind::MissionPaused
        | Kind::MissionResumed
        | Kind::MissionHeld
        | Kind::MissionReleased
        | Kind::MissionBudgetWarned
        | Kind::MissionBudgetChanged
        | Kind::MissionStopRequested
        | Kind::MissionEnded
        | Kind::AssignmentsReady
        | Kind::AssignmentStarted
        | Kind::AssignmentMoved
        | Kind::AssignmentCheckStarted
        | Kind::AssignmentRetried
        | Kind::AssignmentEnded
        | Kind::AssignmentsReopened
        | Kind::AssignmentsAdded
        | Kind::AssignmentsRemoved
        | Kind::AssignmentNudged
        | Kind::AssignmentBegan
        | Kind::AssignmentUnstuck
        | Kind::CollisionForecast
        | Kind::MergeStarted
        | Kind::MergeChecked
        | Kind::MergeMoving
        | Kind::MergeEnded
        | Kind::MissionArchived
        | Kind::HistoryRead => true,
        Kind::DaemonStarted
        | Kind::DaemonStopped
        | Kind::SessionStarting
        | Kind::SessionSpawned
        | Kind::LoginLent
        | Kind::SessionStarted
        | Kind::SessionStopRequested
        | Kind::SessionHeld
        | Kind::SessionReleased
        | Kind::SessionStalled
        | Kind::SessionRecovered
        | Kind::WatchdogFired
        | Kind::IntakeChanged
        | Kind::TapeLimitRaised
        | Kind::LeftoversEnded
        | Kind::TurnStarted
        | Kind::TurnEnded
        | Kind::InterruptRequested
        | Kind::ProviderBound
        | Kind::ModelChanged
        | Kind::ContextReset
        | Kind::BackgroundChanged
        | Kind::ContextCompacted
        | Kind::ContextMeasured
        | Kind::AgentRetrying
        | Kind::RateLimited
        | Kind::ProviderAuthFailed
        | Kind::AgentThinking
        | Kind::AgentToolCall
        | Kind::AgentToolResult
        | Kind::AgentCompletion
        | Kind::AgentStatus
        | Kind::AgentError
        | Kind::AgentStderr
        | Kind::Opaque
        | Kind::Oversize
        | Kind::Partial
        | Kind::BudgetWarned
        | Kind::BudgetExceeded
        | Kind::BudgetChanged
        | Kind::HelpersCharged
        | Kind::TapeDamaged
        | Kind::Tamper
        | Kind::Network
        | Kind::DoneReported
        | Kind::HandoffRequested
        | Kind::HandoffPacked
        | Kind::Asked
        | Kind::AskSettled
        | Kind::Denied
        | Kind::HiddenTracked
        | Kind::Rewound
        | Kind::Unreadable => false,
    }
}

/// Brings the derived rows up to an event. Events of one session must come with its origin.
pub(crate) fn derive(
    connection: &Connection,
    recorded: &Recorded,
    origin: Option<&Origin<'_>>,
) -> rusqlite::Result<()> {
    if !derives(recorded.event.kind()) {
        return Ok(());
    }
    let (seq, at) = (recorded.seq, recorded.time);
    if let Some(mission) = recorded.event.mission() {
        return mission::take_in(connection, seq, at, mission, &recorded.event);
    }
    let place = retention::Place { seq, at };
    match (&recorded.event, origin) {
        (Event::CampaignAdded(campaign), _) => campaign::add(connection, seq, campaign),
        (Event::CampaignRemoved(removed), _) => campaign::remove(connection, removed.id, at),
        (Event::CampaignPolicyChanged(changed), _) => {
            campaign::set_policy(connection, changed.campaign, &changed.policy)
        }
        (Event::CampaignRelinked(relinked), _) => {
            campaign::relink(connection, relinked.campaign, &relinked.to)
        }
        (Event::AgentAdded(agent), _) => agent::add(connection, seq, agent),
        (Event::AgentChanged(changed), _) => agent::change(connection, changed.id, &changed.profile),
        (Event::AgentRemoved(removed), _) => agent::remove(connection, removed.id, at),
        (Event::ConversationOpened(opened), _) => conversation::open(connection, seq, at, opened),
        (Event::ConversationChanged(changed), _) => {
            conversation::change(connection, changed.id, &changed.notes)
        }
        (Event::ConversationClosed(closed), _) => {
            message::cancel_with_conversation(connection, at, closed.id)?;
            conversation::close(connection, closed.id, at, closed.why)
        }
        (Event::ConversationReopened(reopened), _) => conversation::reopen(connection, reopened.id),
        (Event::TicketAdded(added), _) => ticket::add(connection, seq, at, added),
        (Event::TicketChanged(changed), _) => ticket::change(connection, changed.id, &changed.about),
        (Event::TicketMoved(moved), _) => ticket::move_on(connection, at, moved),
        (Event::TicketLinked(linked), _) => ticket::link(connection, linked.id, &linked.links),
        (Event::TicketOutputAdded(added), _) => ticket::add_output(connection, seq, added),
        (Event::TicketCheckpointMade(made), _) => ticket::make_checkpoint(connection, seq, at, made),
        (Event::TicketStep(step), _) => {
            let Some(ticket) = ticket::known(connection, step.id)? else { return Ok(()) };
            ticket::step(connection, seq, at, &ticket::Marked::by_person(&ticket, step))
        }
        (Event::StepStarted(step), Some(origin)) => {
            let Some(ticket) = ticket::of_session(connection, origin.num)? else { return Ok(()) };
            ticket::step(connection, seq, at, &ticket::Marked::started(&ticket, origin.num, step))
        }
        (Event::StepEnded(step), Some(origin)) => {
            let Some(ticket) = ticket::of_session(connection, origin.num)? else { return Ok(()) };
            ticket::step(connection, seq, at, &ticket::Marked::ended(&ticket, origin.num, step))
        }
        (Event::OutputAdded(added), Some(origin)) => {
            ticket::add_output_of_session(connection, seq, origin.num, added)
        }
        (Event::SnapshotTaken(taken), _) => snapshot::add(connection, seq, at, taken),
        (Event::CommitsSeen(seen), _) => snapshot::see(connection, seq, seen),
        (Event::WorktreeMade(made), _) => worktree::make(connection, at, made),
        (Event::WorktreeRemoved(removed), _) => worktree::remove(connection, at, removed),
        (Event::SessionArchived(archived), _) => retention::archived(connection, place, archived),
        (Event::SessionRestored(restored), _) => retention::restored(connection, place, restored),
        (Event::DeletionMarked(marked), _) => retention::marked(connection, place, marked),
        (Event::SessionDeleted(deleted), _) => retention::deleted(connection, place, deleted),
        (Event::RetentionHeld(held), _) => retention::held(connection, place, held),
        (Event::Drained(drained), _) => drain::set(connection, at, drained),
        (Event::DrainEnded(_), _) => drain::end(connection),
        (Event::Halted(halted), _) => halt::set(connection, at, halted),
        (Event::HaltReleased(_), _) => halt::release(connection),
        // The other source had told of the call.
        (Event::UsageRecorded(recorded), _)
            if recorded.usage.is_zero() && (recorded.said.is_some() || recorded.cut) =>
        {
            Ok(())
        }
        (Event::UsageRecorded(recorded), Some(origin)) => {
            history::call(connection, recorded, origin)?;
            usage::add(connection, seq, at, recorded, origin)
        }
        (Event::ImageRecorded(shown), Some(origin)) => image::add(connection, seq, origin.num, shown),
        (Event::DeliveryMirrored(mirrored), _) => mirrored::add(connection, seq, mirrored),
        (Event::HistoryRead(read), Some(origin)) => history::read(connection, read, origin.num),
        (Event::MessageAccepted(accepted), Some(origin)) => {
            conversation::touch(connection, accepted.conversation, at)?;
            message::accept(connection, seq, at, accepted, origin.num)
        }
        (Event::MessageSent(sent), _) => message::sent(connection, at, sent.id),
        (Event::MessageDelivered(mark), _) => message::delivered(connection, at, mark),
        (Event::MessageSeen(mark), _) => message::seen(connection, at, mark),
        (Event::MessageAnswered(mark), _) => message::answered(connection, at, mark),
        (Event::MessageUnknown(unknown), _) => message::unknown(connection, unknown),
        (Event::MessageReturned(returned), _) => message::returned(connection, returned),
        (Event::MessageDropped(dropped), _) => message::dropped(connection, at, dropped),
        (Event::MessageCancelled(cancelled), _) => {
            message::cancelled(connection, at, cancelled.id, &cancelled.why)
        }
        (Event::MessageUnheard(unheard), _) => message::unheard(connection, seq, at, unheard),
        (Event::MessageEdited(edited), _) => message::edited(connection, seq, edited),
        (Event::MessageMoved(moved), _) => message::moved(connection, at, moved),
        (Event::ApprovalRequested(asked), Some(origin)) => {
            approval::ask(connection, seq, at, asked, origin.num)
        }
        (Event::ApprovalAnswered(answered), _) => approval::answer(connection, at, answered),
        (Event::SessionPaused(_), Some(origin)) => approval::pause(connection, origin.num),
        (Event::SessionResumed(resumed), _) => approval::resume(connection, resumed),
        (Event::SessionCreated(created), _) => {
            conversation::touch(connection, created.conversation, at)?;
            worktree::take(connection, seq, created)?;
            refused::gone_on(connection, created.continues)?;
            lost::gone_on(connection, created.continues)
        }
        (Event::LostLeft(left), _) => {
            refused::leave(connection, &left.sessions)?;
            lost::leave(connection, &left.sessions)
        }
        (Event::RestartRefused(refused), _) => refused::add(connection, at, refused),
        (Event::SessionStopped(ended) | Event::SessionFailed(ended), Some(origin)) => {
            lost::add(connection, origin.num, ended.machine_restarted)?;
            approval::expire(connection, at, origin.num)
        }
        _ => Ok(()),
    }
}
