//! The terminal, key by key and line by line, past every buffer: what is typed ahead belongs to whoever reads next.

use std::io;

use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr, tcsetattr,
};

/// The terminal hands on each key as it is pressed, until this is dropped.
#[derive(Debug)]
pub(crate) struct OneKey {
    before: Termios,
}

impl OneKey {
    /// Ctrl-C is a key like the others.
    pub(crate) fn begin() -> io::Result<Self> {
        Self::without(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// Ctrl-C stays what it is.
    pub(crate) fn begin_beside_signals() -> io::Result<Self> {
        Self::without(LocalModes::ICANON | LocalModes::ECHO)
    }

    fn without(modes: LocalModes) -> io::Result<Self> {
        let stdin = rustix::stdio::stdin();
        let before = tcgetattr(stdin)?;
        let mut now = before.clone();
        now.local_modes -= modes;
        now.special_codes[SpecialCodeIndex::VMIN] = 1;
        now.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(stdin, OptionalActions::Now, &now)?;
        Ok(Self { before })
    }

    /// The next key; none at the end of the input.
    pub(crate) fn key(&self) -> io::Result<Option<u8>> {
        byte()
    }
}

impl Drop for OneKey {
    fn drop(&mut self) {
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &self.before);
    }
}

/// Forgets what was typed ahead: it was not meant for what is about to be shown.
pub(crate) fn forget_typed() {
    // Where this cannot be, nobody types.
    let _ = tcflush(rustix::stdio::stdin(), QueueSelector::IFlush);
}

/// A line, without its end.
pub(crate) fn line() -> io::Result<String> {
    let mut bytes = Vec::new();
    while let Some(byte) = byte()?.filter(|byte| *byte != b'\n') {
        bytes.push(byte);
    }
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}

pub(crate) fn byte() -> io::Result<Option<u8>> {
    let mut byte = [0_u8];
    let read = rustix::io::retry_on_intr(|| rustix::io::read(rustix::stdio::stdin(), &mut byte))?;
    Ok((read == 1).then_some(byte[0]))
}
