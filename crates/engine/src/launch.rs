//! What a keeper is told to start: the provider's command line, in the sandbox that the campaign's policy makes.

use std::path::{Path, PathBuf};

use ostler_domain::{
    Policy, Refusal, Time, confinement,
    gateway::{Allowance, GatewayOrder, ModelOrder},
    hidden::Patterns,
    policy::NetMode,
    provider::Settings,
    session::{Created, Sandbox},
};
use ostler_providers::{CommandSpec, FoundProgram, HomeFile, Launch, Lent, Provider, Terms};
use ostler_tape::LaunchDocument;

use crate::{
    confine::{self, Confined},
    environment,
    git::worktree::move_into,
    keeper::NotStarted,
    mission, project_text,
    shared::Shared,
    upstream,
};

/// What a session is to be, as its provider is told.
pub(crate) fn terms(created: &Created, settings: &Settings) -> Terms {
    let config = &created.config;
    Terms {
        mcp: (settings.tools.unwrap_or(true) && !config.no_tools)
            .then(|| this_program(created.sandbox))
            .flatten(),
        session: created.id,
        working_dir: PathBuf::from(&config.working_dir),
        model: config.model.clone(),
        begin: created.begin.clone(),
        approve: config.approve,
        // A campaign's own, read when the agent is started.
        instructions: None,
        config: config.provider_config.clone(),
        no_tools: config.no_tools,
    }
}

/// This program, as an agent can start it.
fn this_program(sandbox: Sandbox) -> Option<PathBuf> {
    match sandbox {
        Sandbox::On => Some(PathBuf::from(confinement::PROGRAM)),
        Sandbox::Off => std::env::current_exe().ok(),
    }
}

/// What a keeper is told, and what is to be remembered of it.
pub(crate) struct Order {
    pub(crate) document: LaunchDocument,
    /// When the login ends that the agent is lent, where that is known.
    pub(crate) lent_until: Option<Time>,
}

