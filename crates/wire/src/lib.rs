//! The protocol of Ostler, `ostler.v1`: the one place where protobuf is named.
//!
//! [`pb`] is generated from `proto/ostler/v1`. Nobody computes with those types: [`from_proto`] turns them into
//! types of the core and of [`request`] and [`reply`], naming the field that does not fit, and [`to_proto`] turns
//! those back. [`status`] carries a refusal through a gRPC status without losing a word of it.
#![forbid(unsafe_code)]

mod enums;
pub mod from_proto;
mod invalid;
pub mod reply;
pub mod request;
pub mod status;
pub mod to_proto;

pub use invalid::InvalidField;

/// The generated types, clients and servers.
#[allow(clippy::all, clippy::pedantic, unreachable_pub, missing_docs)]
pub mod pb {
    tonic::include_proto!("ostler.v1");
    pub use crate::watched::WatchEventsResponse;
}

pub mod watched;

/// The protocol as a `FileDescriptorSet`, for reflection and for generating clients in other languages.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// The protocol's files as they are written: their names, such as `ostler/v1/event.proto`, and their texts.
pub const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// Largest answer. An event is as large as the line that it came from, and a page of sessions or a batch of events
/// may be larger still; a daemon fills batches up to a fraction of this.
pub const REPLY_BYTES: usize = 2 * ostler_domain::limits::LINE_BYTES;
