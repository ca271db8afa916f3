//! What a command fails with, how it is said, and which exit code it means. The only place where reasons and
//! outcomes become numbers.

use std::io;

use ostler_client::HomeError;
use ostler_domain::{
    Reason, Refusal,
    mission::{self, StopRule},
    session::Outcome,
    text::{one_line, shell_word, visible},
};
use ostler_form::ErrorForm;

use crate::{
    exit_code,
    output::{Line, Tone},
};

/// Why a command ends early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// To be said, with the exit code of its reason.
    Refused(Box<Refusal>),
    /// Nobody reads the output any more, which is their right.
    OutputClosed,
}

impl Failure {
    /// A command line that cannot be meant.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Refusal::invalid(message).into()
    }

    pub(crate) fn reason(&self) -> Option<Reason> {
        match self {
            Failure::Refused(refusal) => Some(refusal.reason),
            Failure::OutputClosed => None,
        }
    }

    /// In the daemon's own form.
    pub(crate) fn to_refusal(&self) -> Refusal {
        match self {
            Failure::Refused(refusal) => (**refusal).clone(),
            Failure::OutputClosed => Refusal::internal("nobody reads the output any more"),
        }
    }

    /// What fits several is asked for again by the command that was typed, with what names one alone in its place.
    pub(crate) fn in_the_words_of(self, typed: &[String]) -> Self {
        let Failure::Refused(mut refusal) = self else { return self };
        // A bare name may have been looked for in a campaign.
        let named = refusal.message.strip_prefix('"').and_then(|rest| rest.split_once("\" fits"));
        let named = named.map(|(named, _)| named.to_owned()).unwrap_or_default();
        let fits = |word: &String| {
            named.strip_suffix(word.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
        };
        if refusal.reason == Reason::Ambiguous
            && let Some(place) = typed.iter().position(fits)
        {
            let words: Vec<_> = typed[..place].iter().skip(1).map(|word| shell_word(word)).collect();
            let rest: String =
                typed[place + 1..].iter().map(|word| format!(" {}", shell_word(word))).collect();
            for hint in &mut refusal.hints {
                let ways = ["ostler show ", "ostler conversation show "];
                let shown = ways.iter().find_map(|way| hint.command.strip_prefix(way));
                let sent = || hint.command.strip_prefix("ostler send ")?.strip_suffix(" \"…\"");
                if let Some(one) = shown.or_else(sent) {
                    hint.command = format!("ostler {} {one}{rest}", words.join(" "));
                }
            }
        }
        Failure::Refused(refusal)
    }

    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::Refused(refusal) => of_reason(refusal.reason),
            Failure::OutputClosed => exit_code::OK,
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Failure::Refused(Box::new(refusal))
    }
}

impl From<ostler_client::Error> for Failure {
    fn from(error: ostler_client::Error) -> Self {
        error.to_refusal().into()
    }
}

impl From<HomeError> for Failure {
    fn from(error: HomeError) -> Self {
        Failure::usage(error.to_string())
    }
}

/// Writing to standard output failed.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::OutputClosed,
            io::ErrorKind::StorageFull => {
                Refusal::new(Reason::DiskFull, format!("the output cannot be written: {error}")).into()
            }
            _ => Refusal::new(Reason::Internal, format!("the output cannot be written: {error}")).into(),
        }
    }
}

/// The command that was typed, with one more word: to be pasted.
pub(crate) fn typed_with(more: &str) -> String {
    let typed: Vec<String> = std::env::args().skip(1).map(|word| shell_word(&word)).collect();
    format!("ostler {} {more}", typed.join(" "))
}

/// Why something was refused, in a line: what a parser draws of a file is left out.
pub(crate) fn in_a_line(why: &str) -> String {
    let is_drawn = |line: &&str| {
        let rest = line.trim_start().trim_start_matches(|letter: char| letter.is_ascii_digit());
        rest.trim_start().starts_with('|')
    };
    let said = why.lines().filter(|line| !is_drawn(line)).map(str::trim).filter(|line| !line.is_empty());
    said.collect::<Vec<_>>().join(": ")
}

