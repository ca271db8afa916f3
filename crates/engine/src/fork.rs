//! A conversation that begins as a copy of another one. The copy has a home of its own, so that nobody ever writes to what
//! the other one remembers.

use ostler_domain::{
    ConversationId, Event, Name, Reason, Refusal, SessionId,
    conversation::{Key, TurnRef},
    event::ConversationOpened,
    limits::PAGE_MOST,
    message::Said,
    session::{Config, State, View},
    snapshot::turn_number,
    text::one_line,
};
use ostler_store::CommitError;

use crate::{
    Change, Engine,
    clock::entropy,
    confine,
    create::{Way, created, new_message},
    memory::Cut,
    place::Place,
    seance::{Asked, seance_name},
    shared::Shared,
    upstream,
    worktree::Wish,
};

/// In what a copy of a conversation is to differ from it.
#[derive(Debug, Clone, Default)]
pub struct NewFork {
    /// Unset, the other one's, numbered.
    pub name: Option<Name>,
    /// The last turn that both have: its number, or a checkpoint of the session's ticket. Unset, all there was.
    pub at: Option<String>,
}

/// A copy that is to be made.
pub(crate) struct Branch {
    pub(crate) name: Option<Name>,
    /// The last turn that both have.
    pub(crate) at: Option<TurnRef>,
    /// Where what was said is cut off.
    pub(crate) cut: Option<Cut>,
    /// It is made to answer one question.
    pub(crate) asked: Option<Asked>,
}

impl Engine {
    /// Begins a new conversation with what another one knows. Its first session waits for messages.
    pub async fn fork(&self, who: &str, wanted: NewFork, change: Change) -> Result<View, Refusal> {
        let view = self.session(who).await?;
        let NewFork { name, at } = &wanted;
        let point = at.as_ref().map(|at| format!(" at {at}")).unwrap_or_default();
        let fingerprint = format!("fork {} {name:?}{point}", view.id);
        if let Some(reply) = change.done_before(&self.shared.store, &fingerprint).await? {
            return self.session(&reply).await;
        }
        let at = match at {
            Some(at) => Some(self.turn_meant(who, &view, at).await?),
            None => None,
        };
        let old = self.state_of(at.map_or(view.id, |at| at.session)).await?;
        let cut = match at {
            Some(at) => self.cut(&old, at).await?,
            None => None,
        };
        let branch = Branch { name: wanted.name, at, cut, asked: None };
        self.branch_off(&old, branch, &fingerprint, &change).await
    }

