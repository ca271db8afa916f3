//! What watchers are sent. Its events stay in the form of the wire: the daemon makes that once for all who watch, and a
//! field of bytes and one of messages look the same there.

use prost::{Message, bytes::Bytes};

use crate::{InvalidField, pb};

/// `ostler.v1.WatchEventsResponse`.
#[derive(Clone, PartialEq, Message)]
pub struct WatchEventsResponse {
    /// The next events, in order, each an encoded [`pb::Event`].
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub events: Vec<Bytes>,
    /// Everything up to this place has been looked at, whether it passed the filter or not.
    #[prost(uint64, tag = "2")]
    pub seen: u64,
}

impl WatchEventsResponse {
    /// The events as they can be read.
    pub fn read(self) -> Result<Vec<pb::Event>, InvalidField> {
        let read = |event| pb::Event::decode(event).map_err(|error| InvalidField::new("events", error));
        self.events.into_iter().map(read).collect()
    }
}

/// An event in the form in which watchers are sent it.
pub fn sent(event: &pb::Event) -> Bytes {
    event.encode_to_vec().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the protocol declares it.
    #[derive(Clone, PartialEq, Message)]
    struct Declared {
        #[prost(message, repeated, tag = "1")]
        events: Vec<pb::Event>,
        #[prost(uint64, tag = "2")]
        seen: u64,
    }

    #[test]
    fn on_the_wire_it_is_what_the_protocol_declares() {
        let event = |seq| pb::Event {
            seq,
            kind: "AGENT_STATUS".to_owned(),
            body: "{}".to_owned(),
            ..Default::default()
        };
        let declared = Declared { events: vec![event(7), event(300)], seen: 301 };
        let ours = WatchEventsResponse { events: declared.events.iter().map(sent).collect(), seen: 301 };
        assert_eq!(ours.encode_to_vec(), declared.encode_to_vec());
        let read = WatchEventsResponse::decode(declared.encode_to_vec().as_slice()).unwrap();
        assert_eq!((read.seen, read.read().unwrap()), (301, declared.events));
        let broken = WatchEventsResponse { events: vec![Bytes::from_static(b"\xff")], seen: 1 };
        assert!(broken.read().unwrap_err().to_string().starts_with("events does not fit"));
    }
}
