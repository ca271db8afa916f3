//! Every exit code of `ostler`, with its meaning. Scripts depend on them: a number is never given a second meaning.

/// Done.
pub const OK: u8 = 0;
/// A failure inside Ostler.
pub const FAILURE: u8 = 1;
/// The command line, a value or a plan makes no sense.
pub const USAGE: u8 = 2;
/// There is no such thing, or the name fits several.
pub const UNKNOWN: u8 = 3;
/// The thing is in a state that does not allow this, or something else was first.
pub const WRONG_STATE: u8 = 4;
/// Refused by permission or policy.
pub const REFUSED: u8 = 5;
/// The provider is missing, too old or not logged in.
pub const PROVIDER: u8 = 6;
/// No daemon answers.
pub const UNREACHABLE: u8 = 7;
/// This command's own time limit passed.
pub const TIMED_OUT: u8 = 8;
/// Of many things asked for, some failed.
pub const PARTLY: u8 = 9;

/// The session failed: crashed, did not start, was lost, ran out of memory.
pub const SESSION_FAILED: u8 = 10;
/// The session's budget was used up.
pub const SESSION_BUDGET: u8 = 11;
/// The session's time limit passed.
pub const SESSION_TIMEOUT: u8 = 12;
/// Something was denied, and that was to count.
pub const DENIED: u8 = 13;
/// The model's server limited the session past a time limit.
pub const SESSION_LIMITED: u8 = 14;
/// The session was stopped, killed or reset by someone else.
pub const SESSION_STOPPED: u8 = 15;
/// The check of the work failed.
pub const CHECK_FAILED: u8 = 16;
/// Of the mission some assignments were completed, and some were not.
pub const MISSION_PARTIAL: u8 = 17;

/// Interrupted (SIGINT).
pub const INTERRUPTED: u8 = 130;
/// Terminated (SIGTERM).
pub const TERMINATED: u8 = 143;
