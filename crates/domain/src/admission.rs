//! Which of the sessions that wait may start: by slots, by what starts already, by free memory and by free disk.
//!
//! Everybody is accepted; who cannot start waits in one line, and is told for what. The line is made anew from what
//! is recorded each time, so it is the same after a restart of the daemon.

mod give_way;
mod words;

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    CampaignId, Name, SessionId,
    session::{Phase, State},
};

/// How much more pressing one session is than another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    Low,
    #[default]
    Normal,
    High,
}

impl Priority {
    pub const ALL: &'static [Priority] = &[Priority::Low, Priority::Normal, Priority::High];

    pub const fn as_str(self) -> &'static str {
        match self {
            Priority::Low => "low",
            Priority::Normal => "normal",
            Priority::High => "high",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|priority| priority.as_str() == text)
    }

    /// What stored forms leave out.
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

/// Where a session stands: in the line, on a slot, or beside both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It would start if it might.
    Waits,
    /// It has a process, or is about to. Idle and paused ones too: what they take they have.
    Runs,
    /// Something of its own keeps it from starting, so it takes nobody's place.
    Aside,
}

impl Standing {
    pub fn of(state: &State) -> Self {
        match state.phase() {
            Phase::Created if state.is_frozen() => Standing::Aside,
            Phase::Created => Standing::Waits,
            Phase::Starting | Phase::Live | Phase::Stopping => Standing::Runs,
            Phase::Ended => Standing::Aside,
        }
    }
}

/// How much there may be at once. What is not said is not limited.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Limits {
    /// Nothing new starts: who said so, and why.
    pub drained: Option<String>,
    pub sessions: Option<u32>,
    pub of_campaigns: BTreeMap<CampaignId, u32>,
    pub of_providers: BTreeMap<String, u32>,
    pub of_accounts: BTreeMap<Account, u32>,
    /// Sessions that may be starting at the same time; none means any number.
    pub starts: Option<u32>,
    /// Bytes of memory and of disk that stay free.
    pub free_memory: u64,
    pub free_disk: u64,
}

/// How much there may be at once, as the machine's owner says; what is not said has its usual value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MachineLimits {
    pub sessions: Option<u32>,
    pub free_memory: Option<u64>,
    pub free_disk: Option<u64>,
}

/// What the machine has free, where it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Room {
    pub memory: Option<u64>,
    pub disk: Option<u64>,
}

/// One of a provider's accounts: a name of its profiles.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Account {
    pub provider: String,
    pub profile: Name,
}

/// A session in the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub id: SessionId,
    /// Sessions are numbered as they are created.
    pub number: u64,
    pub priority: Priority,
    /// It goes on with work that was begun.
    pub continues: bool,
    pub campaign: CampaignId,
    pub provider: String,
    /// None for what the provider's own section says.
    pub account: Option<Account>,
    /// Bytes that its program usually takes.
    pub memory: u64,
}

/// A session on a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    pub id: SessionId,
    pub campaign: CampaignId,
    pub provider: String,
    pub account: Option<Account>,
    pub is_starting: bool,
    /// Bytes that it is going to take and that the machine still counts as free.
    pub memory: u64,
    /// Bytes that the machine is likely to have more when it is gone.
    pub frees: u64,
    pub hold: Hold,
}

/// How firmly a session holds its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// It has something to do, or is to be kept.
    Firm,
    /// It has had nothing to do for so long, and a message would wake its conversation.
    Idle(Duration),
    /// It is ending.
    Leaves,
}

/// What a session waits for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum For {
    /// The end of the drain.
    Drain {
        said: String,
    },
    Disk {
        free: u64,
        least: u64,
    },
    Slot {
        most: u32,
    },
    CampaignSlot {
        campaign: CampaignId,
        most: u32,
    },
    ProviderSlot {
        provider: String,
        most: u32,
    },
    AccountSlot {
        account: Account,
        most: u32,
    },
    Memory {
        free: u64,
        least: u64,
    },
    /// Others that are starting.
    Start {
        starting: u32,
    },
}

/// Why a session has not started, and how many wait for the same before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    pub what: For,
    /// From 1.
    pub place: u32,
}

/// Who starts now, in this order, why the others do not, and which idle ones end so that they can.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    pub start: Vec<SessionId>,
    pub wait: Vec<(SessionId, Wait)>,
    pub give_way: Vec<SessionId>,
}

/// Goes through the line, the most pressing first, and lets start whoever fits. Who waits for its campaign or its
/// provider is passed by; who waits for the machine is not.
pub fn plan(mut waiting: Vec<Candidate>, running: &[Running], limits: &Limits, room: &Room) -> Plan {
    waiting.sort_by_key(|one| (std::cmp::Reverse(one.priority), !one.continues, one.number));
    let mut taken = Taken::of(running);
    let mut plan = Plan::default();
    let mut lines: BTreeMap<For, u32> = BTreeMap::new();
    let mut short_of: Option<For> = None;
    let mut left = Vec::new();
    for one in waiting {
        // Whoever needs little does not pass by who needs much: it would wait for ever.
        match taken.hindrance(&one, limits, room).or_else(|| short_of.clone()) {
            None => {
                taken.add(&one.campaign, (&one.provider, one.account.as_ref()), true, one.memory);
                plan.start.push(one.id);
            }
            Some(what) => {
                let place = lines.entry(what.clone()).or_default();
                *place += 1;
                if matches!(what, For::Memory { .. }) {
                    short_of = Some(what.clone());
                }
                plan.wait.push((one.id, Wait { what: what.clone(), place: *place }));
                left.push((one, what));
            }
        }
    }
    plan.give_way = give_way::choose(&left, running, taken, limits, *room);
    plan
}

