//! Tapes.

use super::{Result, time};
use crate::{
    InvalidField, pb,
    reply::{NativeCommand, TapePart, TapeRecord},
};

pub fn tape_part(part: pb::ReadTapeResponse) -> Result<TapePart> {
    Ok(TapePart {
        damage: part.damage.iter().map(|lost| lost.from..lost.to).collect(),
        records: part.records.into_iter().map(tape_record).collect::<Result<_>>()?,
    })
}

fn tape_record(record: pb::TapeRecord) -> Result<TapeRecord> {
    let at = record.time.ok_or_else(|| InvalidField::new("time", "is missing"))?;
    Ok(TapeRecord {
        offset: record.offset,
        stream: record.stream,
        time: time(at, "time")?,
        payload: record.payload,
        more: record.more,
        input_no: record.input_no,
    })
}

pub fn native_command(command: pb::GetNativeCommandResponse) -> NativeCommand {
    let pb::GetNativeCommandResponse { working_dir, env, words } = command;
    NativeCommand { working_dir, env, words }
}
