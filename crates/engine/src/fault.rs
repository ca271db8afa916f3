//! Places where a test may have the daemon die: between a commit and what follows from it, a random kill hardly
//! ever strikes. Compiled into debug builds only.

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