    /// Begins the copy: with a home of its own, and what it is to know.
    pub(crate) async fn branch_off(
        &self,
        old: &State,
        branch: Branch,
        fingerprint: &str,
        change: &Change,
    ) -> Result<View, Refusal> {
        let before = old.created();
        let campaign =
            self.campaign_to_go_on_in(before, format!("ostler fork {}", before.id.short())).await?;
        self.check_workplace(&campaign)?;
        let provider = self.shared.provider(&before.config.provider)?;
        let account = before.config.auth_profile.as_ref();
        let settings = self.shared.options.providers.of_account(&before.config.provider, account)?;
        let home = self.shared.options.home_dir.as_deref();
        self.shared.programs.find(provider.as_ref(), &settings, home).await?;
        let said = upstream::check_key(provider.as_ref(), &settings, &change.keys).await?;
        let has_model = self.shared.has_model(provider.as_ref(), &settings, &change.keys);
        let told = &before.config.environment;
        self.shared.check_login(provider.as_ref(), &settings, has_model, told, &campaign.policy)?;
        let way = Way::of(has_model, self.shared.login(provider.as_ref(), &settings).is_some());
        self.check_model_is_reached(&campaign, provider.as_ref(), way)?;
        let usual = Config {
            model: old.next_model().map(str::to_owned),
            ends_with_turn: false,
            budget: old.budget().copied(),
            approval_us: self.shared.options.approval_us(),
            working_dir: campaign.root.path.clone(),
            deadline: None,
            ..before.config.clone()
        };
        let config = match &branch.asked {
            Some(asked) => asked.config(usual),
            None => usual,
        };
        if branch.asked.is_some() {
            self.check_price(&campaign, &config)?;
        }
        self.shared.check_campaign_budget(&campaign, config.billing).await?;
        let own = before.agent.as_ref().map(|agent| agent.id).filter(|_| branch.asked.is_none());
        self.check_agent_budget(own, None, &campaign, &config).await?;
        self.shared.check_confinable().await?;
        let now = self.shared.clock.now().wall;
        let (id, conversation) = (SessionId::new(now, entropy()), ConversationId::new(now, entropy()));
        self.shared.copy_home(old, conversation).await?;
        let begin = match branch.cut {
            Some(cut) => self.shared.begin_fork_at(old, cut).await?,
            None => self.shared.begin_fork(old, conversation).await?,
        };
        // Both may be at work at once, so each has a work tree; the copy's begins with what the other has committed. Who is
        // only asked changes nothing anywhere.
        let tree = match &before.config.worktree {
            Some(tree) if branch.asked.is_none() => {
                let seen = self.shared.store.seen_work(before.id).await?.head;
                let ground = self.worktree_ground(&campaign, None).await?;
                Wish::New { ground, branch: None, start: seen.or(Some(tree.base.clone())) }
            }
            _ => Wish::Nothing,
        };
        let _naming = self.shared.naming.lock().await;
        let made = |n: u32| match &branch.asked {
            Some(_) => seance_name(&before.name, n),
            None => before.name.numbered(n + 1),
        };
        let name = self.free_name(campaign.id, branch.name.as_ref(), made).await?;
        // Who is only asked is nobody's agent, and none of its lives.
        let agent = before.agent.clone().filter(|_| branch.asked.is_none());
        let opened = Event::ConversationOpened(Box::new(ConversationOpened {
            agent: agent.as_ref().map(|agent| agent.id),
            forked_from: Some(before.conversation),
            forked_at: branch.at,
            notes: self.stored_conversation(before.conversation).await?.notes.kept_by_reset(true),
            ..ConversationOpened::new(conversation, campaign.id, Key::adhoc(id), name.clone())
        }));
        let place = Place { agent, ..Place::first(id, conversation, name, begin) };
        let (working_dir, worktree) = self.place_to_work(&campaign, &place.name, tree).await?;
        let config = Config { working_dir, worktree, ..config };
        let messages =
            branch.asked.iter().map(|asked| Said::from(new_message(now, &asked.prompt()))).collect();
        let created = created(&campaign, config, self.shared.sandbox(), place);
        let done = change.done(fingerprint, id.to_string());
        match self.record_session(created, messages, vec![opened], Vec::new(), change, done).await {
            Err(CommitError::RequestDone { reply, .. }) => self.session(&reply).await,
            Err(error) => Err(error.into()),
            Ok(view) => {
                self.shared.bring_keys(id, &view.provider, view.auth_profile.as_ref(), &change.keys)?;
                self.shared.keys.keep_said(id, said);
                self.shared.wake(id).await?;
                Ok(view)
            }
        }
    }
}

impl Engine {
    /// The turn that somebody names: by its number, of the session that is named, else of the last one of the conversation
    /// that has it; or by a checkpoint of the session's ticket, which may be a point in another session's work.
    async fn turn_meant(&self, who: &str, view: &View, at: &str) -> Result<TurnRef, Refusal> {
        if let Some(turn) = turn_number(at) {
            let is_conversation =
                who.parse::<ConversationId>().is_ok() || who.rsplit('/').next() == Some(view.name.as_str());
            return match is_conversation {
                true => self.last_turn_numbered(view, turn).await,
                false => Ok(TurnRef { session: view.id, turn }),
            };
        }
        let checkpoint = self.checkpoint_of(view, at).await?.ok_or_else(|| {
            let short = view.id.short();
            let message = format!("session {short} has no turn and no checkpoint \"{}\"", one_line(at, 64));
            Refusal::invalid(message).because(turns_of(view.turns)).hint(
                format!("ostler fork {short} --at TURN"),
                "a turn is its number; checkpoints are those of its ticket",
            )
        })?;
        checkpoint.at.ok_or_else(|| {
            Refusal::invalid(format!("the checkpoint {} has files, and no turn", one_line(at, 64))).hint(
                format!("ostler rewind {} {} --files", view.id.short(), one_line(at, 64)),
                "puts those files back",
            )
        })
    }

