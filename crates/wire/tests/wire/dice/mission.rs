//! Missions.

use std::time::Duration;

use ostler_domain::{
    AssignmentId, MissionId,
    budget::Amount,
    mission::{
        AssignmentStatus, Counts, Fault, Filter, Interval, Listed, Member, Membership, Plan, Spent, Status,
        Strategy, eta::HitRate,
    },
    price::Dollars,
    session::Outcome,
};
use ostler_wire::{
    reply::{
        AssignmentRow, CollisionRow, MissionEta, MissionPreview, MissionPrice, PausedMission, PlannedMission,
        WholeMission,
    },
    request::{CreateMission, PlanMission, ResumeMission, RetryMission},
};

use super::Dice;

impl Dice {
    pub(crate) fn mission_id(&mut self) -> MissionId {
        let (at, entropy) = self.entropy();
        MissionId::new(at, entropy)
    }

    fn assignment_id(&mut self) -> AssignmentId {
        let (at, entropy) = self.entropy();
        AssignmentId::new(at, entropy)
    }

    pub(crate) fn membership(&mut self) -> Membership {
        Membership { mission: self.mission_id(), assignment: self.assignment_id(), attempt: self.small() }
    }

    fn spent(&mut self) -> Spent {
        Spent { usage: self.usage(), cost: Dollars(self.number()), unpriced: false }
    }

    pub(crate) fn mission(&mut self) -> Listed {
        Listed {
            id: self.mission_id(),
            campaign: self.campaign_id(),
            name: self.name(),
            objective: self.text(),
            strategy: self.of(Strategy::ALL),
            status: self.of(Status::ALL),
            created_at: self.time(),
            started_at: self.maybe(Self::time),
            ended_at: self.maybe(Self::time),
            updated_at: self.time(),
            counts: Counts {
                total: self.small(),
                completed: self.small(),
                failed: self.small(),
                skipped: self.small(),
                cancelled: self.small(),
            },
            spent: self.spent(),
        }
    }

    fn assignment(&mut self) -> AssignmentRow {
        AssignmentRow {
            id: self.assignment_id(),
            name: self.text(),
            role: self.text(),
            instance: self.small(),
            status: self.of(AssignmentStatus::ALL),
            stage: self.maybe(Self::small),
            needs: self.some(Self::text),
            attempt: self.small(),
            session: self.maybe(Self::session_id),
            started: self.maybe(Self::time),
            ended: self.maybe(Self::time),
            spent: self.spent(),
            why: self.text(),
            wait: self.text(),
            is_removed: self.yes(),
            paths: self.some(Self::text),
            outcome: self.maybe(|dice| dice.of(Outcome::ALL)),
        }
    }

    fn mission_eta(&mut self) -> MissionEta {
        let span = |dice: &mut Self| Duration::from_micros(dice.number() >> 8);
        MissionEta {
            words: self.text(),
            interval: self.maybe(|dice| Interval::new(span(dice), span(dice), span(dice))),
            rate: HitRate { held: self.small(), of: self.small() },
        }
    }

    fn mission_price(&mut self) -> MissionPrice {
        MissionPrice {
            words: self.text(),
            likely: Dollars(self.number()),
            high: Dollars(self.number()),
            known: self.small(),
            unknown: self.small(),
        }
    }

    pub(crate) fn whole_mission(&mut self) -> WholeMission {
        WholeMission {
            mission: self.mission(),
            assignments: self.some(Self::assignment),
            wait: self.text(),
            eta: self.mission_eta(),
            collisions: self.some(Self::collision),
            why: self.text(),
            metadata: self.some(|dice| (dice.text(), dice.text())).into_iter().collect(),
        }
    }

    pub(crate) fn paused_mission(&mut self) -> PausedMission {
        PausedMission {
            mission: self.mission(),
            by_freezer: self.small(),
            by_signals: self.small(),
            not_yet: self.some(Self::session_id),
        }
    }

    pub(crate) fn plan_mission(&mut self) -> PlanMission {
        PlanMission {
            campaign: self.text(),
            plan: self.text(),
            parameters: self.some(|dice| (dice.text(), dice.text())).into_iter().collect(),
            provider: self.maybe(Self::text),
            model: self.maybe(Self::text),
        }
    }

    fn collision(&mut self) -> CollisionRow {
        CollisionRow {
            one: self.text(),
            other: self.text(),
            paths: self.some(Self::text),
            turn: self.maybe(Self::small),
            since: self.time(),
        }
    }

    pub(crate) fn mission_preview(&mut self) -> MissionPreview {
        MissionPreview {
            mission: self.mission(),
            runs: self.some(Self::text),
            goes_on: self.some(Self::text),
            price: self.mission_price(),
            merges_into: self.maybe(Self::text),
        }
    }

    pub(crate) fn planned_mission(&mut self) -> PlannedMission {
        if self.yes() {
            let fault = |dice: &mut Self| Fault {
                line: dice.maybe(|dice| dice.small() as usize),
                message: dice.text(),
                hint: dice.maybe(Self::text),
            };
            return PlannedMission::Faulty(vec![fault(self), fault(self)]);
        }
        let plan = Plan {
            objective: self.text(),
            strategy: self.of(Strategy::ALL),
            time_us: self.maybe(|dice| (u64::from(dice.small()) + 1) * 1_000_000),
            agents: vec![Member::new("a".parse().unwrap(), self.text())],
            ..Plan::default()
        };
        let plan = if plan.strategy == Strategy::Pipeline {
            Plan { strategy: Strategy::Adaptive, ..plan }
        } else {
            plan
        };
        PlannedMission::Sound {
            plan: Box::new(plan),
            waves: self.some(|dice| dice.some(Self::text)),
            price: self.mission_price(),
            eta: self.mission_eta(),
        }
    }

    pub(crate) fn mission_filter(&mut self) -> Filter {
        Filter {
            campaign: self.maybe(Self::campaign_id),
            statuses: self.some(|dice| dice.of(Status::ALL)),
            over_too: self.yes(),
            since: self.maybe(Self::time),
        }
    }

    pub(crate) fn create_mission(&mut self) -> CreateMission {
        CreateMission {
            campaign: self.text(),
            plan: self.text(),
            parameters: self.some(|dice| (dice.text(), dice.text())).into_iter().collect(),
            starts: self.yes(),
        }
    }

    fn amount(&mut self) -> Amount {
        Amount { tokens: Some(self.number()), dollars: self.maybe(|dice| Dollars(dice.number())) }
    }

    pub(crate) fn resume_mission(&mut self) -> ResumeMission {
        ResumeMission {
            who: self.text(),
            budget: self.maybe(Self::amount),
            more_time: self.maybe(|dice| Duration::from_micros(dice.number() >> 8)),
            which: self.some(Self::text),
        }
    }

    pub(crate) fn retry_mission(&mut self) -> RetryMission {
        RetryMission {
            who: self.text(),
            which: self.some(Self::text),
            budget: self.maybe(Self::amount),
            more_time: self.maybe(|dice| Duration::from_micros(dice.number() >> 8)),
        }
    }
}
