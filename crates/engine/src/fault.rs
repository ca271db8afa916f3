//! Places where a test may have the daemon die, or stay for a while: between a commit and what follows from it, a random
//! kill hardly ever strikes. Compiled into debug builds only.

/// Dies here if the test said so: `OSTLER_FAULT=before-effects:17` dies at the seventeenth pass.
#[cfg(debug_assertions)]
pub(crate) fn point(name: &str) {
    use std::sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    };
    static WANTED: OnceLock<Option<(String, u64)>> = OnceLock::new();
    static PASSED: AtomicU64 = AtomicU64::new(0);
    let wanted = WANTED.get_or_init(|| {
        let text = std::env::var("OSTLER_FAULT").ok()?;
        let (name, pass) = text.split_once(':')?;
        Some((name.to_owned(), pass.parse().ok()?))
    });
    if let Some((wanted, pass)) = wanted
        && wanted == name
        && PASSED.fetch_add(1, Ordering::Relaxed) + 1 == *pass
    {
        std::process::abort();
    }
}

#[cfg(not(debug_assertions))]
pub(crate) fn point(_name: &str) {}

/// Stays here for a while if the test said so: `OSTLER_SLOW=member-ended:2000` stays two seconds at each pass.
#[cfg(debug_assertions)]
pub(crate) async fn slow(name: &str) {
    let wanted = std::env::var("OSTLER_SLOW").ok();
    let wanted = wanted.as_deref().and_then(|text| text.split_once(':'));
    let millis = wanted.filter(|(slow, _)| *slow == name).and_then(|(_, millis)| millis.parse().ok());
    if let Some(millis) = millis {
        tokio::time::sleep(std::time::Duration::from_millis(millis)).await;
    }
}

#[cfg(not(debug_assertions))]
pub(crate) async fn slow(_name: &str) {}

/// A clock that a test has stepped: `OSTLER_CLOCK=86400,other-boot` is a day ahead, in another boot.
#[cfg(debug_assertions)]
pub(crate) fn stepped(now: ostler_domain::Now) -> ostler_domain::Now {
    use std::{sync::OnceLock, time::Duration};
    static STEP: OnceLock<Option<(i64, String)>> = OnceLock::new();
    let step = STEP.get_or_init(|| {
        let text = std::env::var("OSTLER_CLOCK").ok()?;
        let (seconds, boot) = text.split_once(',')?;
        Some((seconds.parse().ok()?, boot.to_owned()))
    });
    let Some((seconds, boot)) = step else { return now };
    let span = Duration::from_secs(seconds.unsigned_abs());
    let wall = if *seconds < 0 { now.wall.minus(span) } else { now.wall.plus(span) };
    let boot = if boot.is_empty() { now.boot } else { ostler_domain::time::BootId(boot.clone()) };
    ostler_domain::Now { wall, boot, ..now }
}

#[cfg(not(debug_assertions))]
pub(crate) fn stepped(now: ostler_domain::Now) -> ostler_domain::Now {
    now
}
