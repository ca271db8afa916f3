//! Turns: how one begins, how it ends, and the limits that come between.

use ostler_domain::{MessageId, Time, event::StopReason, session::Report};

use super::{
    Parting, State, report,
    said::{RateLimitInfo, TurnResult},
    told,
};
use crate::{Heard, Say, foreign};

impl State {
    /// The limits of a subscription.
    pub(super) fn limited(&mut self, info: &RateLimitInfo, heard: &mut Vec<Heard>) {
        let what = format!("{} limit", info.limit.replace('_', " "));
        #[expect(clippy::cast_possible_truncation, reason = "seconds since 1970")]
        let until = info.resets_at.map(|seconds| Time::from_micros((seconds * 1e6) as i64));
        match (info.status.as_str(), info.utilization) {
            ("rejected", _) => {
                if let Some(turn) = &mut self.turn {
                    turn.is_limited = until.is_some();
                }
                report(heard, Report::RateLimited { what, until });
            }
            ("allowed_warning", Some(used)) => {
                report(heard, Report::Status(format!("{what}: {:.0} % used", used * 100.0)));
            }
            _ => {}
        }
    }

    /// A turn begins, or a prompt is folded into the one that is open.
    pub(super) fn begin_turn(&mut self, uuids: &[String], heard: &mut Vec<Heard>) {
        let is_new = self.turn.is_none();
        let turn = self.turn.get_or_insert_default();
        let is_named = |id: &&MessageId| uuids.contains(&told::message_uuid(**id)) && !turn.seen.contains(id);
        let messages: Vec<MessageId> = self.prompts.iter().filter(is_named).copied().collect();
        turn.seen.extend(&messages);
        if is_new || !messages.is_empty() {
            report(heard, Report::TurnStarted { messages });
        }
        if std::mem::take(&mut self.awaits_report) {
            self.report_background(heard);
        }
    }

    pub(super) fn end_turn(&mut self, result: TurnResult, heard: &mut Vec<Heard>) {
        if !self.is_ready && self.turn.is_none() && result.is_error {
            return self.never_began(&result, heard);
        }
        let named =
            result.user_message_uuids.clone().or_else(|| Some(vec![result.user_message_uuid.clone()?]));
        let names_nothing = named.is_none() && !self.names_prompts && !result.is_of_its_own_turn();
        let was_aborted = result.was_aborted();
        let named = named.unwrap_or_else(|| self.unnamed_prompts(&result));
        self.begin_turn(&named, heard);
        for call in self.meter.settle(&result, self.opened.is_resumed) {
            report(heard, Report::Usage(call));
        }
        heard.extend(self.meter.context().map(|context| Heard::Report(Report::Context(context))));
        let turn = self.turn.take().unwrap_or_default();
        self.prompts.retain(|id| !turn.seen.contains(id));
        let text = result.result.unwrap_or_default();
        let stop_reason = match (result.is_error, was_aborted) {
            (false, _) => StopReason::Completed,
            (true, true) => StopReason::Interrupted,
            (true, false) => StopReason::Error,
        };
        match stop_reason {
            StopReason::Completed if !turn.has_spoken && !text.is_empty() => {
                report(heard, Report::Completion(text.into()));
            }
            StopReason::Error => {
                let said = if text.is_empty() { result.errors.join("; ") } else { text };
                let said = if said.is_empty() { result.subtype } else { said };
                let status = result.api_error_status.map(|status| format!("{status}: ")).unwrap_or_default();
                report(heard, Report::Error(foreign::error_words(&format!("{status}{said}"))));
            }
            StopReason::Completed | StopReason::Interrupted | StopReason::ProcessEnded => {}
        }
        if names_nothing && stop_reason == StopReason::Interrupted && !self.prompts.is_empty() {
            // It may have been told of them, or go on with them, and says neither.
            let messages = std::mem::take(&mut self.prompts);
            report(heard, Report::Unclear { messages });
        }
        report(heard, Report::TurnEnded { stop_reason });
        if self.parting == Parting::Interrupted {
            self.parting = Parting::Told;
            heard.extend(Say::line("part", &told::part(told::PARTING)).map(Heard::Say));
        }
    }

    /// What a result answers that names nothing. In older versions no line names a prompt: what was delivered before is
    /// answered; of a turn that was interrupted, only what began it. Newer ones have said of each that is answered that it
    /// began.
    fn unnamed_prompts(&self, result: &TurnResult) -> Vec<String> {
        if self.names_prompts || result.is_of_its_own_turn() {
            return Vec::new();
        }
        let is_interrupted = result.is_error && result.was_aborted();
        let answered = if is_interrupted { 1 } else { self.prompts.len() };
        self.prompts.iter().take(answered).map(|id| told::message_uuid(*id)).collect()
    }

    /// A prompt was taken out of its queue before it began.
    pub(super) fn let_go_of(&mut self, uuid: &str, heard: &mut Vec<Heard>) {
        let seen = self.turn.as_ref().map(|turn| turn.seen.as_slice()).unwrap_or_default();
        let is_meant = |id: &MessageId| told::message_uuid(*id) == uuid && !seen.contains(id);
        let Some(at) = self.prompts.iter().position(is_meant) else { return };
        let messages = vec![self.prompts.remove(at)];
        report(heard, Report::Unread { messages });
    }

    /// It says why it does not start, and ends.
    fn never_began(&mut self, result: &TurnResult, heard: &mut Vec<Heard>) {
        let said = if result.errors.is_empty() {
            result.result.clone().unwrap_or_default()
        } else {
            result.errors.join("; ")
        };
        if said.contains("No conversation found") {
            report(heard, Report::ContextReset { why: said });
        } else {
            report(heard, Report::CannotStart(said));
        }
    }
}
