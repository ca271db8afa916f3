//! Golden bytes of every message, one file each. Messages only ever grow: bytes written by any version before must
//! keep their meaning, so a file that exists is never changed. `OSTLER_BLESS=1` writes the files of new messages.

use std::{collections::BTreeSet, fmt::Write, fs, path::PathBuf};

use ostler_wire::FILE_DESCRIPTOR_SET;
use prost::Message;
use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, OneofDescriptor, Value,
};

const PACKAGE: &str = "ostler.v1.";

fn dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn messages() -> Vec<MessageDescriptor> {
    let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap();
    let ours =
        |message: &MessageDescriptor| message.full_name().starts_with(PACKAGE) && !message.is_map_entry();
    pool.all_messages().filter(ours).collect()
}

#[test]
fn old_bytes_keep_their_meaning() {
    for message in messages() {
        let path = dir().join(format!("{}.txt", message.name()));
        if !path.exists() && std::env::var_os("OSTLER_BLESS").is_some() {
            fs::write(&path, samples(&message).iter().map(shown).collect::<Vec<_>>().join("\n")).unwrap();
        }
        let golden = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for sample in golden.split("\n\n").map(str::trim).filter(|sample| !sample.is_empty()) {
            let (_, hex) = sample.rsplit_once("bytes:").unwrap();
            let bytes = from_hex(hex.trim());
            let decoded = DynamicMessage::decode(message.clone(), bytes.as_slice()).unwrap();
            assert_eq!(shown(&decoded).trim(), sample, "{}", message.name());
        }
    }
}

#[test]
fn no_message_was_dropped() {
    let known: BTreeSet<String> =
        messages().iter().map(|message| format!("{}.txt", message.name())).collect();
    for file in fs::read_dir(dir()).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        assert!(known.contains(&name), "{name} belongs to no message");
    }
}

/// One message with every field set, or several where alternatives exclude each other.
fn samples(message: &MessageDescriptor) -> Vec<DynamicMessage> {
    let choices: Vec<OneofDescriptor> = message.oneofs().filter(|oneof| !oneof.is_synthetic()).collect();
    let alternatives = choices.iter().map(|oneof| oneof.fields().count()).max().unwrap_or(1);
    (0..alternatives)
        .map(|n| {
            let mut sample = DynamicMessage::new(message.clone());
            for field in message.fields() {
                let chosen = match field.containing_oneof().filter(|oneof| !oneof.is_synthetic()) {
                    Some(oneof) => oneof.fields().nth(n) == Some(field.clone()),
                    None => true,
                };
                if chosen {
                    sample.set_field(&field, value(&field));
                }
            }
            sample
        })
        .collect()
}

fn value(field: &FieldDescriptor) -> Value {
    if field.is_map() {
        let entry = (MapKey::String("KEY".to_owned()), Value::String("value".to_owned()));
        return Value::Map([entry].into());
    }
    if field.is_list() {
        return Value::List(vec![single(field), single(field)]);
    }
    single(field)
}

fn single(field: &FieldDescriptor) -> Value {
    let number = field.number();
    match field.kind() {
        Kind::Bool => Value::Bool(true),
        Kind::Int32 => Value::I32(1_000 * i32::try_from(number).unwrap()),
        Kind::Int64 => Value::I64(1_763_000_000),
        Kind::Uint32 => Value::U32(1_000 + number),
        Kind::Uint64 => Value::U64(1_000_000 + u64::from(number)),
        Kind::Double => Value::F64(f64::from(number) + 0.5),
        Kind::String => Value::String(field.name().to_owned()),
        Kind::Bytes => Value::Bytes(field.name().as_bytes().to_vec().into()),
        // The greatest: a value that is taken away later shows.
        Kind::Enum(kind) => Value::EnumNumber(kind.values().map(|value| value.number()).max().unwrap()),
        Kind::Message(message) => Value::Message(samples(&message).remove(0)),
        kind => panic!("{} is a {kind:?}: give it a sample", field.full_name()),
    }
}

/// What the bytes mean, line by line, then the bytes.
fn shown(message: &DynamicMessage) -> String {
    let mut text = String::new();
    write_fields(message, "", &mut text);
    let hex: String = message.encode_to_vec().iter().map(|byte| format!("{byte:02x}")).collect();
    writeln!(text, "bytes:{hex}").unwrap();
    text
}

fn write_fields(message: &DynamicMessage, path: &str, text: &mut String) {
    assert_eq!(message.unknown_fields().count(), 0, "bytes without a meaning below {path:?}");
    for (field, value) in message.fields() {
        write_value(value, &field.kind(), &format!("{path}{}", field.name()), text);
    }
}

fn write_value(value: &Value, kind: &Kind, path: &str, text: &mut String) {
    match value {
        Value::Message(message) => write_fields(message, &format!("{path}."), text),
        Value::List(values) => values.iter().for_each(|value| write_value(value, kind, path, text)),
        Value::Map(entries) => {
            for (key, value) in entries {
                writeln!(text, "{path}[{key:?}]: {value:?}").unwrap();
            }
        }
        Value::EnumNumber(number) => {
            let Kind::Enum(kind) = kind else { panic!("{path} is no enum") };
            writeln!(text, "{path}: {}", kind.get_value(*number).unwrap().name()).unwrap();
        }
        value => writeln!(text, "{path}: {value:?}").unwrap(),
    }
}

fn from_hex(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn the_descriptors_name_every_service() {
    let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap();
    let services: Vec<String> = pool.services().map(|service| service.full_name().to_owned()).collect();
    for name in ["AdminService", "CampaignService", "EventService", "SessionService"] {
        assert!(services.contains(&format!("{PACKAGE}{name}")), "{name}");
    }
    // One request and one response of its own for each call, named after it: no change to one ever touches another.
    for method in pool.services().flat_map(|service| service.methods().collect::<Vec<_>>()) {
        assert_eq!(method.input().name(), format!("{}Request", method.name()));
        assert_eq!(method.output().name(), format!("{}Response", method.name()));
    }
}
