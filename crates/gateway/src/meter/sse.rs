//! Server-sent events, as far as a meter needs them: the data of each event, joined from its lines.

use ostler_domain::limits::METER_EVENT_BYTES;

/// Takes events out of bytes that come in any portions.
#[derive(Default)]
pub(super) struct Events {
    /// Of the line that is not whole yet.
    line: Vec<u8>,
    /// Of the event that is not whole yet.
    data: Vec<u8>,
    has_data: bool,
    /// The event is longer than is held, and is passed over.
    is_too_long: bool,
    /// One before it was.
    has_passed_over: bool,
    /// The last byte was a carriage return: a line feed behind it ends no second line.
    after_return: bool,
}

impl Events {
    pub(super) fn push(&mut self, mut bytes: &[u8], read: &mut dyn FnMut(&[u8])) {
        if self.after_return && bytes.first() == Some(&b'\n') {
            bytes = &bytes[1..];
        }
        if !bytes.is_empty() {
            self.after_return = false;
        }
        while let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.extend(&bytes[..end]);
            self.end_line(read);
            let is_return = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            if is_return {
                match bytes.first() {
                    Some(b'\n') => bytes = &bytes[1..],
                    Some(_) => {}
                    None => self.after_return = true,
                }
            }
        }
        self.extend(bytes);
    }

    /// Whether there was an event that nobody has read.
    pub(super) fn has_passed_over(&self) -> bool {
        self.has_passed_over || self.is_too_long
    }

    fn extend(&mut self, bytes: &[u8]) {
        if self.line.len() + self.data.len() + bytes.len() > METER_EVENT_BYTES {
            self.is_too_long = true;
            self.line.clear();
            self.data = Vec::new();
        }
        if !self.is_too_long {
            self.line.extend_from_slice(bytes);
        } else if self.line.is_empty() {
            // An empty line ends an event; so long as one is passed over, a line has only to be known as not empty.
            self.line.extend(bytes.first());
        }
    }

    fn end_line(&mut self, read: &mut dyn FnMut(&[u8])) {
        if self.line.is_empty() {
            if self.has_data && !self.is_too_long {
                read(&self.data);
            }
            // Room that one long event needed is given back.
            *self = Events { has_passed_over: self.has_passed_over(), ..Events::default() };
        } else if !self.is_too_long
            && let Some(data) = self.line.strip_prefix(b"data:")
        {
            if self.has_data {
                self.data.push(b'\n');
            }
            self.has_data = true;
            self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
        }
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(text: &[u8], portion: usize) -> Vec<String> {
        let mut events = Events::default();
        let mut read = Vec::new();
        for bytes in text.chunks(portion) {
            events.push(bytes, &mut |data| read.push(String::from_utf8(data.to_vec()).unwrap()));
        }
        read
    }

    #[test]
    fn every_way_to_write_an_event_is_read_in_any_portions() {
        let text = "\u{feff}: hello\n\nevent: a\ndata: {\"a\":1}\n\ndata:x\r\ndata: y\r\n\r\ndata: z\r\r: keep-alive\n\n\
            id: 3\ndata\n\ndata: ü\n\ndata: cut";
        for portion in 1..text.len() {
            assert_eq!(events(text.as_bytes(), portion), ["{\"a\":1}", "x\ny", "z", "ü"], "{portion}");
        }
    }

    #[test]
    fn an_event_that_is_too_long_is_passed_over_and_the_next_is_read() {
        let long = "x".repeat(METER_EVENT_BYTES);
        let text = format!("data: {long}\ndata: more\n\ndata: next\n\n");
        for portion in [1000, 65536, text.len()] {
            assert_eq!(events(text.as_bytes(), portion), ["next"], "{portion}");
        }
    }
}
