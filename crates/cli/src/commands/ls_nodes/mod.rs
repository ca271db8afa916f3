//! `ostler ls --node all`: the sessions of this machine and of all that have a name, in one list. What a machine that
//! does not answer had last is shown too, and is said to be old.

mod machines;

use std::{
    cell::{Cell, RefCell},
    collections::HashSet,
};

use ostler_client::{Client, Home, Session};
use ostler_domain::{
    Reason, SessionId, Time,
    limits::{PAGE_DEFAULT, PAGE_MOST},
    node::Node,
    query::{Page, Scope, SessionFilter},
};
use serde::Serialize;
use tokio::{task::JoinSet, time::timeout};

use self::machines::{ANSWER_WITHIN, Kept, Machine};
use super::{
    hub_nodes,
    ls::{LsArgs, joined},
};
use crate::{
    app::{App, campaign_names},
    failure::Failure,
    form::SessionForm,
    listing::{self, Found, List, Screen},
    output::{Line, Tone, to_json},
    screen::{
        row,
        sessions::{self, Beside, Elsewhere, Shown},
    },
    words,
};

pub(super) async fn run(app: &App, args: LsArgs) -> Result<u8, Failure> {
    if args.cursor.is_some() {
        return Err(Failure::usage("--cursor goes on with the list of one machine, --node NAME"));
    }
    let home = app.home()?;
    let machines = RefCell::new(Machine::all(&home, app.is_batch())?);
    let here = app.client_here().await?;
    let has_looked = Cell::new(false);
    let list = Everywhere { app, home, here, args: &args, machines, has_looked, about: RefCell::default() };
    let code = listing::run(app, None, &args.list, &list).await?;
    if !listing::is_table(app) {
        // Rows alone do not say that some are missing.
        list.about
            .borrow()
            .machines
            .iter()
            .filter_map(About::of_silence)
            .for_each(|line| app.ui.remark(&line));
    }
    Ok(code)
}

struct Everywhere<'a> {
    app: &'a App,
    home: Home,
    /// This machine's daemon.
    here: Client,
    args: &'a LsArgs,
    machines: RefCell<Vec<Machine>>,
    has_looked: Cell<bool>,
    /// What was learnt with the last rows.
    about: RefCell<Learnt>,
}

#[derive(Default)]
struct Learnt {
    machines: Vec<About>,
    /// Some rows were left out.
    is_cut: bool,
}

/// A session of a machine.
struct Row {
    node: String,
    /// It is one that only the hub knows.
    is_heard: bool,
    session: Session,
    campaign: String,
    /// When it was so, where the machine does not answer.
    stale: Option<Time>,
}

/// One machine, beside its rows.
#[derive(Clone, Serialize)]
struct About {
    node: String,
    state: &'static str,
    /// How many of its sessions were found.
    sessions: u64,
    /// When that was so, where it does not answer; none where nobody knows what it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    stale_since: Option<String>,
    /// Why it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(skip)]
    stale: Option<Time>,
}

#[derive(Serialize)]
struct Form<'a> {
    node: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    stale_since: Option<String>,
    #[serde(flatten)]
    session: SessionForm,
}

#[derive(Serialize)]
struct Object<'a, R> {
    sessions: Vec<R>,
    nodes: &'a [About],
    next_cursor: Option<u64>,
}

type Rows = Vec<(Session, String)>;
/// What a machine said: its rows, and whether there are more.
type Answer = (String, Result<(Rows, bool), Failure>);