/// The exit code of a reason.
pub(crate) const fn of_reason(reason: Reason) -> u8 {
    match reason {
        Reason::InvalidArgument | Reason::TooLarge | Reason::CampaignRoot => exit_code::USAGE,
        Reason::CampaignUnknown
        | Reason::AgentUnknown
        | Reason::ConversationUnknown
        | Reason::TicketUnknown
        | Reason::MissionUnknown
        | Reason::NodeUnknown
        | Reason::SnapshotUnknown
        | Reason::SessionUnknown
        | Reason::MessageUnknown
        | Reason::ApprovalUnknown
        | Reason::CursorUnknown
        | Reason::Ambiguous => exit_code::UNKNOWN,
        Reason::CampaignExists
        | Reason::CampaignMoved
        | Reason::CampaignBusy
        | Reason::ConversationBusy
        | Reason::Imported
        | Reason::SecondWriter
        | Reason::TicketClosed
        | Reason::TicketWaits
        | Reason::TicketCycle
        | Reason::TicketExists
        | Reason::ApprovalAnswered
        | Reason::NameTaken
        | Reason::WorktreeRefused
        | Reason::WrongState
        | Reason::Halted
        | Reason::Quarantined
        | Reason::OverBudget
        | Reason::PriceUnknown
        | Reason::InboxFull
        | Reason::RequestConflict
        | Reason::Busy
        | Reason::DaemonRunning => exit_code::WRONG_STATE,
        Reason::PermissionDenied | Reason::ModelUnreachable | Reason::SandboxUnavailable => {
            exit_code::REFUSED
        }
        Reason::ProviderUnknown | Reason::ProviderMissing | Reason::ProviderAuth => exit_code::PROVIDER,
        Reason::DaemonUnreachable | Reason::ShuttingDown => exit_code::UNREACHABLE,
        Reason::TimedOut => exit_code::TIMED_OUT,
        Reason::DiskFull
        | Reason::StoreReadOnly
        | Reason::StoreCorrupt
        | Reason::StoreNewer
        | Reason::StoreBusy
        | Reason::Internal => exit_code::FAILURE,
    }
}

/// The exit code of a session's end, for who waited for it.
pub(crate) const fn of_outcome(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Done | Outcome::Handoff => exit_code::OK,
        Outcome::Crashed | Outcome::FailedStart | Outcome::Lost | Outcome::Oom | Outcome::TurnFailed => {
            exit_code::SESSION_FAILED
        }
        Outcome::Budget => exit_code::SESSION_BUDGET,
        Outcome::Timeout => exit_code::SESSION_TIMEOUT,
        Outcome::Stopped | Outcome::Killed | Outcome::Reset => exit_code::SESSION_STOPPED,
    }
}

/// The exit code of a mission's end, for who waited for it: how it ended, and which rule ended it.
pub(crate) const fn of_mission(status: mission::Status, rule: Option<StopRule>) -> u8 {
    match (status, rule) {
        (mission::Status::Completed, _) => exit_code::OK,
        (_, Some(StopRule::Budget)) => exit_code::SESSION_BUDGET,
        (_, Some(StopRule::Time)) => exit_code::SESSION_TIMEOUT,
        (mission::Status::Cancelled, _) => exit_code::SESSION_STOPPED,
        (mission::Status::Partial, _) => exit_code::MISSION_PARTIAL,
        _ => exit_code::SESSION_FAILED,
    }
}

/// The exit code of a command that did one thing to many: that of all of them, or 9 where they differ.
pub(crate) fn of_many(codes: &[u8]) -> u8 {
    match codes {
        [] => exit_code::OK,
        [first, rest @ ..] if rest.iter().all(|code| code == first) => *first,
        _ => exit_code::PARTLY,
    }
}

/// Longest sentence of an error. The why, which may be a log's tail, has more.
const SENTENCE: usize = 1_000;

/// Where the words of an error begin.
const INDENT: usize = 7;

