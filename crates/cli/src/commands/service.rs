//! `ostler service`: the daemon as a service of systemd, so that it is there after a reboot and agents outlive its
//! restarts.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use clap::{Args, Subcommand};
use ostler_domain::{
    Reason, Refusal,
    home::{DaemonFile, Home},
    service::{SERVICE, SOCKET, Scope, Service, Socket, Unwritable, program_of},
};
use serde::Serialize;

use super::daemon::{start_time, wait_until_gone};
use crate::{
    app::{App, daemon_file},
    exit_code,
    failure::Failure,
    output::{Line, Tone},
    screen::{field, next_steps},
};

/// Where systemd says that it runs.
const RUNS: &str = "/run/systemd/system";
const LINGERS: &str = "/var/lib/systemd/linger";

#[derive(Debug, Args)]
pub(crate) struct ServiceArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Have systemd start the daemon, and hold its socket
    Install {
        #[command(flatten)]
        whose: Whose,
        /// Print the units and install nothing
        #[arg(long, visible_alias = "dry-run")]
        print: bool,
        /// Write the units below this directory, and start nothing
        #[arg(long, value_name = "DIR")]
        root: Option<PathBuf>,
    },
    /// Take the units away; the daemon ends, agents go on
    Uninstall {
        #[command(flatten)]
        whose: Whose,
        /// Take them away below this directory, and stop nothing
        #[arg(long, value_name = "DIR")]
        root: Option<PathBuf>,
    },
    /// Whether it is installed, for which program, and runs
    Status {
        #[command(flatten)]
        whose: Whose,
    },
}

#[derive(Debug, Clone, Args)]
struct Whose {
    /// The machine's service manager instead of your own; needs root
    #[arg(long, requires = "user")]
    system: bool,
    /// With --system: the user whose agents it looks after; alone, your own service manager, as without a word
    #[arg(long, value_name = "NAME", num_args = 0..=1)]
    user: Option<Option<String>>,
}

impl Whose {
    /// Whom the machine's service works for; none for one's own.
    fn of_the_machine(self) -> Result<Option<String>, Failure> {
        match (self.system, self.user.flatten()) {
            (true, Some(user)) => Ok(Some(user)),
            (false, None) => Ok(None),
            (true, None) => Err(Failure::usage("--system needs --user NAME: whose agents it looks after")),
            (false, Some(_)) => Err(Failure::usage("--user NAME needs --system: your own is yours alone")),
        }
    }
}

/// A service, and where its units are.
struct Place {
    service: Service,
    dir: PathBuf,
    /// Where its daemon's files are.
    home: Home,
}

#[derive(Serialize)]
struct StatusForm {
    scope: &'static str,
    installed: bool,
    /// Its units say what they would say if they were installed now.
    current: bool,
    units: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    active: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lingers: Option<bool>,
}

pub(crate) async fn run(app: &App, args: ServiceArgs) -> Result<u8, Failure> {
    match args.verb {
        Verb::Install { whose, print: true, root } => {
            let Place { service, dir, .. } = place(app, whose, root.as_deref())?;
            for (name, text) in texts(&service)? {
                app.ui.data(&Line::new().faint(format!("# {}", dir.join(name).display())))?;
                text.lines().try_for_each(|line| app.ui.data(&Line::of(line)))?;
            }
            Ok(exit_code::OK)
        }
        Verb::Install { whose, root, .. } => install(app, whose, root.as_deref()).await,
        Verb::Uninstall { whose, root } => uninstall(app, whose, root.as_deref()),
        Verb::Status { whose } => status(app, whose),
    }
}

async fn install(app: &App, whose: Whose, root: Option<&Path>) -> Result<u8, Failure> {
    let place = place(app, whose, root)?;
    let Place { service, dir, home } = &place;
    let is_to_run = root.is_none();
    if is_to_run && !Path::new(RUNS).exists() {
        let refusal = Refusal::new(Reason::WrongState, "systemd does not run here, so nothing was installed");
        return Err(refusal
            .because(format!("there is no {RUNS}"))
            .hint("ostler daemon start", "starts one without it, as any other command does")
            .hint("ostler service install --print", "shows the units, for a machine where it runs")
            .into());
    }
    if is_to_run && !dir.join(SERVICE).exists() {
        refuse_beside_another(&service.scope, home)?;
    }
    let written = |error: std::io::Error| unwritable(dir, &error);
    fs::create_dir_all(dir).map_err(written)?;
    for (name, text) in texts(service)? {
        fs::write(dir.join(name), text).map_err(written)?;
        say(app, "installed", &dir.join(name))?;
    }
    if is_to_run {
        begin(app, &service.scope).await?;
    }
    end_with_form(app, &place)
}

