//! What every actor and every handler holds: the store, the clock, the program, and who else there is.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use ostler_domain::{
    CampaignId, Name, Policy, Refusal, SessionId, Time,
    admission::{Account, Candidate},
    campaign::Campaign,
    conversation::Entry,
    history::read_only,
    provider::ACP_PREFIX,
    query::no_such,
    session::{Config, Context, Sandbox},
};
use ostler_providers::{Provider, registry};
use ostler_store::{Drain, Halt, LoadedSession, ReadError, Store};
use tokio::sync::{OnceCell, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    accounts::Accounts,
    admission::{Line, Stands},
    attended::AtWork,
    audit::Audit,
    cgroups::Cgroups,
    clock::{Clock, entropy},
    confine::Machine,
    deltas::Deltas,
    export::Exported,
    git::Git,
    hidden_watch::Watcher,
    keeper::Program,
    keys::Keys,
    logins,
    lookout::Lookout,
    mission::Missions,
    notices::Untold,
    options::Options,
    prices::PriceFile,
    programs::Programs,
    promises::Promises,
    retention::Retention,
    session::{Actor, Handle},
    sessions::Sessions,
    transcript::Transcripts,
};

pub(crate) struct Shared {
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    /// When this daemon began.
    pub(crate) began: Time,
    pub(crate) program: Program,
    pub(crate) options: Options,
    pub(crate) epoch: Epoch,
    /// The drain in force.
    pub(crate) drain: watch::Sender<Option<Drain>>,
    /// The halt in force.
    pub(crate) halt: watch::Sender<Option<Halt>>,
    pub(crate) at_work: AtWork,
    pub(crate) sessions: Sessions,
    pub(crate) deltas: Deltas,
    pub(crate) tasks: TaskTracker,
    pub(crate) shutdown: CancellationToken,
    pub(crate) cgroups: Cgroups,
    pub(crate) audit: Audit,
    pub(crate) watcher: Watcher,
    /// Set when a sandbox has been seen to start.
    pub(crate) can_confine: OnceCell<()>,
    pub(crate) programs: Arc<Programs>,
    pub(crate) keys: Keys,
    pub(crate) prices: Arc<PriceFile>,
    pub(crate) accounts: Accounts,
    /// Whoever starts another daemon when this one dies, where no keeper would.
    pub(crate) lookout: Lookout,
    /// Channels that do not hear what they are told.
    pub(crate) untold: Untold,
    /// Sessions that wait to start.
    pub(crate) line: Line,
    pub(crate) promises: Promises,
    pub(crate) exported: Exported,
    pub(crate) git: Git,
    pub(crate) transcripts: Transcripts,
    pub(crate) retention: Retention,
    pub(crate) missions: Missions,
    /// Logins are renewed one at a time.
    pub(crate) renewing: tokio::sync::Mutex<logins::Failures>,
    /// One import at a time.
    pub(crate) importing: tokio::sync::Mutex<()>,
    /// Held by whoever follows the stores of agent programs; the other one only while it looks.
    pub(crate) watching: tokio::sync::Mutex<()>,
    /// Places for questions in SQL.
    pub(crate) questions: Arc<tokio::sync::Semaphore>,
    /// Names are chosen and conversations opened one at a time.
    pub(crate) naming: tokio::sync::Mutex<()>,
}

/// The daemon's epoch: keepers serve only the highest.
pub(crate) struct Epoch(AtomicU64);

impl Epoch {
    pub(crate) fn new(epoch: u64) -> Self {
        Self(AtomicU64::new(epoch))
    }

