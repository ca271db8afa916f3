//! `docs/errors.md`: every reason of an error on one page, made from the code that gives it.

use ostler_client::protocol;
use ostler_domain::Reason;

use crate::failure::of_reason;

const HEAD: &str = "# Errors

Made by `cargo xtask errors` from `crates/domain/src/refusal.rs`; a test holds it against the code.

Whatever is refused has a **reason**, a stable word for programs; a sentence and, where there is one, the fact behind it, for people; and hints: commands to try, each with what it does. The sentences may change, the reasons only ever become more.

- On the command line the reason is printed with the exit code, and is in the JSON form of errors ([json.md](json.md)). All exit codes are in [exit-codes.md](exit-codes.md).
- Over gRPC it is the `reason` of a `google.rpc.ErrorInfo` with the domain `ostler`, whose metadata has `why`, `hint_0_command`, `hint_0_effect` and so on; the status code is the nearest there is. A status without such details is about the connection.
- In Rust it is `ostler_client::Error::Refused`, with an `ostler_domain::Refusal`.

| reason | exit | gRPC | when | what to do |
|---|---|---|---|---|
";

/// The whole page, its reasons in the order of their names.
fn page() -> String {
    let mut reasons = Reason::ALL.to_vec();
    reasons.sort_by_key(|reason| reason.as_str());
    let rows = reasons.into_iter().map(|reason| {
        let (exit, code) = (of_reason(reason), grpc_name(reason));
        format!("| `{reason}` | {exit} | {code} | {} | {} |\n", reason.meaning(), reason.remedy())
    });
    HEAD.to_owned() + &rows.collect::<String>()
}

/// `NOT_FOUND`, from the code's own name `NotFound`.
fn grpc_name(reason: Reason) -> String {
    let mut name = String::new();
    for c in format!("{:?}", protocol::code(reason)).chars() {
        if c.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(c.to_ascii_uppercase());
    }
    name
}

#[test]
fn the_page_of_errors_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors.md");
    if std::env::var_os("OSTLER_BLESS").is_some() {
        std::fs::write(path, page()).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(written == page(), "docs/errors.md is not current: cargo xtask errors");
}