async fn begin(app: &App, scope: &Scope) -> Result<(), Failure> {
    // The socket is to be systemd's, and one daemon at a time has the record.
    if *scope == Scope::User
        && let Ok(client) = app.running_client().await
    {
        wait_until_gone(client.stop_daemon(false).await?.pid).await?;
    }
    systemctl(scope, &["daemon-reload"])?;
    systemctl(scope, &["enable", "--now", SOCKET, SERVICE])?;
    app.ui.remark(&Line::toned(Tone::Good, "✓ ").plain("runs, and starts with ").plain(match scope {
        Scope::User => "your login",
        Scope::System { .. } => "the machine",
    }));
    if lingers(scope) == Some(false) {
        let steps = [(
            "loginctl enable-linger".to_owned(),
            "agents and daemon outlive your login, and start at boot",
        )];
        next_steps(&steps).iter().for_each(|line| app.ui.remark(line));
    }
    Ok(())
}

/// One daemon at a time has the record: beside one that its user has started, the machine's would not come up.
fn refuse_beside_another(scope: &Scope, home: &Home) -> Result<(), Failure> {
    let Scope::System { user } = scope else { return Ok(()) };
    let is_alive = |daemon: &DaemonFile| start_time(daemon.pid) == Some(daemon.start_time);
    let Some(daemon) = daemon_file(home).filter(is_alive) else { return Ok(()) };
    let refusal = Refusal::new(Reason::DaemonRunning, format!("a daemon of {user} runs already"));
    let refusal = refusal.because(format!("pid {} has the record in {}", daemon.pid, home.state().display()));
    let (command, effect) = match daemon.is_service {
        true => ("service uninstall", "takes that user's own service away; agents go on"),
        false => ("daemon stop", "ends it; agents go on, and the service finds them again"),
    };
    Err(refusal.hint(format!("sudo -i -u {user} ostler {command}"), effect).into())
}

fn uninstall(app: &App, whose: Whose, root: Option<&Path>) -> Result<u8, Failure> {
    let place = place(app, whose, root)?;
    let Place { service, dir, .. } = &place;
    let there: Vec<PathBuf> =
        [SOCKET, SERVICE].iter().map(|name| dir.join(name)).filter(|path| path.exists()).collect();
    let runs = root.is_none() && Path::new(RUNS).exists() && !there.is_empty();
    if there.is_empty() && !app.ui.is_json() {
        // Asking for what already holds is no failure: scripts ask twice.
        app.ui.data(&Line::of("no service is installed"))?;
    }
    if runs {
        systemctl(&service.scope, &["disable", "--now", SOCKET, SERVICE])?;
    }
    for path in there {
        fs::remove_file(&path).map_err(|error| unwritable(dir, &error))?;
        say(app, "removed", &path)?;
    }
    if runs {
        systemctl(&service.scope, &["daemon-reload"])?;
        app.ui.remark(&Line::new().faint("agents go on; the next command starts a daemon"));
    }
    end_with_form(app, &place)
}

fn say(app: &App, done: &str, unit: &Path) -> Result<(), Failure> {
    match app.ui.is_json() {
        true => Ok(()),
        false => app.ui.data(&Line::of(format!("{done} ")).strong(unit.display().to_string())),
    }
}

/// Programs are told how it is now.
fn end_with_form(app: &App, place: &Place) -> Result<u8, Failure> {
    if app.ui.is_json() {
        app.ui.json(&place.form()?)?;
    }
    Ok(exit_code::OK)
}

fn status(app: &App, whose: Whose) -> Result<u8, Failure> {
    let is_own = !whose.system;
    let mut form = place(app, whose, None)?.form()?;
    let user = std::env::var("USER").unwrap_or_default();
    let is_usual = std::env::var_os("OSTLER_HOME").is_none();
    if is_own && is_usual && !form.installed && is_the_machines(Path::new("/"), &user) {
        form = place(app, Whose { system: true, user: Some(Some(user)) }, None)?.form()?;
    }
    if app.ui.is_json() {
        app.ui.json(&form)?;
    } else {
        app.ui.data_lines(&lines(&form))?;
    }
    Ok(exit_code::OK)
}

impl Place {
    fn form(&self) -> Result<StatusForm, Failure> {
        let Place { service, dir, .. } = self;
        let texts = texts(service)?;
        let found: Vec<Option<String>> =
            texts.iter().map(|(name, _)| fs::read_to_string(dir.join(name)).ok()).collect();
        Ok(StatusForm {
            scope: service.scope.as_str(),
            installed: found.iter().all(Option::is_some),
            current: texts.iter().zip(&found).all(|((_, text), found)| found.as_ref() == Some(text)),
            units: texts.iter().map(|(name, _)| dir.join(name).display().to_string()).collect(),
            active: Path::new(RUNS).exists().then(|| active(&service.scope)),
            lingers: lingers(&service.scope),
        })
    }
}