    async fn last_turn_numbered(&self, view: &View, turn: u32) -> Result<TurnRef, Refusal> {
        let sessions = self.shared.store.sessions_of_conversation(view.conversation, PAGE_MOST).await?;
        if let Some(last) = sessions.iter().find(|session| (1..=session.turns).contains(&turn)) {
            return Ok(TurnRef { session: last.id, turn });
        }
        let message = format!("no session of {} has a turn {turn}", view.name);
        let most = sessions.iter().map(|session| session.turns).max().unwrap_or_default();
        Err(match sessions.as_slice() {
            [_] => Refusal::invalid(message).because(turns_of(most)),
            several => Refusal::invalid(message)
                .because(format!("its {} sessions have {most} turns or fewer each", several.len())),
        }
        .hint(format!("ostler transcript show {}", view.conversation), "shows what was said in it"))
    }

    /// Where what was said is cut off; none where the turn is the last, and the agent's own memory can be copied.
    async fn cut(&self, old: &State, at: TurnRef) -> Result<Option<Cut>, Refusal> {
        let view = old.view();
        let short = view.id.short();
        if at.turn == 0 || at.turn > view.turns {
            return Err(Refusal::invalid(format!("session {short} has no turn {}", at.turn))
                .because(turns_of(view.turns))
                .hint(format!("ostler transcript show {short}"), "shows its turns")
                .hint(
                    format!("ostler fork {} --at {}", view.conversation, at.turn),
                    "looks for it in the whole conversation",
                ));
        }
        if old.turn().is_some_and(|open| open.number == at.turn) {
            return Err(Refusal::new(
                Reason::WrongState,
                format!("turn {} of session {short} has not ended", at.turn),
            )
            .hint(format!("ostler wait {short}"), "waits until it has"));
        }
        // What the agent remembers by now may be what a later session said.
        let last = self.shared.store.sessions_of_conversation(view.conversation, 1).await?.pop();
        if at.turn == view.turns && last.is_none_or(|last| last.id == view.id) {
            return Ok(None);
        }
        let cut = self.shared.end_of_turn(at.session, at.turn).await?;
        cut.map(Some).ok_or_else(|| {
            Refusal::invalid(format!("it is not recorded how turn {} of session {short} ended", at.turn))
                .because("what was recorded of it may have been deleted by a rule of retention")
        })
    }
}

fn turns_of(turns: u32) -> String {
    match turns {
        0 => "it has had no turn yet".to_owned(),
        1 => "it has had one turn: 1".to_owned(),
        turns => format!("its turns are 1 to {turns}"),
    }
}

impl Shared {
    /// Copies the home of a conversation, as it is on disk at this moment.
    async fn copy_home(&self, old: &State, copy: ConversationId) -> Result<(), Refusal> {
        let homes = self.options.state_dir.join("homes");
        let (from, to) = (homes.join(old.created().conversation.to_string()), homes.join(copy.to_string()));
        let copied = tokio::task::spawn_blocking(move || {
            confine::copy_home(&from, &to).inspect_err(|_| {
                // Half a home is nobody's.
                let _ = std::fs::remove_dir_all(&to);
            })
        });
        let copied = copied.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        copied.map_err(|error| {
            Refusal::internal(format!("the home of {} cannot be copied", old.created().name))
                .because(error.to_string())
        })
    }
}