/// The error as people read it, folded between words. Commands are left to the terminal: one that is broken by us could
/// not be copied whole.
pub(crate) fn lines(refusal: &Refusal, code: u8, width: Option<usize>) -> Vec<Line> {
    let error = Line::toned(Tone::Bad, "error:")
        .plain(" ")
        .plain(one_line(&refusal.message, SENTENCE))
        .faint(format!(" [{}, exit {code}]", refusal.reason));
    let mut lines = error.folded(width, INDENT);
    if let Some(why) = &refusal.why {
        for (n, text) in visible(why.trim()).lines().enumerate() {
            let line = Line::new().faint(if n == 0 { "  why: " } else { "       " }).plain(text);
            lines.extend(line.folded(width, INDENT));
        }
    }
    let column = refusal.hints.iter().map(|hint| Line::of(&hint.command).width()).max().unwrap_or(0);
    for (n, hint) in refusal.hints.iter().enumerate() {
        let command = Line::toned(Tone::Accent, &hint.command).padded(column);
        let line = Line::new().faint(if n == 0 { "  try: " } else { "       " }).append(command);
        lines.push(if hint.effect.is_empty() { line } else { line.plain("   ").faint(&hint.effect) });
    }
    lines
}

/// The error as programs read it.
pub(crate) fn json(refusal: &Refusal, code: u8) -> String {
    crate::output::to_json(&ErrorForm::new(refusal, Some(code)))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::output::Look;

    fn refusal() -> Refusal {
        Refusal::new(Reason::CampaignUnknown, "~/tmp is in no campaign")
            .hint("ostler campaign add .", "agents may then read and write here, hidden files excepted")
            .hint("ostler run --here \"hi\"", "the same in one go")
    }

    fn shown(refusal: &Refusal, look: &Look) -> String {
        lines(refusal, of_reason(refusal.reason), look.width)
            .iter()
            .map(|line| line.show(look))
            .collect::<Vec<_>>()
            .join("\n")
    }

    #[test]
    fn in_all_looks() {
        let refusal = refusal().because("it lies below none of: shop (~/code/shop), site (~/code/site)");
        assert_snapshot!(crate::testing::in_all_looks(|look| lines(&refusal, 3, look.width)));
    }

    #[test]
    fn says_what_why_and_what_to_try() {
        assert_snapshot!(shown(&refusal(), &Look::plain(None)), @r#"
        error: ~/tmp is in no campaign [CAMPAIGN_UNKNOWN, exit 3]
          try: ostler campaign add .    agents may then read and write here, hidden files excepted
               ostler run --here "hi"   the same in one go
        "#);
        let refusal =
            Refusal::new(Reason::Halted, "all agents are halted").because("by ann, 3 min ago\nfire drill");
        assert_snapshot!(shown(&refusal, &Look::plain(None)), @r"
        error: all agents are halted [HALTED, exit 4]
          why: by ann, 3 min ago
               fire drill
        ");
    }

    #[test]
    fn what_is_longer_than_the_screen_is_broken_between_words() {
        let refusal = Refusal::invalid("there is no status \"workng\", the nearest is WORKING")
            .because("there are: CREATED, STARTING, RUNNING")
            .hint("ostler ls --status WORKING", "may be what you meant");
        assert_snapshot!(shown(&refusal, &Look::plain(Some(40))), @r#"
        error: there is no status "workng", the
               nearest is WORKING
               [INVALID_ARGUMENT, exit 2]
          why: there are: CREATED, STARTING,
               RUNNING
          try: ostler ls --status WORKING   may be what you meant
        "#);
    }

    #[test]
    fn colour_is_an_addition() {
        let coloured = shown(&refusal(), &Look::coloured(None));
        assert!(coloured.starts_with("\u{1b}[1m\u{1b}[31merror:\u{1b}[0m ~/tmp"), "{coloured:?}");
    }

    #[test]
    fn foreign_words_move_no_terminal() {
        let refusal = Refusal::new(Reason::Internal, "a\u{1b}[2Jb\nc").because("\u{9b}31m\u{202e}");
        let text = shown(&refusal, &Look::plain(None));
        assert!(!text.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{text:?}");
        let json = json(&refusal, 3);
        assert!(!json.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{json:?}");
    }

    #[test]
    fn programs_get_one_object() {
        assert_snapshot!(json(&refusal(), 3), @r#"{"error":{"reason":"CAMPAIGN_UNKNOWN","message":"~/tmp is in no campaign","why":null,"hint":[{"command":"ostler campaign add .","effect":"agents may then read and write here, hidden files excepted"},{"command":"ostler run --here \"hi\"","effect":"the same in one go"}],"request_id":null,"exit":3}}"#);
    }

    #[test]
    fn many_have_the_code_they_share() {
        assert_eq!([of_many(&[]), of_many(&[0, 0]), of_many(&[4, 4]), of_many(&[0, 4])], [0, 0, 4, 9]);
    }

    #[test]
    fn exit_codes_are_pinned() {
        let table: Vec<_> =
            Reason::ALL.iter().map(|reason| format!("{:2} {reason}", of_reason(*reason))).collect();
        assert_snapshot!(table.join("\n"));
        let table: Vec<_> = Outcome::ALL
            .iter()
            .map(|outcome| format!("{:2} {}", of_outcome(*outcome), outcome.as_str()))
            .collect();
        assert_snapshot!(table.join("\n"));
        let rules = [None, Some(StopRule::Cancel), Some(StopRule::Budget), Some(StopRule::Time)];
        let of = |status| rules.map(|rule| of_mission(status, rule));
        assert_eq!(of(mission::Status::Completed), [0, 0, 0, 0]);
        assert_eq!(of(mission::Status::Partial), [17, 17, 11, 12]);
        assert_eq!(of(mission::Status::Failed), [10, 10, 11, 12]);
        assert_eq!(of(mission::Status::Cancelled), [15, 15, 11, 12]);
    }

    #[test]
    fn what_fits_several_is_asked_for_by_the_command_that_was_typed() {
        let typed = |line: &str| {
            let (words, quoted) = line.split_once(" '").unwrap_or((line, ""));
            let quoted = quoted.strip_suffix('\'');
            words.split(' ').chain(quoted).map(str::to_owned).collect::<Vec<_>>()
        };
        let fits = || {
            Failure::from(
                Refusal::new(Reason::Ambiguous, "\"7q4x\" fits 2 sessions")
                    .hint("ostler show ID", "takes more"),
            )
        };
        let said = |line: &str| fits().in_the_words_of(&typed(line)).to_refusal().hints[0].command.clone();
        assert_eq!(said("ostler stop --now 7q4x"), "ostler stop --now ID");
        assert_eq!(said("ostler send 7q4x 'hello you'"), "ostler send ID 'hello you'");
        assert_eq!(said("ostler show -"), "ostler show ID", "what is meant is not on the line");
        let alike = Refusal::new(Reason::Ambiguous, "\"api\" fits 2 sessions")
            .hint("ostler show shop/api", "RUNNING, in shop")
            .hint("ostler show blog/api", "STOPPED, in blog");
        let hints = Failure::from(alike).in_the_words_of(&typed("ostler stop --now api")).to_refusal().hints;
        let said: Vec<_> = hints.iter().map(|hint| hint.command.as_str()).collect();
        assert_eq!(said, ["ostler stop --now shop/api", "ostler stop --now blog/api"]);
        let here = Refusal::new(Reason::Ambiguous, "\"shop/api\" fits 2 conversations")
            .hint("ostler conversation show k7q4x", "open");
        let hints =
            Failure::from(here).in_the_words_of(&typed("ostler conversation rm api")).to_refusal().hints;
        assert_eq!(hints[0].command, "ostler conversation rm k7q4x");
        let other = Failure::from(Refusal::invalid("\"7q4x\" fits nothing").hint("ostler show ID", ""));
        assert_eq!(
            other.in_the_words_of(&typed("ostler stop 7q4x")).to_refusal().hints[0].command,
            "ostler show ID"
        );
    }
}
