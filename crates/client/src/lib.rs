//! ostler-client
