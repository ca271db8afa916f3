//! What every command has: the terminal, the program, the way to the daemon, and who is meant.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use jiff::tz::TimeZone;
use ostler_client::{Client, Home, Session};
use ostler_domain::{
    CampaignId, Reason, Refusal, SessionId, agent::Agent, home::DaemonFile, node::Node, query::Page,
};
use tokio::sync::Notify;

use crate::{
    Program, commands,
    failure::Failure,
    keys,
    last::LastSession,
    nodes::{self, Where},
    output::{Line, Table, Ui},
    reboot::{self, ToldBoot},
    screen::{self, sessions::CampaignNames},
    words,
};

/// How long a daemon may say nothing before that is said.
const SILENCE: Duration = Duration::from_secs(3);
/// How long it may say nothing more, not even how it is, before it is said to hang.
const HANGS: Duration = Duration::from_secs(12);

pub(crate) struct App {
    pub(crate) ui: Ui,
    pub(crate) program: Program,
    /// What `--node` names.
    node: Option<String>,
    /// The command, as `ostler-campaign-ls`.
    command: String,
    /// Told when the daemon hangs and nobody is there to wait for it.
    hangs: Arc<Notify>,
    /// This command has said that the machine restarted, or says so in its own way.
    has_told_restart: AtomicBool,
}

impl App {
    pub(crate) fn new(ui: Ui, program: Program, node: Option<String>, command: String) -> Self {
        Self { ui, program, node, command, has_told_restart: AtomicBool::new(false), hangs: Arc::default() }
    }

    /// The table that this command shows, with nothing in it; none where it depends on what else is asked for.
    pub(crate) fn table(&self) -> Option<Table> {
        let is_known = self.node.is_none() && self.command != "ostler-cost";
        is_known.then(|| commands::empty_table(&self.command))?
    }

    /// The machine whose daemon is asked.
    pub(crate) fn place(&self) -> Result<Where, Failure> {
        match &self.node {
            Some(node) => nodes::find(&self.home()?, node, self.is_batch()),
            None => Ok(Where::Here),
        }
    }

    /// What was typed after `--node`, if that is another machine.
    pub(crate) fn node(&self) -> Option<&str> {
        self.node.as_deref().filter(|node| *node != Node::HERE)
    }

    /// Nobody can be asked for a password.
    pub(crate) fn is_batch(&self) -> bool {
        !self.ui.has_person()
    }

    pub(crate) fn home(&self) -> Result<Home, Failure> {
        Ok(ostler_client::home()?)
    }

    /// A connection to the daemon that is meant, which is started when there is none.
    pub(crate) async fn client(&self) -> Result<Client, Failure> {
        match self.place()? {
            Where::Here => self.client_here().await,
            Where::There(way) => {
                let home = self.home()?;
                let client = Client::connect_by(&way, &home).await?;
                self.ui.detail(&Line::new().faint(format!("the daemon of {}", way.name)));
                Ok(client.with_keys(keys::of_this_process(&home)))
            }
            Where::Everywhere => Err(Refusal::invalid("this is asked of one machine at a time")
                .hint("ostler ls --node all", "lists the sessions of all")
                .hint("ostler node ls", "lists the machines")
                .into()),
        }
    }

    /// A connection to this machine's daemon.
    pub(crate) async fn client_here(&self) -> Result<Client, Failure> {
        let home = self.home()?;
        let client = Client::connect_or_start(&home, &self.program.path).await?;
        let client = client.with_keys(keys::of_this_process(&home));
        let daemon = daemon_file(&home);
        self.remark_silence(&client, daemon.as_ref());
        if let Some(daemon) = &daemon {
            let (version, pid) = (&daemon.version, daemon.pid);
            let socket = words::path(&daemon.socket.to_string_lossy(), person_home().as_deref());
            self.ui.detail(&Line::new().faint(format!("daemon {version}, pid {pid}, {socket}")));
            self.remark_other_version(daemon);
            self.remark_restart(&client, &home, daemon).await;
        }
        Ok(client)
    }

    /// The first command after a restart of the machine says that there was one, if it cost anything. A convenience: where
    /// it cannot, the command itself goes on.
    async fn remark_restart(&self, client: &Client, home: &Home, daemon: &DaemonFile) {
        let Some(boot) = &daemon.boot else { return };
        let told = ToldBoot::of(home);
        if self.has_told_restart() || !self.ui.has_person() || self.ui.is_json() || told.is(boot) {
            return;
        }
        let Ok(status) = reboot::settled(client).await else { return };
        if let Some(restart) = status.machine_restart {
            let lines = screen::reboot::notice(&restart, words::now(), &self.zone());
            lines.iter().for_each(|line| self.ui.remark(line));
            self.tells_restart_itself();
        }
        told.write(boot);
    }

