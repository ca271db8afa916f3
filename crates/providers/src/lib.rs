//! ostler-providers