impl Shared {
    /// Makes a keeper's document, and the directory that it speaks of.
    pub(crate) async fn launch_order(
        &self,
        created: &Created,
        provider: &dyn Provider,
        attempt: u32,
        dir: &Path,
        allowance: Allowance,
    ) -> Result<Order, NotStarted> {
        let config = &created.config;
        let stage = |stage: &str, message: String| NotStarted::at(stage, message);
        let refused = |refusal: Refusal| NotStarted::refused("provider", refusal);
        let account = config.auth_profile.as_ref();
        let settings = self.options.providers.of_account(&config.provider, account).map_err(refused)?;
        let program = self.programs.find(provider, &settings, self.options.home_dir.as_deref());
        let program = program.await.map_err(refused)?;
        let (mut confined, mut gateway) = match created.sandbox {
            Sandbox::On => {
                let usual = provider.usual_network();
                self.confined(created, usual).await.map(|(confined, gateway)| (Some(confined), gateway))?
            }
            Sandbox::Off => (None, None),
        };
        if let Some(confined) = &mut confined {
            let unseen = provider.unseen().iter().map(|name| (*name).to_owned());
            confined.confinement.hidden.extend(unseen);
        }
        if let Some(gateway) = &mut gateway {
            let is_logged_in = self.login(provider, &settings).is_some();
            let brought = |variable: &str| self.keys.of(created.id, variable);
            let said = self.keys.take_said(created.id);
            let order = upstream::order(provider, &settings, brought, said, is_logged_in).await?;
            gateway.model = order.map(|order| self.priced(order, created, allowance));
        }
        let has_model = gateway.as_ref().is_some_and(|gateway| gateway.model.is_some());
        // Where there is no gateway, the agent's own settings and its login are all that leads to its model.
        let lent = match &program {
            Some(program) if !has_model && !settings.says_model() => {
                self.lend(provider, &settings, program).await?
            }
            _ => None,
        };
        if let (Some(gateway), Some(_), Some(spec)) = (&mut gateway, &lent, provider.login()) {
            gateway.allow.extend(spec.hosts.iter().map(|host| (*host).to_owned()));
        }
        let host_home = match &confined {
            Some(confined) => confined.confinement.home.source.clone(),
            None => Some(confine::home(&self.options, &created.conversation.to_string())?),
        };
        let home = match (&confined, &host_home) {
            (Some(confined), _) => confined.confinement.home.inside.clone(),
            (None, home) => home.clone().unwrap_or_default(),
        };
        let patterns = match created.sandbox {
            Sandbox::On => Patterns::new(&created.policy.hide),
            Sandbox::Off => Patterns::none(),
        };
        let working_dir = Path::new(&config.working_dir);
        let instructions = project_text::instructions(working_dir, provider.instruction_files(), &patterns);
        let launch = Launch {
            terms: Terms { instructions, ..terms(created, &settings) },
            // Outside of a sandbox the keeper's own image: an upgrade on disk does not mix versions.
            ostler: PathBuf::from(if confined.is_some() { confinement::PROGRAM } else { "/proc/self/exe" }),
            program,
            home,
            settings,
            model_access: has_model.then(upstream::access),
            is_confined: confined.is_some(),
        };
        let mut command = provider.command(&launch).map_err(|error| stage("command", error.to_string()))?;
        if let (Some(lent), Some(spec)) = (&lent, provider.login()) {
            command.home_files.push(HomeFile { path: spec.path(), text: lent.text.clone() });
        }
        if let Some(host_home) = host_home.filter(|_| !command.home_files.is_empty()) {
            confine::write_home_files(&host_home, &command.home_files)
                .map_err(|error| stage("home", format!("the agent's home cannot be written to: {error}")))?;
        }
        if let Some(confined) = &mut confined {
            show(confined, launch.program.as_ref(), &command);
        }
        crate::campaign::check_unmoved(&config.working_dir).map_err(|error| stage("campaign", error))?;
        ostler_tape::write_attempt(dir, attempt).map_err(|error| {
            stage("directory", format!("the session's directory cannot be written to: {error}"))
        })?;
        let mut document =
            LaunchDocument::new(created.id.to_string(), attempt, dir.to_owned(), command.program);
        document.args = command.args;
        document.cwd = PathBuf::from(&config.working_dir);
        let (confinement, mut environment) = match confined {
            Some(Confined { confinement, environment }) => (Some(confinement), environment),
            None => (None, environment::unconfined()),
        };
        search_first(&mut environment, launch.program.as_ref());
        let token = environment::fresh_token();
        let socket = dir.join(ostler_tape::socket::SESSION_SOCKET);
        let shown = if confinement.is_some() { Path::new(confinement::SESSION_SOCKET) } else { &socket };
        let settings = launch.settings.env.clone().into_iter();
        let beginning = environment.into_iter().chain(settings).collect();
        let mission = created.config.mission;
        let mission =
            mission.map(|member| mission::shared_dir::shared(&self.options.state_dir, member.mission));
        document.env =
            environment::of_session(created, beginning, command.env, shown, &token, mission.as_deref());
        let lent_until = lent.as_ref().and_then(Lent::ends);
        document.secrets.extend(lent.into_iter().flat_map(|lent| lent.secrets));
        document.secrets.push(token.clone());
        document.token = Some(token);
        document.confinement = confinement
            .map(|confinement| confinement::Confinement { session_socket: Some(socket), ..confinement });
        document.gateway = gateway;
        document.cgroup = self.cgroups.unified_of(&created.id);
        document.keepers_cgroup = self.cgroups.of_keepers();
        document.old_cgroups = self.cgroups.old_of(&created.id);
        document.ladder = provider.stop_ladder();
        document.daemon_json = self.options.daemon_json.clone();
        document.orphan_grace_ms =
            self.options.orphan_grace.map(|grace| u64::try_from(grace.as_millis()).unwrap_or(u64::MAX));
        if let Some(tape_bytes) = self.options.tape_bytes {
            document.tape_bytes = tape_bytes;
        }
        Ok(Order { document, lent_until })
    }