    pub(crate) fn has_told_restart(&self) -> bool {
        self.has_told_restart.load(Ordering::Relaxed)
    }

    /// What this command shows says it all.
    pub(crate) fn tells_restart_itself(&self) {
        self.has_told_restart.store(true, Ordering::Relaxed);
    }

    /// A daemon that is stopped or hangs takes connections, because the kernel does that, and says nothing. A person may wait
    /// for it; a program that waits for ever is worse than one that fails.
    fn remark_silence(&self, client: &Client, daemon: Option<&DaemonFile>) {
        let client = client.clone();
        let who = daemon.map_or_else(String::new, |daemon| format!(" (pid {})", daemon.pid));
        let silent = format!("note: no answer from the daemon{who} for {} s; waiting … ", SILENCE.as_secs());
        let cure =
            "ostler daemon restart ends it and starts another, agents go on; ostler daemon logs may say why";
        let remark = self.ui.remark_later(&Line::of(silent).faint(cure));
        let hangs = (!self.ui.has_person()).then(|| self.hangs.clone());
        tokio::spawn(async move {
            tokio::time::sleep(SILENCE).await;
            if client.has_answered() {
                return;
            }
            remark();
            let Some(hangs) = hangs else { return };
            // What was asked may take its time; how it is takes none.
            if tokio::time::timeout(HANGS, client.status()).await.is_err() && !client.has_answered() {
                hangs.notify_one();
            }
        });
    }

    /// Does what is asked of the daemon, unless that hangs and there is nobody to wait.
    pub(crate) async fn unless_it_hangs<T>(
        &self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        tokio::select! {
            done = work => done,
            () = self.hangs.notified() => Err(self.hung().into()),
        }
    }

    fn hung(&self) -> Refusal {
        let pid = self.home().ok().and_then(|home| daemon_file(&home)).map(|daemon| daemon.pid);
        let who = pid.map_or_else(String::new, |pid| format!(" (pid {pid})"));
        let late = (SILENCE + HANGS).as_secs();
        Refusal::new(Reason::DaemonUnreachable, format!("the daemon{who} has not answered for {late} s"))
            .because("it takes connections and says nothing: it was stopped, or hangs")
            .hint("ostler daemon restart", "ends it and starts another; agents go on meanwhile")
            .hint("ostler halt", "kills all agents without it")
    }

    /// A connection to the daemon that runs, if one does.
    pub(crate) async fn running_client(&self) -> Result<Client, Failure> {
        Ok(Client::connect(&self.home()?).await?)
    }

    fn remark_other_version(&self, daemon: &DaemonFile) {
        if daemon.version != self.program.version {
            let line = Line::of(format!(
                "note: the daemon is {}, this is {}: ",
                daemon.version, self.program.version
            ));
            self.ui.remark(&line.plain("ostler daemon restart").faint("   agents go on meanwhile"));
        }
    }

    /// What `-` means in this terminal, on the machine that is asked.
    fn last(&self) -> Result<LastSession, Failure> {
        Ok(LastSession::of_this_terminal(&self.home()?, self.node()))
    }

    /// The id of who is meant: of what was typed, or of the last session of this terminal for `-`. A name that several
    /// campaigns have means the one of the campaign that a new session would be started in.
    pub(crate) async fn who(&self, client: &Client, typed: &str) -> Result<String, Failure> {
        match typed {
            "-" => self.last()?.read(),
            id if id.parse::<SessionId>().is_ok() => Ok(id.to_owned()),
            who => Ok(self.named(client, who).await?.id.to_string()),
        }
    }

    /// Who is spoken to: a conversation or an agent need not have a session. A name means the one of the campaign that a new
    /// session would be started in, if there is such.
    pub(crate) async fn addressee(&self, client: &Client, typed: &str) -> Result<String, Failure> {
        if typed == "-" {
            return self.last()?.read();
        }
        if typed.contains(['/', '_']) {
            return Ok(typed.to_owned());
        }
        let Some(near) = self.near() else { return Ok(typed.to_owned()) };
        let Ok(campaign) = client.campaign(&near).await else { return Ok(typed.to_owned()) };
        let here = format!("{}/{typed}", campaign.name);
        let is_here = match client.conversation(&here).await {
            Ok(_) => true,
            // Several of them are here: nobody elsewhere is meant instead.
            Err(error) => error.to_refusal().reason == Reason::Ambiguous || client.agent(&here).await.is_ok(),
        };
        Ok(if is_here { here } else { typed.to_owned() })
    }