/// What is in use.
#[derive(Default)]
struct Taken {
    all: u32,
    of_campaigns: BTreeMap<CampaignId, u32>,
    of_providers: BTreeMap<String, u32>,
    of_accounts: BTreeMap<Account, u32>,
    starting: u32,
    /// Memory that is promised and not yet taken.
    promised: u64,
}

impl Taken {
    fn of(running: &[Running]) -> Self {
        let mut taken = Self::default();
        for one in running {
            taken.add(&one.campaign, (&one.provider, one.account.as_ref()), one.is_starting, one.memory);
        }
        taken
    }

    fn add(
        &mut self,
        campaign: &CampaignId,
        (provider, account): (&str, Option<&Account>),
        is_starting: bool,
        memory: u64,
    ) {
        self.all += 1;
        *self.of_campaigns.entry(*campaign).or_default() += 1;
        *self.of_providers.entry(provider.to_owned()).or_default() += 1;
        if let Some(account) = account {
            *self.of_accounts.entry(account.clone()).or_default() += 1;
        }
        self.starting += u32::from(is_starting);
        self.promised = self.promised.saturating_add(memory);
    }

    fn remove(&mut self, one: &Running) {
        let less = |count: Option<&mut u32>| count.into_iter().for_each(|count| *count -= 1);
        self.all -= 1;
        less(self.of_campaigns.get_mut(&one.campaign));
        less(self.of_providers.get_mut(&one.provider));
        less(one.account.as_ref().and_then(|account| self.of_accounts.get_mut(account)));
        self.starting -= u32::from(one.is_starting);
        self.promised = self.promised.saturating_sub(one.memory);
    }

    fn hindrance(&self, one: &Candidate, limits: &Limits, room: &Room) -> Option<For> {
        if let Some(said) = limits.drained.clone() {
            return Some(For::Drain { said });
        }
        if let Some(free) = room.disk.filter(|free| *free < limits.free_disk) {
            return Some(For::Disk { free, least: limits.free_disk });
        }
        let starting = self.starting;
        let start = || limits.starts.filter(|most| starting >= *most).map(|_| For::Start { starting });
        self.missing(one, limits, room).next().or_else(start)
    }

    /// Everything that running ones hold and that is missing for another to start.
    fn missing(&self, one: &Candidate, limits: &Limits, room: &Room) -> impl Iterator<Item = For> + use<> {
        let slot = limits.sessions.filter(|most| self.all >= *most).map(|most| For::Slot { most });
        let of_campaign = self.of_campaigns.get(&one.campaign).copied().unwrap_or_default();
        let most = limits.of_campaigns.get(&one.campaign).copied().filter(|most| of_campaign >= *most);
        let campaign_slot = most.map(|most| For::CampaignSlot { campaign: one.campaign, most });
        let of_provider = self.of_providers.get(&one.provider).copied().unwrap_or_default();
        let most = limits.of_providers.get(&one.provider).copied().filter(|most| of_provider >= *most);
        let provider_slot = most.map(|most| For::ProviderSlot { provider: one.provider.clone(), most });
        let account_slot = one.account.as_ref().and_then(|account| {
            let taken = self.of_accounts.get(account).copied().unwrap_or_default();
            let most = limits.of_accounts.get(account).copied().filter(|most| taken >= *most)?;
            Some(For::AccountSlot { account: account.clone(), most })
        });
        // Where none of ours runs, waiting frees nothing: one always starts.
        let unpromised = room.memory.map(|free| free.saturating_sub(self.promised));
        let is_short = |free: &u64| *free < limits.free_memory.saturating_add(one.memory);
        let memory = unpromised
            .filter(is_short)
            .filter(|_| self.all > 0)
            .map(|free| For::Memory { free, least: limits.free_memory });
        [slot, campaign_slot, provider_slot, account_slot, memory].into_iter().flatten()
    }
}

/// What stays free of memory where nobody says: a sixteenth of it, and at most this much.
const FREE_MEMORY_MOST: u64 = 1 << 30;
/// What stays free of the disk where nobody says: a fiftieth of it, and at most this much.
const FREE_DISK_MOST: u64 = 1 << 30;

/// How much of so much memory stays free where nobody says.
pub fn usual_free_memory(total: u64) -> u64 {
    (total / 16).min(FREE_MEMORY_MOST)
}

/// How much of a disk of this size stays free where nobody says.
pub fn usual_free_disk(total: u64) -> u64 {
    (total / 50).min(FREE_DISK_MOST)
}

/// How many sessions may be starting at once on so many processors.
pub fn usual_starts(processors: usize) -> u32 {
    u32::try_from(processors).unwrap_or(u32::MAX).saturating_mul(4).max(8)
}