    /// A model's order with how far the session may go, and the prices by which its gateway counts.
    fn priced(&self, order: ModelOrder, created: &Created, allowance: Allowance) -> ModelOrder {
        let book = self.prices.current();
        let table = book.table.iter().flat_map(|table| &table.models);
        let prices = table.chain(&book.own).map(|(model, price)| (model.clone(), *price)).collect();
        let model = created.config.model.clone();
        ModelOrder { allowance, prices, has_own_table: book.table.is_some(), model, ..order }
    }

    /// The sandbox of a session, as its policy and this machine make it, and what its gateway is told.
    async fn confined(
        &self,
        created: &Created,
        usual_network: NetMode,
    ) -> Result<(Confined, Option<GatewayOrder>), NotStarted> {
        let not_known = |message: String| NotStarted::at("campaign", message);
        let found = self.store.campaign(created.campaign).await;
        let campaign = found
            .map_err(|error| not_known(error.to_string()))?
            .ok_or_else(|| not_known(format!("campaign {} is not recorded", created.campaign.short())))?
            .campaign;
        let machine = self.machine(&campaign).await.map_err(|error| not_known(error.to_string()))?;
        let only_read =
            created.config.no_tools.then(|| Policy { write: Vec::new(), ..created.policy.clone() });
        let policy = only_read.as_ref().unwrap_or(&created.policy);
        let net_mode = policy.net_mode.unwrap_or(usual_network);
        let whose = created.conversation.to_string();
        let mut confined = machine.confine(policy, net_mode, &campaign.root, &whose)?;
        if let Some(tree) = &created.config.worktree {
            let moved = move_into(&mut confined.confinement, &campaign, tree);
            moved.map_err(|error| NotStarted::at("worktree", format!("{}: {error}", tree.path)))?;
        }
        let root = &mut confined.confinement.root;
        root.read_only = created.config.no_tools || !created.config.leases.is_empty();
        if !created.config.no_tools && root.read_only {
            let leased = confine::resolve_leases(&root.path, &created.config.leases);
            root.leased = leased.map_err(|why| NotStarted::at("leases", format!("it has leased {why}")))?;
        }
        let gateway = confine::gateway(&mut confined, policy, &campaign.name, &self.options)?;
        if let Some(member) = created.config.mission {
            let shared = mission::shared_dir::shared(&self.options.state_dir, member.mission);
            let shared = std::fs::canonicalize(&shared)
                .and_then(|shared| Ok((mission::shared_dir::kept(&shared)?, shared)));
            let (kept, shared) = shared.map_err(|error| {
                NotStarted::at("mission", format!("the directory of its mission is not there: {error}"))
            })?;
            confined.confinement.writable.push(shared);
            confined.confinement.kept.push(kept);
        }
        Ok((confined, gateway))
    }
}

/// Lets a sandbox show what the agent's program needs.
fn show(confined: &mut Confined, program: Option<&FoundProgram>, command: &CommandSpec) {
    let needed = program.iter().flat_map(|program| &program.read_only).chain(&command.read_only);
    for path in needed.filter(|path| !is_shown_anyway(path)) {
        if !confined.confinement.read_only.contains(path) {
            confined.confinement.read_only.push(path.clone());
        }
    }
}

/// Puts the directories of what the program itself calls before all others.
fn search_first(environment: &mut [(String, String)], program: Option<&FoundProgram>) {
    let search = program.iter().flat_map(|program| &program.search);
    let search: Vec<String> = search.map(|dir| dir.to_string_lossy().into_owned()).collect();
    if let Some((_, path)) = environment.iter_mut().find(|(name, _)| name == "PATH")
        && !search.is_empty()
    {
        *path = format!("{}:{path}", search.join(":"));
    }
}

/// The system's own programs and libraries.
fn is_shown_anyway(path: &Path) -> bool {
    ["/usr", "/bin", "/sbin", "/lib", "/lib64"].iter().any(|system| path.starts_with(system))
}
