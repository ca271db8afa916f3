//! ostler-wire
