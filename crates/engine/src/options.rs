//! What a daemon may be told about its engine.

use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc, time::Duration};

use ostler_domain::{
    Name, Refusal, admission::MachineLimits, config::Config, policy::IdleStop, provider::Settings,
    reboot::OnReboot, retention::Rules, session::WatchdogLimits,
};

use crate::{ExportSettings, Fetcher, NoticeSettings};

#[derive(Debug, Clone)]
pub struct Options {
    /// Where the record and the sessions' directories are.
    pub state_dir: PathBuf,
    /// Where keepers learn which program is the daemon.
    pub daemon_json: PathBuf,
    /// Where a halt is asked for that no daemon has recorded yet.
    pub halt_json: PathBuf,
    /// Directories that may not become campaigns, nor hold one.
    pub own_dirs: Vec<PathBuf>,
    pub home_dir: Option<PathBuf>,
    pub watchdogs: WatchdogLimits,
    /// Whether a turn that failed of a rate limit goes on when the limit ends.
    pub resumes_after_limit: bool,
    /// How long an agent's question waits for a person; then it is denied.
    pub approval_limit: Duration,
    /// Who is told of what happens.
    pub notices: NoticeSettings,
    /// The collector that spans are told to.
    pub export: Option<ExportSettings>,
    /// How long an agent may live without a daemon; absent, for ever.
    pub orphan_grace: Option<Duration>,
    pub tape_bytes: Option<u64>,
    /// Whether agents run without a sandbox, on this machine, because its owner said so.
    pub unconfined: bool,
    /// The hosts of the presets of `net.allow`, by the preset's name without its sign.
    pub network_presets: BTreeMap<String, Vec<String>>,
    pub providers: ProviderSettings,
    /// When an idle session is ended, where its campaign does not say.
    pub idle_stop: IdleStop,
    /// What becomes of sessions that are lost with the machine.
    pub on_reboot: OnReboot,
    /// How lists of models are fetched; absent, they are not.
    pub fetch: Option<Fetcher>,
    /// The prices that a person has set.
    pub prices_json: PathBuf,
}

impl Options {
    /// How long a new session's questions wait for a person.
    pub(crate) fn approval_us(&self) -> u64 {
        u64::try_from(self.approval_limit.as_micros()).unwrap_or(u64::MAX)
    }
}

/// What people say about providers, asked anew for each session: it may be changed while a daemon runs.
#[derive(Clone)]
pub struct ProviderSettings(Arc<Read>);

type Read = dyn Fn() -> Result<Config, Refusal> + Send + Sync;

impl ProviderSettings {
    pub fn new(read: impl Fn() -> Result<Config, Refusal> + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    /// How much there may be at once.
    pub(crate) fn admission(&self) -> Result<MachineLimits, Refusal> {
        Ok((self.0)()?.admission())
    }

    /// By the provider's name.
    pub(crate) fn all(&self) -> Result<BTreeMap<String, Settings>, Refusal> {
        Ok((self.0)()?.providers())
    }

    /// The provider of sessions for which nobody names one.
    pub(crate) fn default(&self) -> Result<Option<String>, Refusal> {
        Ok((self.0)()?.provider().map(str::to_owned))
    }

    /// How long what was said is kept, in campaigns that do not say.
    pub(crate) fn retention(&self) -> Result<Rules, Refusal> {
        Ok((self.0)()?.retention())
    }

    pub(crate) fn of(&self, provider: &str) -> Result<Settings, Refusal> {
        Ok(self.all()?.remove(provider).unwrap_or_default())
    }

    /// What holds for sessions of one of its accounts; none for what its own section says.
    pub(crate) fn of_account(&self, provider: &str, profile: Option<&Name>) -> Result<Settings, Refusal> {
        self.of(provider)?.of_profile(provider, profile)
    }
}

impl fmt::Debug for ProviderSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProviderSettings")
    }
}
