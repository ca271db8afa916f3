//! What every actor and every handler holds: the store, the clock, the program, and who else there is.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use ostler_domain::{
    Refusal, SessionId,
    campaign::Campaign,
    confinement,
    gateway::GatewayOrder,
    policy::NetMode,
    session::{Created, Sandbox},
};
use ostler_providers::{Launch, Provider, registry};
use ostler_store::{Halt, ReadError, Store};
use ostler_tape::LaunchDocument;
use tokio::sync::watch;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    audit::Audit,
    clock::Clock,
    confine::{self, Confined, Machine},
    deltas::Deltas,
    keeper::{NotStarted, Program, cgroup_parent, sweep_cgroups},
    options::Options,
    session::{Actor, Handle},
    sessions::Sessions,
};

pub(crate) struct Shared {
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) program: Program,
    pub(crate) options: Options,
    pub(crate) epoch: Epoch,
    /// The halt in force.
    pub(crate) halt: watch::Sender<Option<Halt>>,
    pub(crate) sessions: Sessions,
    pub(crate) deltas: Deltas,
    pub(crate) tasks: TaskTracker,
    pub(crate) shutdown: CancellationToken,
    cgroups: Option<PathBuf>,
    pub(crate) audit: Audit,
    /// Set when a sandbox has been seen to start.
    pub(crate) can_confine: OnceLock<()>,
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
    pub(crate) fn new(
        store: Store,
        epoch: u64,
        clock: Clock,
        program: Program,
        options: Options,
        halt: Option<Halt>,
    ) -> Self {
        Self {
            audit: Audit::below(&options.state_dir),
            store,
            clock,
            program,
            options,
            epoch: Epoch::new(epoch),
            halt: watch::Sender::new(halt),
            sessions: Sessions::default(),
            deltas: Deltas::new(),
            tasks: TaskTracker::new(),
            shutdown: CancellationToken::new(),
            cgroups: cgroup_parent(),
            can_confine: OnceLock::new(),
            naming: tokio::sync::Mutex::new(()),
        }
    }

    pub(crate) fn session_dir(&self, id: &SessionId) -> PathBuf {
        self.options.state_dir.join("sessions").join(id.to_string())
    }

    /// What confines the sessions that are created now.
    pub(crate) fn sandbox(&self) -> Sandbox {
        if self.options.unconfined { Sandbox::Off } else { Sandbox::On }
    }

    /// Clears away what keepers of other times and homes could not.
    pub(crate) fn sweep(&self) {
        if let Some(parent) = self.cgroups.clone() {
            tokio::task::spawn_blocking(move || sweep_cgroups(&parent));
        }
    }

    pub(crate) fn session_cgroup(&self, id: &SessionId) -> Option<PathBuf> {
        self.cgroups.as_ref().map(|parent| parent.join(id.to_string()))
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
        let provider = self.provider(&loaded.state.created().config.provider)?;
        let actor = Actor::new(self.clone(), loaded, provider)?;
        let handle = actor.handle();
        if !self.sessions.register(id, handle.clone()) {
            return Ok(self.sessions.get(&id));
        }
        self.tasks.spawn(actor.run());
        Ok(Some(handle))
    }

    pub(crate) fn provider(&self, name: &str) -> Result<&'static dyn Provider, Refusal> {
        registry::find(name).ok_or_else(|| {
            let known: Vec<_> = registry::names().collect();
            Refusal::new(
                ostler_domain::Reason::ProviderUnknown,
                format!("there is no provider \"{}\"", ostler_domain::text::one_line(name, 64)),
            )
            .because(format!("this version knows: {}", known.join(", ")))
            .hint(format!("ostler run -p {} \"…\"", known[0]), "uses one that exists")
        })
    }

    /// Makes a keeper's document, and the directory that it speaks of.
    pub(crate) async fn launch_document(
        &self,
        created: &Created,
        provider: &dyn Provider,
        attempt: u32,
        dir: &Path,
    ) -> Result<LaunchDocument, NotStarted> {
        let config = &created.config;
        let (confined, gateway) = match created.sandbox {
            Sandbox::On => {
                let usual = provider.usual_network();
                self.confined(created, usual).await.map(|(confined, gateway)| (Some(confined), gateway))?
            }
            Sandbox::Off => (None, None),
        };
        let launch = Launch {
            // Outside of a sandbox the keeper's own image: an upgrade on disk does not mix versions.
            ostler: PathBuf::from(if confined.is_some() { confinement::PROGRAM } else { "/proc/self/exe" }),
            model: config.model.clone(),
            config: config.provider_config.clone(),
        };
        let stage = |stage: &str, message: String| NotStarted { stage: stage.to_owned(), message };
        let command = provider.command(&launch).map_err(|error| stage("command", error.to_string()))?;
        crate::campaign::check_unmoved(&config.working_dir).map_err(|error| stage("campaign", error))?;
        ostler_tape::write_attempt(dir, attempt).map_err(|error| {
            stage("directory", format!("the session's directory cannot be written to: {error}"))
        })?;
        let mut document =
            LaunchDocument::new(created.id.to_string(), attempt, dir.to_owned(), command.program);
        document.args = command.args;
        document.cwd = PathBuf::from(&config.working_dir);
        let (confinement, environment) = match confined {
            Some(Confined { confinement, environment }) => (Some(confinement), environment),
            None => (None, unconfined_environment()),
        };
        document.env = self.environment(environment, created, command.env);
        document.confinement = confinement;
        document.gateway = gateway;
        document.cgroup = self.session_cgroup(&created.id);
        document.ladder = provider.stop_ladder();
        document.daemon_json = self.options.daemon_json.clone();
        document.orphan_grace_ms =
            self.options.orphan_grace.map(|grace| u64::try_from(grace.as_millis()).unwrap_or(u64::MAX));
        if let Some(tape_bytes) = self.options.tape_bytes {
            document.tape_bytes = tape_bytes;
        }
        Ok(document)
    }

    /// The sandbox of a session, as its policy and this machine make it, and what its gateway is told.
    async fn confined(
        &self,
        created: &Created,
        usual_network: NetMode,
    ) -> Result<(Confined, Option<GatewayOrder>), NotStarted> {
        let not_known = |message: String| NotStarted { stage: "campaign".to_owned(), message };
        let found = self.store.campaign(created.campaign).await;
        let campaign = found
            .map_err(|error| not_known(error.to_string()))?
            .ok_or_else(|| not_known(format!("campaign {} is not recorded", created.campaign.short())))?
            .campaign;
        let machine = self.machine(&campaign).await.map_err(|error| not_known(error.to_string()))?;
        let policy = &created.policy;
        let net_mode = policy.net_mode.unwrap_or(usual_network);
        let whose = created.conversation.to_string();
        let mut confined = machine.confine(policy, net_mode, &campaign.root, &whose)?;
        let gateway = confine::gateway(&mut confined, policy, &campaign.name, &self.options)?;
        Ok((confined, gateway))
    }

    /// This machine, as somebody in a campaign is to see it.
    pub(crate) async fn machine(&self, campaign: &Campaign) -> Result<Machine<'_>, ReadError> {
        let others = self.store.campaigns().await?.into_iter().filter(|other| other.id != campaign.id);
        Ok(Machine {
            options: &self.options,
            program: self.program.on_disk(),
            other_roots: others.map(|other| other.root.path).collect(),
        })
    }

    /// What is there at the beginning; the reserved names come last, so that nothing overrides them.
    fn environment(
        &self,
        beginning: Vec<(String, String)>,
        created: &Created,
        provider: Vec<(String, String)>,
    ) -> Vec<(String, String)> {
        let config = &created.config;
        let reserved = [
            ("OSTLER_SESSION_ID", created.id.to_string()),
            ("OSTLER_CAMPAIGN", created.campaign.to_string()),
            ("OSTLER_CAMPAIGN_DIR", config.working_dir.clone()),
            ("OSTLER_PROVIDER", config.provider.clone()),
        ];
        let mut environment: std::collections::BTreeMap<String, String> = beginning.into_iter().collect();
        environment.extend(config.environment.clone());
        environment.extend(provider);
        environment.extend(reserved.map(|(name, value)| (name.to_owned(), value)));
        environment.into_iter().collect()
    }

    /// Has a session go on in a new one, after a while.
    pub(crate) fn continue_later(self: &Arc<Self>, id: SessionId, after: Duration) {
        let shared = self.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(after) => {}
                // The next daemon finds it in the store.
                () = shared.shutdown.cancelled() => return,
            }
            if let Err(refusal) = crate::restart::go_on(&shared, id).await {
                tracing::warn!(session = %id, %refusal, "the session cannot go on");
            }
        });
    }
}

/// The few variables of ours that an agent without a sandbox gets.
fn unconfined_environment() -> Vec<(String, String)> {
    const INHERITED: &[&str] = &["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "TMPDIR", "TZ"];
    INHERITED.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?))).collect()
}
