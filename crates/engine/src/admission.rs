//! The line of sessions that wait to start. One task goes through it whenever something changes; who may start is decided
//! in [`ostler_domain::admission`].
//!
//! Nothing of it is recorded: who waits is whoever has not started, in the order of their creation, so that a new daemon
//! finds the same line.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ostler_domain::{
    CampaignId, Now, SessionId, Time,
    admission::{
        Account, Candidate, Hold, Limits, MachineLimits, Plan, Room, Running, Standing, plan,
        usual_free_disk, usual_free_memory, usual_starts,
    },
    limits::{ADMISSION_LOOK, START_SETTLES},
    provider::{Profile, Settings},
    session::{Phase, State},
};
use tokio::sync::Notify;

use crate::{
    session::{Command, Handle},
    shared::Shared,
};

/// Who waits and who runs, as their actors say.
#[derive(Default)]
pub(crate) struct Line {
    places: Mutex<HashMap<SessionId, Place>>,
    changed: Notify,
    /// Every session that there was before this daemon has a place: until then nobody knows how many run.
    is_complete: AtomicBool,
}

struct Place {
    who: Candidate,
    handle: Handle,
    standing: Standing,
    phase: Phase,
    /// Since when it has been there for a next message alone.
    idles_since: Option<Time>,
    /// When it left the line, by the clock that counts from boot.
    started: Option<Duration>,
    /// Why it waits.
    why: Option<String>,
}

/// Where a session stands, as its actor tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stands {
    pub(crate) standing: Standing,
    pub(crate) phase: Phase,
    pub(crate) idles_since: Option<Time>,
}

impl Stands {
    pub(crate) fn of(state: &State) -> Self {
        let (standing, idles_since) = (Standing::of(state), state.idles_since());
        Self { standing, phase: state.phase(), idles_since }
    }
}

/// Who is to do something now.
#[derive(Default)]
struct Called {
    start: Vec<Handle>,
    give_way: Vec<Handle>,
}

impl Place {
    fn running(&self, now: &Now) -> Running {
        let settles = self.started.is_some_and(|at| now.since_boot.saturating_sub(at) < START_SETTLES);
        Running {
            id: self.who.id,
            campaign: self.who.campaign,
            provider: self.who.provider.clone(),
            account: self.who.account.clone(),
            is_starting: self.phase == Phase::Starting && settles,
            memory: if settles { self.who.memory } else { 0 },
            frees: self.who.memory,
            hold: match (self.phase, self.idles_since) {
                (Phase::Stopping, _) => Hold::Leaves,
                (_, Some(since)) => Hold::Idle(now.wall.since(since)),
                (_, None) => Hold::Firm,
            },
        }
    }
}

impl Line {
    /// All sessions that there are have a place.
    pub(crate) fn complete(&self) {
        self.is_complete.store(true, Ordering::Release);
        self.changed.notify_one();
    }

