//! ostler-cli
