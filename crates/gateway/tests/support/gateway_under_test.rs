//! A program with the gateway's mode and nothing else, for the tests of this crate.

fn main() -> std::process::ExitCode {
    ostler_gateway::run()
}