impl List for Everywhere<'_> {
    type Row = Row;
    const ROWS: &'static str = "sessions";

    async fn find(&self) -> Result<Found<Row>, Failure> {
        // Not borrowed meanwhile: it is waited for.
        let mut machines = self.machines.take();
        let is_first = !self.has_looked.replace(true);
        for machine in &mut machines {
            machine.reach(&self.home, is_first).await;
        }
        let found = self.ask(&mut machines).await;
        self.machines.replace(machines);
        let (mut rows, mut learnt) = found?;
        self.add_those_of_the_hub(&mut rows, &mut learnt).await;
        // Stable: where the order says nothing, the newest stay first.
        rows.sort_by(|a, b| {
            row::in_order(&a.session, &b.session)
                .then_with(|| b.session.created_at.cmp(&a.session.created_at))
                .then_with(|| a.node.cmp(&b.node))
        });
        let most = self.most().map_or(usize::MAX, |most| most as usize);
        learnt.is_cut |= rows.len() > most;
        rows.truncate(most);
        self.about.replace(learnt);
        Ok(Found { rows, next_cursor: None })
    }

    fn id(&self, row: &Row) -> String {
        row.session.id.to_string()
    }

    fn form(&self, row: &Row) -> impl Serialize {
        let session = SessionForm::new(&row.session, &row.campaign);
        serde_json::to_value(Form { node: &row.node, stale_since: row.stale.map(words::rfc3339), session })
            .unwrap_or_default()
    }

    fn object(&self, found: &Found<Row>) -> Option<String> {
        let sessions = found.rows.iter().map(|row| self.form(row)).collect();
        Some(to_json(&Object { sessions, nodes: &self.about.borrow().machines, next_cursor: None }))
    }

    async fn screen(&self, found: &Found<Row>) -> Result<Screen, Failure> {
        let shown: Vec<Shown<'_>> = found
            .rows
            .iter()
            .map(|row| Shown {
                session: &row.session,
                campaign: &row.campaign,
                node: Some(&row.node),
                stale: row.stale,
            })
            .collect();
        let sessions: Vec<&Session> = found.rows.iter().map(|row| &row.session).collect();
        let about = self.about.borrow();
        let beside = Beside { more: about.is_cut.then(|| "more: --limit 0".to_owned()), ..Beside::default() };
        let mut remarks = vec![match (sessions.is_empty(), self.args.filters.is_any()) {
            (true, true) => Line::of("No session fits on any machine."),
            (true, false) => Line::of("No sessions on any machine."),
            (false, _) => sessions::summary_of(&sessions, &beside, &|id| node_of(&found.rows, id)),
        }];
        remarks.push(Line::joined(about.machines.iter().map(About::line)));
        remarks.extend(about.machines.iter().filter_map(About::of_silence));
        let table = (!shown.is_empty()).then(|| sessions::table(&shown, words::now()));
        Ok(Screen { table, remarks, ..Screen::default() })
    }
}

impl Everywhere<'_> {
    fn scope(&self) -> Scope {
        self.args.filters.scope(self.args.all)
    }

    fn most(&self) -> Option<u32> {
        self.args.list.most((self.scope() == Scope::All).then_some(PAGE_DEFAULT))
    }

    async fn ask(&self, machines: &mut [Machine]) -> Result<(Vec<Row>, Learnt), Failure> {
        let mut asked = JoinSet::new();
        let clients = machines.iter().map(|machine| (machine.name.clone(), machine.client()));
        let clients = [(Node::HERE.to_owned(), Some(self.here.clone()))].into_iter().chain(clients);
        let clients: Vec<_> = clients.filter_map(|(name, client)| Some((name, client?))).collect();
        for (name, client) in clients {
            let most = self.most();
            match self.args.filters.resolve(self.app, &client, self.args.all).await {
                Ok(filter) => {
                    asked.spawn(async move {
                        let found = timeout(ANSWER_WITHIN, sessions_of(&client, &filter, most)).await;
                        let late =
                            |_| Failure::usage(format!("no answer within {} s", ANSWER_WITHIN.as_secs()));
                        (name, found.map_err(late).flatten())
                    });
                }
                Err(failure) if name == Node::HERE && !is_unknown(&failure) => return Err(failure),
                Err(failure) => {
                    asked.spawn(async move { (name, Err(failure)) });
                }
            }
        }
        let mut answers = known_somewhere(asked.join_all().await)?;
        let mut answer_of = |name: &str| {
            let place = answers.iter().position(|(node, _)| node == name);
            place.map(|place| answers.swap_remove(place).1)
        };
        let (mut rows, mut learnt) = (Vec::new(), Learnt::default());
        if let Some(answer) = answer_of(Node::HERE) {
            learnt.take(Node::HERE, answer?, &mut rows, self.args);
        }
        for machine in machines {
            match answer_of(&machine.name) {
                Some(Ok(found)) => {
                    if !self.args.filters.is_any() {
                        // A convenience: where it cannot be kept, the list is whole all the same.
                        let _ = Kept::write(&self.home, &machine.name, &found.0);
                    }
                    learnt.take(&machine.name, found, &mut rows, self.args);
                    continue;
                }
                Some(Err(failure)) => machine.close(&failure),
                None => {}
            }
            self.as_it_was(machine, &mut rows, &mut learnt);
        }
        Ok((rows, learnt))
    }

    /// Whether a session is asked for that no machine was asked about. `continued` are those that others went on with.
    fn fits(&self, session: &Session, campaign: &str, continued: &HashSet<SessionId>) -> bool {
        self.scope().fits(session, continued.contains(&session.id))
            && self.args.filters.fits(session, campaign)
    }

    /// Machines that only the hub knows, as it heard of them last.
    async fn add_those_of_the_hub(&self, rows: &mut Vec<Row>, learnt: &mut Learnt) {
        let known: Vec<String> = learnt.machines.iter().map(|about| about.node.clone()).collect();
        let all = hub_nodes::listed(self.app, &known).await;
        let sessions = || all.iter().flat_map(|listed| &listed.sessions);
        let continued = continued(sessions().map(|(session, _)| session));
        for hub_nodes::Listed { node, sessions, stale } in all {
            // Also of a machine without any: that it is away is to be known.
            let before = rows.len();
            let those =
                sessions.into_iter().filter(|(session, campaign)| self.fits(session, campaign, &continued));
            rows.extend(those.map(|(session, campaign)| Row {
                node: node.clone(),
                is_heard: true,
                session,
                campaign,
                stale,
            }));
            learnt.machines.push(About::of_hub(node, (rows.len() - before) as u64, stale));
        }
    }

    /// What a machine that does not answer had last.
    fn as_it_was(&self, machine: &Machine, rows: &mut Vec<Row>, learnt: &mut Learnt) {
        let kept = Kept::of(&self.home, &machine.name);
        let stale = kept.as_ref().map(|kept| kept.at);
        let before = rows.len();
        let old = kept.map(|kept| kept.rows).unwrap_or_default();
        let continued = continued(old.iter().map(|(session, _)| session));
        let old = old.into_iter().filter(|(session, campaign)| self.fits(session, campaign, &continued));
        rows.extend(old.map(|(session, campaign)| Row {
            node: machine.name.clone(),
            is_heard: false,
            session,
            campaign,
            stale,
        }));
        learnt.machines.push(About {
            node: machine.name.clone(),
            state: "offline",
            sessions: (rows.len() - before) as u64,
            stale_since: stale.map(words::rfc3339),
            why: Some(machine.why()),
            stale,
        });
    }
}

