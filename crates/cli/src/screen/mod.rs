//! Screens: what is known, laid out for people. Pure: data, a moment and a look go in, lines come out. Those that others show
//! as well are in `ostler-screen`.

pub(crate) mod agent;
pub(crate) mod attack;
pub(crate) mod campaign;
pub(crate) mod chain;
pub(crate) mod conversation;
pub(crate) mod full_context;
pub(crate) mod message;
pub(crate) mod reboot;
pub(crate) mod search;
pub(crate) mod session;
pub(crate) mod ticket;
pub(crate) mod trace;
pub(crate) mod worktree;

pub(crate) use ostler_screen::{
    activity, approval, cost, field, hold, mission, money, next_steps, retention, row, sessions, tree,
};
