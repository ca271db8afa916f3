//! The machine's clocks and entropy: the only place where the engine learns what time it is.

use std::{
    fs,
    sync::{Arc, LazyLock},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use jiff::{Timestamp, tz::TimeZone};
use ostler_domain::{Now, Time, time::BootId};
use rustix::{
    rand::{GetRandomFlags, getrandom},
    time::{ClockId, clock_gettime},
};

/// Reads the clocks. Tests hand in their own, to step the wall clock or to change the boot.
#[derive(Clone)]
pub struct Clock {
    read: Arc<dyn Fn() -> Now + Send + Sync>,
}

impl Clock {
    pub fn system() -> Self {
        let boot = boot_id();
        Self::of(move || {
            crate::fault::stepped(Now { wall: wall(), since_boot: since_boot(), boot: boot.clone() })
        })
    }

    pub fn of(read: impl Fn() -> Now + Send + Sync + 'static) -> Self {
        Self { read: Arc::new(read) }
    }

    pub fn now(&self) -> Now {
        (self.read)()
    }
}

/// How far the clocks on the wall are ahead of UTC at a moment, in seconds: as `TZ` says, else as the machine's own file
/// does. The file is read itself: its name would have to be looked for among those of all zones.
pub(crate) fn seconds_east(at: Time) -> i64 {
    static HERE: LazyLock<TimeZone> = LazyLock::new(|| {
        let own = || TimeZone::tzif("here", &fs::read("/etc/localtime").ok()?).ok();
        match std::env::var_os("TZ") {
            Some(_) => TimeZone::system(),
            None => own().unwrap_or_else(TimeZone::system),
        }
    });
    let moment = Timestamp::from_microsecond(at.micros()).unwrap_or(Timestamp::UNIX_EPOCH);
    i64::from(HERE.to_offset(moment).seconds())
}

/// Bits for an id.
pub(crate) fn entropy() -> u128 {
    let mut bytes = [0_u8; 16];
    // Small requests are never short and never fail once the machine is up.
    let _ = getrandom(&mut bytes, GetRandomFlags::empty());
    u128::from_le_bytes(bytes)
}

fn wall() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

fn since_boot() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn boot_id() -> BootId {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    BootId(text.trim().to_owned())
}