impl Learnt {
    fn take(&mut self, node: &str, (found, is_cut): (Rows, bool), rows: &mut Vec<Row>, args: &LsArgs) {
        let before = rows.len();
        let found = found.into_iter().filter(|(session, _)| args.filters.has_lasted(session));
        let row = |(session, campaign)| Row {
            node: node.to_owned(),
            is_heard: false,
            session,
            campaign,
            stale: None,
        };
        rows.extend(found.map(row));
        self.is_cut |= is_cut;
        self.machines.push(About {
            node: node.to_owned(),
            state: "answers",
            sessions: (rows.len() - before) as u64,
            stale_since: None,
            why: None,
            stale: None,
        });
    }
}

impl About {
    /// Of a machine that only the hub knows.
    fn of_hub(node: String, sessions: u64, stale: Option<Time>) -> About {
        About {
            node,
            state: if stale.is_none() { "answers" } else { "offline" },
            sessions,
            stale_since: stale.map(words::rfc3339),
            why: stale.map(|_| "the hub has lost it".to_owned()),
            stale,
        }
    }

    /// `build2 3`
    fn line(&self) -> Line {
        let name = Line::new().strong(self.node.as_str()).plain(" ");
        match &self.why {
            None => name.plain(self.sessions.to_string()),
            Some(_) => name.with(Tone::Bad, "offline"),
        }
    }

    /// What is shown of a machine that does not answer.
    fn of_silence(&self) -> Option<Line> {
        let why = self.why.as_ref()?;
        let ago = self.stale.map(|at| words::age(words::now().since(at)));
        let had = match (ago, self.sessions) {
            (None, _) => ", and what it has is not known".to_owned(),
            (Some(ago), 0) => format!(", and had none of these {ago} ago"),
            (Some(ago), _) => format!(", its rows are {ago} old"),
        };
        Some(Line::of(format!("{} does not answer{had}", self.node)).faint(format!("   {why}")))
    }
}

/// The machine that a session is on, where that is not this one.
fn node_of(rows: &[Row], id: SessionId) -> Option<Elsewhere<'_>> {
    let row = rows.iter().find(|row| row.session.id == id)?;
    match row.node.as_str() {
        Node::HERE => None,
        node if row.is_heard => Some(Elsewhere::Heard(node)),
        node => Some(Elsewhere::Asked(node)),
    }
}

/// Those that one of these went on with.
fn continued<'a>(sessions: impl Iterator<Item = &'a Session>) -> HashSet<SessionId> {
    sessions.filter_map(|session| session.continues).collect()
}

/// What has this name elsewhere need not be here: who does not know it has none. What nobody knows is refused.
fn known_somewhere(mut answers: Vec<Answer>) -> Result<Vec<Answer>, Failure> {
    let is_known = answers.iter().any(|(_, answer)| answer.is_ok());
    for (_, answer) in &mut answers {
        if answer.as_ref().is_err_and(is_unknown)
            && let Err(failure) = std::mem::replace(answer, Ok((Rows::new(), false)))
            && !is_known
        {
            return Err(failure);
        }
    }
    Ok(answers)
}

