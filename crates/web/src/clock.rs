//! This moment.

use std::time::SystemTime;

use ostler_domain::Time;

pub(crate) fn now() -> Time {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Time::from_micros(i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX))
}

/// A number between 0 and 1, for pauses that are not to be the same for all.
pub(crate) fn chance() -> f64 {
    let mut bytes = [0; 4];
    // Without any, all wait as long as they may.
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
        Ok(4) => f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX),
        _ => 1.0,
    }
}
