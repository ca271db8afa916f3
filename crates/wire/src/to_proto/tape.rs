//! Tapes.

use super::time;
use crate::{
    pb,
    reply::{NativeCommand, TapePart, TapeRecord},
};

pub fn tape_part(part: TapePart) -> pb::ReadTapeResponse {
    let damage = part.damage.iter().map(|lost| pb::TapeDamage { from: lost.start, to: lost.end });
    pb::ReadTapeResponse {
        damage: damage.collect(),
        records: part.records.into_iter().map(tape_record).collect(),
    }
}

fn tape_record(record: TapeRecord) -> pb::TapeRecord {
    pb::TapeRecord {
        offset: record.offset,
        stream: record.stream,
        time: Some(time(record.time)),
        payload: record.payload,
        more: record.more,
        input_no: record.input_no,
    }
}

pub fn native_command(command: NativeCommand) -> pb::GetNativeCommandResponse {
    let NativeCommand { working_dir, env, words } = command;
    pb::GetNativeCommandResponse { working_dir, env, words }
}