    /// Says whether everybody who was there before this daemon is known.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete.load(Ordering::Acquire)
    }

    /// Something else than a session has changed.
    pub(crate) fn look(&self) {
        self.changed.notify_one();
    }

    /// A session is there.
    pub(crate) fn join(&self, who: Candidate, handle: Handle, stands: Stands) {
        let Stands { standing, phase, idles_since } = stands;
        let (started, why) = (None, None);
        let id = who.id;
        self.lock().insert(id, Place { who, handle, standing, phase, idles_since, started, why });
        self.changed.notify_one();
    }

    /// A session stands elsewhere.
    pub(crate) fn moved(&self, id: &SessionId, stands: Stands) {
        if let Some(place) = self.lock().get_mut(id) {
            let Stands { standing, phase, idles_since } = stands;
            (place.standing, place.phase, place.idles_since) = (standing, phase, idles_since);
            place.why = None;
        }
        self.changed.notify_one();
    }

    pub(crate) fn leave(&self, id: &SessionId) {
        self.lock().remove(id);
        self.changed.notify_one();
    }

    /// Why a session has not started, if it is in the line.
    pub(crate) fn why(&self, id: &SessionId) -> Option<String> {
        self.lock().get(id).and_then(|place| place.why.clone())
    }

    /// How many wait.
    pub(crate) fn waiting(&self) -> u64 {
        self.lock().values().filter(|place| place.standing == Standing::Waits).count() as u64
    }

    /// Those that have a process, or are about to.
    pub(crate) fn running(&self) -> u64 {
        self.lock().values().filter(|place| place.standing == Standing::Runs).count() as u64
    }

    /// The sessions of those.
    pub(crate) fn who_runs(&self) -> Vec<SessionId> {
        let places = self.lock();
        let running = places.iter().filter(|(_, place)| place.standing == Standing::Runs);
        running.map(|(id, _)| *id).collect()
    }

    /// Who may start now, and who is to make room. The former count as running from here on; their actors say so, or
    /// that they cannot. The latter are only asked: they may have been told something meanwhile.
    fn admit(&self, limits: &Limits, room: &Room, names: &BTreeMap<CampaignId, String>, now: &Now) -> Called {
        let mut places = self.lock();
        let of = |standing: Standing| places.values().filter(move |place| place.standing == standing);
        let waiting = of(Standing::Waits).map(|place| place.who.clone()).collect();
        let running: Vec<Running> = of(Standing::Runs).map(|place| place.running(now)).collect();
        let Plan { start, wait, give_way } = plan(waiting, &running, limits, room);
        for (id, wait) in wait {
            if let Some(place) = places.get_mut(&id) {
                let name = names.get(&place.who.campaign).map(String::as_str).unwrap_or_default();
                place.why = Some(wait.words(name));
            }
        }
        let mut called = Called::default();
        for id in start {
            if let Some(place) = places.get_mut(&id) {
                (place.standing, place.phase) = (Standing::Runs, Phase::Starting);
                (place.started, place.why) = (Some(now.since_boot), None);
                called.start.push(place.handle.clone());
            }
        }
        called.give_way = give_way.iter().filter_map(|id| Some(places.get(id)?.handle.clone())).collect();
        called
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Place>> {
        // Nothing panics while holding it; a poisoned map would still be whole.
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Goes through the line until the daemon leaves.
pub(crate) fn keep(shared: &Arc<Shared>) {
    let shared = shared.clone();
    tokio::spawn(async move {
        let mut last = MachineLimits::default();
        loop {
            // Memory and disk tell nobody when there is more of them, and starts settle by themselves.
            let look = async {
                match shared.line.waiting() {
                    0 => std::future::pending().await,
                    _ => tokio::time::sleep(ADMISSION_LOOK).await,
                }
            };
            tokio::select! {
                () = shared.line.changed.notified() => {}
                () = look => {}
                () = shared.shutdown.cancelled() => return,
            }
            if !shared.line.is_complete() || shared.line.waiting() == 0 {
                continue;
            }
            match shared.options.providers.admission() {
                Ok(said) => last = said,
                // As before, until the file can be read again: whoever has just mistyped stops nobody.
                Err(refusal) => tracing::warn!(%refusal, "the limits of sessions cannot be read"),
            }
            let (limits, names) = shared.limits(&last).await;
            let Called { start, give_way } =
                shared.line.admit(&limits, &shared.room(), &names, &shared.clock.now());
            // Nobody listens where the session has just ended; its place goes with it.
            for handle in start {
                let _ = handle.commands.send(Command::Start).await;
            }
            for handle in give_way {
                let _ = handle.commands.send(Command::GiveWay).await;
            }
        }
    });
}

/// How many sessions each account of a provider may have at once.
fn of_accounts(provider: &str, settings: &Settings) -> Vec<(Account, u32)> {
    let of = |(name, profile): (&String, &Profile)| {
        let account = Account { provider: provider.to_owned(), profile: name.parse().ok()? };
        Some((account, profile.sessions?))
    };
    settings.profiles.iter().filter_map(of).collect()
}

impl Shared {
    /// The limits that hold now, with the names of campaigns.
    async fn limits(&self, said: &MachineLimits) -> (Limits, BTreeMap<CampaignId, String>) {
        let campaigns = self.store.campaigns().await;
        let campaigns =
            campaigns.inspect_err(|error| tracing::warn!(%error, "campaigns' limits are not known"));
        let campaigns = campaigns.unwrap_or_default();
        let providers = self.options.providers.all().unwrap_or_default();
        let drained = self.drain.borrow().as_ref().map(|drain| {
            let why = if drain.why.is_empty() { String::new() } else { format!(": {}", drain.why) };
            format!("drained by {}{why}", drain.by.0)
        });
        let limits = Limits {
            drained,
            sessions: said.sessions,
            of_campaigns: campaigns
                .iter()
                .filter_map(|campaign| Some((campaign.id, campaign.policy.limits.sessions?)))
                .collect(),
            of_accounts: providers.iter().flat_map(|(name, settings)| of_accounts(name, settings)).collect(),
            of_providers: providers
                .into_iter()
                .filter_map(|(name, settings)| Some((name, settings.sessions?)))
                .collect(),
            starts: Some(usual_starts(std::thread::available_parallelism().map_or(1, usize::from))),
            free_memory: said
                .free_memory
                .unwrap_or_else(|| memory().map_or(0, |of| usual_free_memory(of.total))),
            free_disk: self.free_disk(said),
        };
        (limits, campaigns.into_iter().map(|campaign| (campaign.id, campaign.name.to_string())).collect())
    }

    fn room(&self) -> Room {
        Room {
            memory: memory().map(|memory| memory.free),
            disk: disk(&self.options.state_dir).map(|disk| disk.free),
        }
    }

    fn free_disk(&self, said: &MachineLimits) -> u64 {
        let usual = || disk(&self.options.state_dir).map_or(0, |disk| usual_free_disk(disk.total));
        said.free_disk.unwrap_or_else(usual)
    }

    /// What the disk of the record has free, and what of it stays free.
    pub(crate) fn disk_room(&self) -> DiskRoom {
        let said = self.options.providers.admission().unwrap_or_default();
        let disk = disk(&self.options.state_dir).unwrap_or_default();
        DiskRoom { free: disk.free, total: disk.total, least: self.free_disk(&said) }
    }
}

/// The disk that the record is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiskRoom {
    pub free: u64,
    pub total: u64,
    /// Below this much, nothing new starts.
    pub least: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Amount {
    free: u64,
    total: u64,
}

/// What of the machine's memory, or of the group's that this daemon is in, can be had.
fn memory() -> Option<Amount> {
    let machine = of_machine(&fs::read_to_string("/proc/meminfo").ok()?)?;
    let group = own_group().and_then(|group| of_group(&group));
    Some(match group {
        Some(group) => Amount { free: machine.free.min(group.free), total: machine.total.min(group.total) },
        None => machine,
    })
}

fn of_machine(meminfo: &str) -> Option<Amount> {
    let field = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1_024)
    };
    Some(Amount { free: field("MemAvailable")?, total: field("MemTotal")? })
}

