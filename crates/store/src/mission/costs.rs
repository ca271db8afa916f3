//! What the calls of missions cost, by assignment: what was paid at the prices that held then, and what had none.

use std::collections::BTreeMap;

use ostler_domain::{
    AssignmentId, MissionId,
    price::{Cost, Dollars},
};
use rusqlite::Connection;

use crate::{
    error::ReadError,
    store::Store,
    usage::{MODEL, PAID, PLAN_UNPRICED, UNPRICED, buckets, total, usage_at},
};

impl Store {
    /// What the sessions of each assignment of these missions have used, those that still work too.
    pub async fn assignment_costs(
        &self,
        missions: Vec<MissionId>,
    ) -> Result<BTreeMap<AssignmentId, Cost>, ReadError> {
        self.read(move |reader| {
            let mut costs = BTreeMap::new();
            missions
                .into_iter()
                .try_for_each(|mission| of_mission(&reader.connection, mission, &mut costs))?;
            Ok(costs)
        })
        .await
    }
}

fn of_mission(
    connection: &Connection,
    mission: MissionId,
    costs: &mut BTreeMap<AssignmentId, Cost>,
) -> Result<(), ReadError> {
    let (unpriced, plan_unpriced) = (buckets(UNPRICED), buckets(PLAN_UNPRICED));
    // A session's whole row is looked into once for each of its models, and not for each call.
    let sql = format!(
        "SELECT (SELECT json_extract(v.view, '$.mission.assignment') FROM session_view v WHERE v.num = s.num),
                {MODEL}, {PAID}, total(CASE WHEN u.plan = 1 THEN u.cost END), {unpriced}, {plan_unpriced}
         FROM session s INDEXED BY session_mission JOIN usage u ON u.session = s.num
         WHERE s.mission = ?1 GROUP BY s.num, {MODEL}"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([mission.to_string()])?;
    while let Some(row) = rows.next()? {
        let Some(id) = row.get::<_, Option<String>>(0)?.and_then(|id| id.parse::<AssignmentId>().ok()) else {
            continue;
        };
        let unpriced = usage_at(row, 4)?;
        let mut cost = Cost {
            paid: Dollars(total(row, 2)?),
            plan: Dollars(total(row, 3)?),
            plan_unpriced: usage_at(row, 9)?,
            ..Cost::default()
        };
        if !unpriced.is_zero() {
            cost.unpriced.insert(row.get(1)?, unpriced);
        }
        *costs.entry(id).or_default() += &cost;
    }
    Ok(())
}
