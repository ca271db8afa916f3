//! Missions: plans, decisions, and what holds whatever happens.

mod growth;
mod life;
mod limits;
mod merges;
mod plans;
mod promises;
mod seeing;
mod simulation;
mod world;
