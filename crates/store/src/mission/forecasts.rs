//! What was forecast of missions that are over, and what they then took.

use std::time::Duration;

use ostler_domain::{Event, Kind, mission::Interval};
use rusqlite::params;

use crate::{
    error::ReadError,
    log::{STORED, Stored},
    store::Store,
};

impl Store {
    /// The forecasts of the newest missions that were completed, each with how long the mission then ran. Of one that was
    /// done again, what it came to first.
    pub async fn past_forecasts(&self, most: u32) -> Result<Vec<(Interval, Duration)>, ReadError> {
        self.read(move |reader| {
            let sql = format!(
                "SELECT {STORED} FROM (SELECT seq FROM mission WHERE status = 'completed' ORDER BY seq DESC LIMIT ?1) m
                 JOIN mission_event o ON o.mission = m.seq JOIN log_event e ON e.seq = o.seq
                 WHERE e.kind IN (?2, ?3) ORDER BY m.seq, o.seq"
            );
            let mut statement = reader.connection.prepare_cached(&sql)?;
            let (started, ended) = (Kind::MissionStarted.code(), Kind::MissionEnded.code());
            let mut rows = statement.query(params![most, started, ended])?;
            let (mut past, mut open) = (Vec::new(), None);
            while let Some(row) = rows.next()? {
                match Stored::read(row)?.event(&reader.blobs)? {
                    Event::MissionStarted(started) => open = started.forecast,
                    Event::MissionEnded(ended) => {
                        past.extend(open.take().map(|forecast| (forecast, Duration::from_micros(ended.ran_us))));
                    }
                    _ => {}
                }
            }
            Ok(past)
        })
        .await
    }
}
