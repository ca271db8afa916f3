//! ostler-keeper