    /// The agent that is meant. Of several campaigns' agents of one name, it is that of the campaign that a new session would
    /// be started in.
    pub(crate) async fn agent(&self, client: &Client, typed: &str) -> Result<Agent, Failure> {
        if !typed.contains('/')
            && let Some(near) = self.near()
            && let Ok(campaign) = client.campaign(&near).await
            && let Ok(here) = client.agent(&format!("{}/{typed}", campaign.name)).await
        {
            return Ok(here);
        }
        Ok(client.agent(typed).await?)
    }

    async fn named(&self, client: &Client, who: &str) -> Result<Session, Failure> {
        Ok(client.session_near(who, self.near().as_deref()).await?)
    }

    fn near(&self) -> Option<String> {
        let named = std::env::var("OSTLER_CAMPAIGN").ok().filter(|name| !name.is_empty());
        match (named, self.node()) {
            (Some(typed), _) => self.campaign_operand(&typed).ok(),
            (None, None) => absolute(".").ok(),
            (None, Some(_)) => None,
        }
    }

    /// The session that is meant. It becomes the one that `-` means.
    pub(crate) async fn session(&self, client: &Client, typed: &str) -> Result<Session, Failure> {
        let session = match typed {
            "-" => client.session(&self.last()?.read()?).await?,
            who => self.named(client, who).await?,
        };
        self.touched(&session.id);
        Ok(session)
    }

    pub(crate) fn touched(&self, session: &SessionId) {
        if let Ok(last) = self.last() {
            last.write(session);
        }
    }

    /// The names of all campaigns.
    pub(crate) async fn campaign_names(&self, client: &Client) -> Result<CampaignNames, Failure> {
        campaign_names(client).await
    }

    /// How a campaign was named, so that the daemon understands it: paths are absolute, as it stands elsewhere.
    pub(crate) fn campaign_operand(&self, typed: &str) -> Result<String, Failure> {
        let is_path = typed.contains('/') || typed == "." || typed == "..";
        match self.node() {
            _ if !is_path => Ok(typed.to_owned()),
            None => absolute(typed),
            Some(_) if Path::new(typed).is_absolute() => Ok(typed.to_owned()),
            Some(node) => Err(Failure::usage(format!(
                "{typed} is a path here; on {node} name a campaign, or a whole path"
            ))),
        }
    }

    /// One campaign's name; its short id when it is not registered any more.
    pub(crate) async fn campaign_name(&self, client: &Client, id: &CampaignId) -> String {
        match client.campaign(&id.to_string()).await {
            Ok(campaign) => campaign.name.to_string(),
            Err(_) => id.short(),
        }
    }

    pub(crate) fn zone(&self) -> TimeZone {
        words::zone()
    }
}

/// What the last daemon of this home said about itself.
pub(crate) fn daemon_file(home: &Home) -> Option<DaemonFile> {
    let text = std::fs::read(home.daemon_json()).ok()?;
    serde_json::from_slice(&text).ok()
}

/// The person's home directory, for shortening paths.
pub(crate) fn person_home() -> Option<String> {
    std::env::var("HOME").ok().filter(|home| Path::new(home).is_absolute())
}

/// The names of all campaigns of a daemon.
pub(crate) async fn campaign_names(client: &Client) -> Result<CampaignNames, Failure> {
    let mut names = CampaignNames::default();
    let mut page = Page::of(ostler_domain::limits::PAGE_MOST, None);
    loop {
        let listed = client.campaign_names(page).await?;
        names.0.extend(listed.rows.into_iter().map(|(id, name)| (id, name.to_string())));
        match listed.next_cursor {
            Some(cursor) => page.cursor = Some(cursor),
            None => return Ok(names),
        }
    }
}

/// A path made absolute, without looking whether it exists.
pub(crate) fn absolute(typed: &str) -> Result<String, Failure> {
    let path = std::path::absolute(typed)
        .and_then(|path| path.canonicalize().or(Ok(path)))
        .map_err(|error| Failure::usage(format!("{typed} cannot be looked at: {error}")))?;
    match path.to_str() {
        Some(path) => Ok(path.to_owned()),
        None => Err(Failure::usage(format!("{} has a name that is not UTF-8", path.display()))),
    }
}

/// The root of the git work tree around a directory, or the directory itself.
pub(crate) fn git_root(from: &str) -> String {
    let around = Path::new(from).ancestors().find(|dir| dir.join(".git").exists());
    around.and_then(|dir| dir.to_str()).unwrap_or(from).to_owned()
}