fn lines(form: &StatusForm) -> Vec<Line> {
    let whose = if form.scope == "user" { "yours" } else { "the machine's" };
    if !form.installed {
        let mut lines = vec![Line::of("No service is installed: any command starts the daemon.")];
        lines.extend(next_steps(&[(
            "ostler service install".to_owned(),
            "has systemd start it, and hold its socket",
        )]));
        return lines;
    }
    let state = match form.active.as_deref() {
        Some("active") => Line::toned(Tone::Good, "active"),
        Some(other) => Line::toned(Tone::Warn, other),
        None => Line::toned(Tone::Warn, "systemd does not run here"),
    };
    let mut lines = vec![field("service", state.plain(format!(" · {whose}")))];
    lines.extend(form.units.iter().map(|unit| field("unit", Line::of(unit))));
    let mut steps = Vec::new();
    if !form.current {
        lines.push(field("differs", Line::of("the units are of another program or version")));
        steps.push(("ostler service install".to_owned(), "writes them anew"));
    }
    if form.lingers == Some(false) {
        lines.push(field("logout", Line::of("lingering is off: agents may end when you log out")));
        steps.push(("loginctl enable-linger".to_owned(), "lets them go on"));
    }
    lines.extend(next_steps(&steps));
    lines
}

fn place(app: &App, whose: Whose, root: Option<&Path>) -> Result<Place, Failure> {
    let program = app.program.path.canonicalize().unwrap_or_else(|_| app.program.path.clone());
    let (scope, home, dir) = match whose.of_the_machine()? {
        Some(user) => {
            let home = Home::resolve(home_of(&user)?)?;
            (Scope::System { user }, home, PathBuf::from("/etc/systemd/system"))
        }
        None => {
            let home = app.home()?;
            let dir = home.config().parent().filter(|_| std::env::var_os("OSTLER_HOME").is_none());
            let dir = dir.map_or_else(users_config, |config| Ok(config.to_owned()))?.join("systemd/user");
            (Scope::User, home, dir)
        }
    };
    let variables = match &scope {
        // It has a home, and what follows from that.
        Scope::System { .. } => Vec::new(),
        // Its own service manager says where what lives as long as the login is.
        Scope::User => {
            let own = home.variables().into_iter().filter(|(name, _)| *name != "XDG_RUNTIME_DIR");
            own.map(|(name, path)| (name.to_owned(), path.to_owned())).collect()
        }
    };
    let service = Service { scope, program, socket: Socket::At(home.control_socket()), variables };
    let dir = match root {
        Some(root) => root.join(dir.strip_prefix("/").unwrap_or(&dir)),
        None => dir,
    };
    Ok(Place { service, dir, home })
}

fn users_config() -> Result<PathBuf, Failure> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    set("XDG_CONFIG_HOME")
        .or_else(|| set("HOME").map(|home| home.join(".config")))
        .ok_or_else(|| Failure::usage("neither XDG_CONFIG_HOME nor HOME is set"))
}

/// The variables of a user who is not logged in: only where his home is.
fn home_of(user: &str) -> Result<impl Fn(&str) -> Option<String> + use<>, Failure> {
    let unknown = || {
        let refusal =
            Refusal::new(Reason::InvalidArgument, format!("there is no user {user:?} on this machine"));
        refusal.hint(format!("sudo useradd --create-home {user}"), "makes one")
    };
    let asked = Command::new("getent").args(["passwd", "--", user]).output();
    let text = asked.ok().filter(|asked| asked.status.success()).map(|asked| asked.stdout);
    let text = text.and_then(|text| String::from_utf8(text).ok()).ok_or_else(unknown)?;
    let home = text.trim().split(':').nth(5).map(str::to_owned).ok_or_else(unknown)?;
    Ok(move |name: &str| (name == "HOME").then(|| home.clone()))
}

pub(crate) fn texts(service: &Service) -> Result<[(&'static str, String); 2], Failure> {
    let odd = |error: Unwritable| Failure::usage(error.to_string());
    Ok([(SOCKET, service.socket_unit().map_err(odd)?), (SERVICE, service.unit().map_err(odd)?)])
}

fn manager(scope: &Scope) -> &'static [&'static str] {
    match scope {
        Scope::User => &["--user"],
        Scope::System { .. } => &[],
    }
}

