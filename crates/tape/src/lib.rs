//! The tape: the append-only recording of everything that crosses a session's border, and the words a keeper
//! and a daemon say to each other about it.
//!
//! A keeper writes ([`Writer`], [`ExitFile`]), everyone else reads ([`Reader`], [`Assembler`]). Nothing here
//! waits, starts threads or knows what an agent's lines mean.

#![forbid(unsafe_code)]

pub mod attended;
pub mod environ;
pub mod exit;
pub mod frame;
pub mod input;
pub mod launch;
pub mod lines;
pub mod lock;
pub mod note;
pub mod reader;
pub mod record;
pub mod recover;
pub mod segment;
pub mod socket;
pub mod writer;

mod files;
mod source;

pub use exit::{AskedStop, ExitFile, ExitRecord, How, ProcessName, WrittenBy};
pub use frame::{Decoder, Frame, FromKeeper, ToKeeper};
pub use input::{InputMark, InputPiece};
pub use launch::{LaunchDocument, StatusLine};
pub use lines::{Assembler, AssemblerState, Line, LineBody};
pub use lock::{KeeperLock, read_attempt, write_attempt};
pub use note::KeeperNote;
pub use reader::{Batch, Damage, ReadError, Reader, TapeRecord};
pub use record::{Flags, Record, Stream};
pub use segment::compress_segment;
pub use writer::{AppendError, Writer};