fn is_unknown(failure: &Failure) -> bool {
    let unknown = [
        Reason::CampaignUnknown,
        Reason::AgentUnknown,
        Reason::SessionUnknown,
        Reason::MissionUnknown,
        Reason::ProviderUnknown,
    ];
    failure.reason().is_some_and(|reason| unknown.contains(&reason))
}

/// What one machine has, those that have not ended with it however old they are; and whether there is more.
async fn sessions_of(
    client: &Client,
    filter: &SessionFilter,
    most: Option<u32>,
) -> Result<(Rows, bool), Failure> {
    let names = campaign_names(client).await?;
    let (found, is_cut) = pages(client, filter, most).await?;
    let live = match is_cut {
        true => pages(client, &SessionFilter { scope: Scope::NotEnded, ..filter.clone() }, None).await?.0,
        false => Vec::new(),
    };
    let named = |session: Session| {
        let campaign = names.of(&session.campaign);
        (session, campaign)
    };
    Ok((joined(found, live).into_iter().map(named).collect(), is_cut))
}

/// At most so many; and whether there are more. `Found::paged` asks by a closure, which no task of its own can do.
async fn pages(
    client: &Client,
    filter: &SessionFilter,
    most: Option<u32>,
) -> Result<(Vec<Session>, bool), Failure> {
    let most = most.map_or(usize::MAX, |most| most as usize);
    let (mut rows, mut cursor) = (Vec::new(), None);
    loop {
        let room = u32::try_from(most - rows.len()).unwrap_or(PAGE_MOST).min(PAGE_MOST);
        let listed = client.sessions(filter, Page::of(room, cursor)).await?;
        rows.extend(listed.rows);
        cursor = listed.next_cursor;
        if cursor.is_none() || rows.len() >= most {
            let is_cut = cursor.is_some() || rows.len() > most;
            rows.truncate(most);
            return Ok((rows, is_cut));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_domain::Refusal;

    use crate::{
        output::Look,
        testing::{self, NOW},
    };

    #[test]
    fn a_failure_elsewhere_is_listed_until_somebody_has_gone_on_with_it() {
        let failed = testing::fleet().remove(6);
        let next = Session { continues: Some(failed.id), ..testing::fleet().remove(2) };
        let scope = Scope::Current { failed_since: testing::ago(86_400) };
        let listed = |rows: &[&Session]| -> Vec<SessionId> {
            let continued = continued(rows.iter().copied());
            let fits = |session: &&&Session| scope.fits(session, continued.contains(&session.id));
            rows.iter().filter(fits).map(|session| session.id).collect()
        };
        assert_eq!(listed(&[&failed]), [failed.id]);
        assert_eq!(listed(&[&failed, &next]), [next.id]);
    }

    #[test]
    fn who_does_not_know_a_name_has_none_and_what_nobody_knows_is_refused() {
        let unknown = || Failure::from(Refusal::new(Reason::ProviderUnknown, "there is no provider \"x\""));
        let offline = || Failure::from(Refusal::new(Reason::DaemonUnreachable, "no answer"));
        let here = |answer| ("here".to_owned(), answer);
        let there = |answer| ("there".to_owned(), answer);
        let mixed = known_somewhere(vec![here(Err(unknown())), there(Ok((Rows::new(), true)))]).unwrap();
        assert!(mixed.iter().all(|(_, answer)| answer.is_ok()));
        let failed = known_somewhere(vec![here(Err(unknown())), there(Err(offline()))]).unwrap_err();
        assert_eq!(failed.reason(), Some(Reason::ProviderUnknown));
        let silent = known_somewhere(vec![here(Ok((Rows::new(), false))), there(Err(offline()))]).unwrap();
        assert!(silent[1].1.is_err(), "who does not answer is not one that knows nothing");
    }

    #[test]
    fn every_machine_is_named_and_who_is_silent_says_what_is_known() {
        let about = |node: &str, sessions, stale, why: Option<&str>| About {
            node: node.to_owned(),
            state: if why.is_none() { "answers" } else { "offline" },
            sessions,
            stale_since: None,
            why: why.map(str::to_owned),
            stale,
        };
        let machines = [
            about("here", 2, None, None),
            about("idle", 0, None, None),
            about("empty", 0, Some(NOW), Some("Connection refused")),
            about("new", 0, None, Some("no route to host")),
        ];
        let plain = Look::plain(None);
        let line = Line::joined(machines.iter().map(About::line)).show(&plain);
        assert_eq!(line, "here 2 · idle 0 · empty offline · new offline");
        let silent: Vec<_> =
            machines.iter().filter_map(About::of_silence).map(|line| line.show(&plain)).collect();
        assert_eq!(silent.len(), 2);
        assert!(silent[0].starts_with("empty does not answer, and had none of these "), "{}", silent[0]);
        assert_eq!(silent[1], "new does not answer, and what it has is not known   no route to host");
    }
}