/// The directory of this process's group of version 2.
fn own_group() -> Option<PathBuf> {
    let text = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(Path::new("/sys/fs/cgroup").join(path))
}

/// The smallest room of a group and those around it; none where nothing limits them.
fn of_group(group: &Path) -> Option<Amount> {
    let number = |path: PathBuf| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let of = |dir: &Path| {
        let total = number(dir.join("memory.max"))?;
        let used = number(dir.join("memory.current"))?;
        // What the kernel keeps of files goes when it is needed.
        let stat = fs::read_to_string(dir.join("memory.stat")).unwrap_or_default();
        let cached = stat.lines().find_map(|line| line.strip_prefix("inactive_file ")?.parse::<u64>().ok());
        let used = used.saturating_sub(cached.unwrap_or_default());
        Some(Amount { free: total.saturating_sub(used), total })
    };
    group
        .ancestors()
        .take_while(|dir| dir.starts_with("/sys/fs/cgroup"))
        .filter_map(of)
        .min_by_key(|of| of.free)
}

fn disk(dir: &Path) -> Option<Amount> {
    let facts = rustix::fs::statvfs(dir).ok()?;
    Some(Amount {
        free: facts.f_bavail.saturating_mul(facts.f_frsize),
        total: facts.f_blocks.saturating_mul(facts.f_frsize),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_from_what_the_kernel_says() {
        let text = "MemTotal:       24117248 kB\nMemFree:         1000000 kB\nMemAvailable:   23068672 kB\n";
        assert_eq!(of_machine(text), Some(Amount { free: 22 << 30, total: 23 << 30 }));
        assert_eq!(of_machine("MemTotal: 1 kB\n"), None);
        assert!(memory().is_some_and(|memory| memory.free <= memory.total && memory.free > 0));
    }

    #[test]
    fn the_tightest_group_counts() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(of_group(dir.path()), None, "nothing outside of the kernel's directory is read");
        assert!(disk(dir.path()).is_some_and(|disk| disk.free <= disk.total));
    }
}
