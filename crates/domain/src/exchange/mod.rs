//! What is recorded, in the forms of other programs.

pub mod gastown;
pub mod openclaw;
pub mod openclaw_index;