fn systemctl(scope: &Scope, args: &[&str]) -> Result<(), Failure> {
    let ran = Command::new("systemctl").args(manager(scope)).args(args).output();
    let why = match ran {
        Ok(ran) if ran.status.success() => return Ok(()),
        Ok(ran) => String::from_utf8_lossy(&ran.stderr).trim().to_owned(),
        Err(error) => format!("systemctl cannot be run: {error}"),
    };
    let message = format!("systemctl {} did not work", args.join(" "));
    Err(Refusal::new(Reason::Internal, message)
        .because(why)
        .hint("ostler service status", "says how it is")
        .into())
}

fn active(scope: &Scope) -> String {
    let asked = Command::new("systemctl").args(manager(scope)).args(["is-active", SERVICE]).output();
    let said =
        asked.map(|asked| String::from_utf8_lossy(&asked.stdout).trim().to_owned()).unwrap_or_default();
    if said.is_empty() { "unknown".to_owned() } else { said }
}

/// The daemon's units that are installed, of the user and of the machine, each with the program that it starts.
pub(super) fn installed(app: &App) -> Result<Vec<(PathBuf, PathBuf)>, Failure> {
    let own = place(app, Whose { system: false, user: None }, None)?.dir;
    let dirs = [own, PathBuf::from("/etc/systemd/system")];
    let unit = |dir: PathBuf| {
        let unit = dir.join(SERVICE);
        let program = program_of(&fs::read_to_string(&unit).ok()?)?;
        Some((unit, program))
    };
    Ok(dirs.into_iter().filter_map(unit).collect())
}

/// Whether the machine's own service looks after a user's agents: no login is what they live by. `root` is the root of the
/// file system.
pub(super) fn is_the_machines(root: &Path, user: &str) -> bool {
    let unit = fs::read_to_string(root.join("etc/systemd/system").join(SERVICE)).unwrap_or_default();
    unit.lines().any(|line| line.strip_prefix("User=") == Some(user))
}

/// Whether the user's services outlive the login; of no concern to the machine's.
fn lingers(scope: &Scope) -> Option<bool> {
    if *scope != Scope::User || !Path::new(RUNS).exists() {
        return None;
    }
    let user = std::env::var("USER").ok().filter(|user| !user.is_empty() && !user.contains('/'))?;
    Some(Path::new(LINGERS).join(user).exists())
}

fn unwritable(dir: &Path, error: &std::io::Error) -> Failure {
    let refusal =
        Refusal::new(Reason::PermissionDenied, format!("the units in {} cannot be written", dir.display()));
    refusal
        .because(error.to_string())
        .hint("sudo ostler service install --system --user NAME", "does it as root")
        .into()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    #[test]
    fn beside_a_user_s_own_daemon_the_machine_s_is_not_installed() {
        let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
        let home = Home::at(dir.path());
        let scope = Scope::System { user: "agents".to_owned() };
        assert!(refuse_beside_another(&scope, &home).is_ok(), "none runs");
        let pid = std::process::id();
        let write = |start_time: u64, is_service: bool| {
            let (socket, state) = (home.control_socket(), home.state().to_owned());
            let (version, program, boot) = (String::new(), PathBuf::new(), None);
            let file = DaemonFile { pid, start_time, version, program, socket, state, is_service, boot };
            fs::create_dir_all(home.state())
                .and_then(|()| fs::write(home.daemon_json(), crate::output::to_json(&file)))
        };
        let hint = |is_service| {
            write(start_time(pid).unwrap_or_default(), is_service).unwrap_or_else(|error| panic!("{error}"));
            let refused = refuse_beside_another(&scope, &home).err().map(|failure| failure.to_refusal());
            refused.map(|refused| (refused.reason, refused.hints[0].command.clone()))
        };
        let told =
            |command: &str| Some((Reason::DaemonRunning, format!("sudo -i -u agents ostler {command}")));
        assert_eq!((hint(false), hint(true)), (told("daemon stop"), told("service uninstall")));
        assert!(refuse_beside_another(&Scope::User, &home).is_ok(), "one's own is ended by the way");
        write(1, false).unwrap_or_else(|error| panic!("{error}"));
        assert!(refuse_beside_another(&scope, &home).is_ok(), "the number is another process's by now");
    }

    #[test]
    fn the_units_are_pinned() {
        let service = Service {
            scope: Scope::System { user: "agents".to_owned() },
            program: "/usr/bin/ostler".into(),
            socket: Socket::At("/home/agents/.local/state/ostler/control.sock".into()),
            variables: Vec::new(),
        };
        let [(_, socket), (_, unit)] = texts(&service).unwrap_or_else(|error| panic!("{error:?}"));
        assert_snapshot!(format!("{socket}\n{unit}"));
    }
}