    pub(crate) fn current(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

impl Shared {
    /// How many sessions have an agent that runs, or is about to.
    pub(crate) fn at_large(&self) -> u64 {
        self.line.who_runs().iter().filter(|id| self.sessions.has_agent(id)).count() as u64
    }

    pub(crate) fn new(
        store: Store,
        epoch: u64,
        clock: Clock,
        program: Program,
        options: Options,
        (halt, drain): (Option<Halt>, Option<Drain>),
    ) -> Self {
        let shutdown = CancellationToken::new();
        let prices = Arc::new(PriceFile::new(options.prices_json.clone()));
        let current = prices.clone();
        store.take_prices_from(move || current.current());
        let (watcher, watching) = Watcher::new(shutdown.clone());
        tokio::spawn(watching);
        Self {
            audit: Audit::below(&options.state_dir),
            programs: Programs::below(&options.state_dir),
            watcher,
            store,
            began: clock.now().wall,
            clock,
            program,
            options,
            epoch: Epoch::new(epoch),
            drain: watch::Sender::new(drain),
            halt: watch::Sender::new(halt),
            at_work: AtWork::default(),
            sessions: Sessions::default(),
            deltas: Deltas::new(),
            tasks: TaskTracker::new(),
            shutdown,
            cgroups: Cgroups::find(),
            can_confine: OnceCell::new(),
            keys: Keys::default(),
            prices,
            accounts: Accounts::default(),
            lookout: Lookout::default(),
            untold: Untold::default(),
            line: Line::default(),
            promises: Promises::default(),
            exported: Exported::default(),
            git: Git::default(),
            transcripts: Transcripts::default(),
            retention: Retention::default(),
            missions: Missions::default(),
            renewing: Default::default(),
            importing: tokio::sync::Mutex::new(()),
            watching: tokio::sync::Mutex::new(()),
            questions: Arc::new(tokio::sync::Semaphore::new(crate::sql::AT_ONCE)),
            naming: tokio::sync::Mutex::new(()),
        }
    }

    pub(crate) fn session_dir(&self, id: &SessionId) -> PathBuf {
        self.options.state_dir.join("sessions").join(id.to_string())
    }

    /// A context for decisions that name nothing new.
    pub(crate) fn moment(&self) -> Context {
        Context {
            now: self.clock.now(),
            entropy: 0,
            policy: None,
            prices: self.prices.current(),
            on_reboot: self.options.on_reboot,
            is_work_over: false,
        }
    }

    pub(crate) fn context(&self) -> Context {
        Context { entropy: entropy(), ..self.moment() }
    }

    /// What confines the sessions that are created now.
    pub(crate) fn sandbox(&self) -> Sandbox {
        if self.options.unconfined { Sandbox::Off } else { Sandbox::On }
    }

    /// Clears away what keepers of other times and homes could not.
    pub(crate) fn sweep(&self) {
        let cgroups = self.cgroups.clone();
        tokio::task::spawn_blocking(move || cgroups.sweep());
    }

    /// Commits an epoch above one that a keeper has seen.
    pub(crate) async fn raise_epoch(&self, seen: u64) -> Result<(), Refusal> {
        if self.epoch.current() <= seen {
            let raised = self.store.raise_epoch(seen + 1).await.map_err(Refusal::from)?;
            self.epoch.0.fetch_max(raised, Ordering::AcqRel);
        }
        Ok(())
    }

    /// Starts the actor of a session that the store knows and that has none.
    pub(crate) async fn wake(self: &Arc<Self>, id: SessionId) -> Result<Option<Handle>, Refusal> {
        if let Some(handle) = self.sessions.get(&id) {
            return Ok(Some(handle));
        }
        let Some(loaded) = self.store.load_session(id).await? else { return Ok(None) };
        if loaded.state.is_ended() {
            return Ok(None);
        }
        if let Some(origin) = &loaded.state.created().imported {
            return Err(read_only(&loaded.state.view(), origin, "talked to or changed"));
        }
        let provider = self.provider(&loaded.state.created().config.provider)?;
        let (who, stands) = (candidate(&loaded, provider.as_ref()), Stands::of(&loaded.state));
        let actor = Actor::new(self.clone(), loaded, provider)?;
        let handle = actor.handle();
        if !self.sessions.register(id, handle.clone()) {
            return Ok(self.sessions.get(&id));
        }
        self.line.join(who, handle.clone(), stands);
        self.tasks.spawn(actor.run());
        Ok(Some(handle))
    }

    /// The providers that there are, those of the configuration too.
    pub(crate) fn provider_names(&self) -> Vec<String> {
        let mut known: Vec<_> = registry::all().iter().map(|provider| provider.name().to_owned()).collect();
        let configured = self.options.providers.all().unwrap_or_default();
        known.extend(configured.into_keys().filter(|name| name.starts_with(ACP_PREFIX)));
        known
    }

    pub(crate) fn provider(&self, name: &str) -> Result<Arc<dyn Provider>, Refusal> {
        let hint = ("ostler run -p script \"…\"", "uses one that is always there");
        registry::find(name).ok_or_else(|| self.no_such_provider(name).hint(hint.0, hint.1))
    }

    pub(crate) fn no_such_provider(&self, name: &str) -> Refusal {
        let known = self.provider_names();
        let refusal = no_such("provider", name, known.iter().map(String::as_str));
        Refusal { reason: ostler_domain::Reason::ProviderUnknown, ..refusal }
            .hint("ostler provider ls", "lists them, and what each lacks")
    }

    /// The provider that a conversation was given. Rows of other programs' stores name vendors of models there: those are
    /// kept, and mean nobody here.
    pub(crate) fn provider_given(&self, entry: &Entry) -> Option<String> {
        entry.provider_override.clone().filter(|name| self.provider(name).is_ok())
    }

    /// The account that a conversation was given. What another program's store calls one is none of ours, unless there is
    /// one of that name; what somebody set here must be there, or another account would pay.
    pub(crate) fn account_given(&self, provider: &str, entry: &Entry) -> Option<Name> {
        let is_ours = |name: &Name| {
            !entry.is_imported() || self.options.providers.of_account(provider, Some(name)).is_ok()
        };
        entry.auth_profile_override.as_deref().and_then(|name| name.parse().ok()).filter(is_ours)
    }

    /// Refuses what would only fail to start: the provider's program is not there, or too old.
    pub(crate) async fn check_program(&self, provider: &str, account: Option<&Name>) -> Result<(), Refusal> {
        let settings = self.options.providers.of_account(provider, account)?;
        let home = self.options.home_dir.as_deref();
        self.programs.find(self.provider(provider)?.as_ref(), &settings, home).await.map(drop)
    }

    /// How a session is run where its conversation says so: who answers its agent, and how much its model thinks.
    pub(crate) fn as_noted(&self, entry: &Entry, mut config: Config) -> Config {
        if let Ok(provider) = self.provider(&config.provider)
            && let Some((key, value)) = entry.thinking_levels().find_map(|level| provider.thinking(level))
        {
            config.provider_config.insert(key.to_owned(), value);
        }
        Config { approve: entry.approve().unwrap_or(config.approve), ..config }
    }

    /// A campaign's policy as it is now. None where it cannot be read: then no rule answers an agent, but a person.
    pub(crate) async fn policy_of(&self, campaign: CampaignId) -> Option<Policy> {
        let known = self.store.campaigns().await;
        let known = known.inspect_err(|error| tracing::warn!(%campaign, %error, "its rules cannot be read"));
        known.ok()?.into_iter().find(|known| known.id == campaign).map(|known| known.policy)
    }

    /// This machine, as somebody in a campaign is to see it.
    pub(crate) async fn machine(&self, campaign: &Campaign) -> Result<Machine<'_>, ReadError> {
        let all = self.store.campaigns().await?;
        let others = all.iter().filter(|other| other.id != campaign.id);
        let written =
            all.iter().chain([campaign]).flat_map(|one| one.policy.write.iter().chain([&one.root.path]));
        Ok(Machine {
            options: &self.options,
            program: self.program.on_disk(),
            other_roots: others.map(|other| other.root.path.clone()).collect(),
            writable: written.cloned().collect(),
        })
    }
}

/// A session as the line of those who wait to start knows it.
fn candidate(loaded: &LoadedSession, provider: &dyn Provider) -> Candidate {
    let created = loaded.state.created();
    Candidate {
        id: created.id,
        number: loaded.number,
        priority: created.config.priority,
        continues: created.continues.is_some(),
        campaign: created.campaign,
        provider: created.config.provider.clone(),
        account: created
            .config
            .auth_profile
            .clone()
            .map(|profile| Account { provider: created.config.provider.clone(), profile }),
        memory: provider.usual_memory(),
    }
}
