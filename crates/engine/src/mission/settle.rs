//! What a plan leaves open, settled before anything is made of it: each agent's provider, model and account, as its session
//! would have them. So limits count what runs, a price is that of the model that runs, and what cannot run is said at once.

use ostler_domain::{
    Reason, Refusal,
    budget::unpriced,
    campaign::Campaign,
    conversation::Key,
    mission::{
        Fault, Member, Plan,
        plan::{Lines, Settings, Worktree},
    },
    text::{nearest, one_line},
};

use crate::{Change, Engine, NewSession};

/// Which of an agent's keys a fault is about.
struct Wrong {
    key: &'static str,
    refusal: Refusal,
}

impl Engine {
    /// Settles a plan for a campaign; and says what of it could not be started, each where it stands.
    pub(super) async fn settled(
        &self,
        campaign: &Campaign,
        mut plan: Plan,
        lines: &Lines,
        change: &Change,
    ) -> Result<(Plan, Vec<Fault>), Refusal> {
        let mut faults = Vec::new();
        let members = std::mem::take(&mut plan.agents);
        plan.agents =
            self.settled_members(campaign, &plan.defaults, members, lines, change, &mut faults).await;
        self.limits_that_mean_nobody(&plan, lines, &mut faults)?;
        faults.extend(self.without_ground(campaign, &plan, lines).await);
        faults.extend(self.without_price(&plan, lines));
        Ok((plan, faults))
    }

    /// Work trees that git could not make, or a branch to merge into that there is not: said before any work is done that
    /// would come to nothing in the end.
    async fn without_ground(&self, campaign: &Campaign, plan: &Plan, lines: &Lines) -> Vec<Fault> {
        let in_tree = |(_, member): &(usize, &Member)| plan.work(member).worktree != Worktree::None;
        let in_trees: Vec<(usize, &Member)> = plan.agents.iter().enumerate().filter(in_tree).collect();
        if in_trees.is_empty() {
            return Vec::new();
        }
        let into = plan.merge.as_ref().map(|merge| merge.into.as_str());
        let ground = self.worktree_ground(campaign, into).await;
        match ground.and_then(|ground| ground.head(&campaign.name).map(drop).map(|()| ground)) {
            Ok(ground) => {
                let Some(into) = into.filter(|_| !ground.has_branch()) else { return Vec::new() };
                let message = format!("there is no branch \"{into}\" to merge into");
                let fault = Fault::new(lines.inside("merge", "into"), message);
                vec![match ground.branch() {
                    Some(there) => fault.hint(format!("{there} is checked out; git branch {into} makes one")),
                    None => fault.hint(format!("git branch {into}")),
                }]
            }
            Err(refusal) if refusal.reason == Reason::WorktreeRefused => {
                let why = refusal.why.map(|why| format!(": {}", one_line(&why, 160))).unwrap_or_default();
                let hint = refusal.hints.into_iter().next().map(|hint| hint.command);
                // Once for each line that asks for one.
                let mut faults: Vec<Fault> = Vec::new();
                for (n, member) in in_trees {
                    let line = lines.of_setting(n, "worktree", member.settings.worktree.is_some());
                    if faults.iter().all(|fault| fault.line != line) {
                        let message =
                            format!("{} can have no work tree: {}{why}", member.name, refusal.message);
                        faults.push(Fault { line, message, hint: hint.clone() });
                    }
                }
                faults
            }
            // Whoever cannot be looked at now may be when it is needed.
            Err(_) => Vec::new(),
        }
    }

    /// Models that are paid for by the call and have no price: a budget in dollars would hold all of it at the first one.
    fn without_price(&self, plan: &Plan, lines: &Lines) -> Vec<Fault> {
        let prices = self.shared.prices.current();
        let mut faults: Vec<Fault> = Vec::new();
        for (n, member) in plan.agents.iter().enumerate() {
            let work = plan.work(member);
            let mut budgets = [plan.budget, work.budget].into_iter().flatten();
            let provider = work.provider.as_deref().and_then(|name| self.shared.provider(name).ok());
            let counts = budgets.any(|budget| budget.dollars.is_some())
                && provider.is_some_and(|provider| !provider.has_plans());
            let Some(model) = work.model.as_deref().filter(|name| counts && prices.quote(name).is_none())
            else {
                continue;
            };
            let line = lines.of_setting(n, "model", true).or_else(|| lines.of(n, "name"));
            let (why, cure) = unpriced(model);
            let message = format!("the dollars of {} cannot be counted: {why}", member.name);
            if faults.iter().all(|fault| fault.line != line) {
                faults.push(Fault::new(line, message).hint(cure));
            }
        }
        faults
    }

    /// The same with some agents of a plan that says this of all.
    pub(super) async fn settled_members(
        &self,
        campaign: &Campaign,
        defaults: &Settings,
        members: Vec<Member>,
        lines: &Lines,
        change: &Change,
        faults: &mut Vec<Fault>,
    ) -> Vec<Member> {
        let mut settled = Vec::with_capacity(members.len());
        // Most members of a plan are run alike, and are asked for once.
        let mut known: Vec<(Settings, Settings)> = Vec::new();
        for (n, mut member) in members.into_iter().enumerate() {
            let said = member.settings.or(defaults);
            let alike = known.iter().find(|(like, _)| *like == said && member.agent.is_none());
            let ((found, wrongs), is_known) = match alike {
                Some((_, found)) => ((Some(found.clone()), Vec::new()), true),
                None => (self.settle(campaign, &member, &said, change).await, false),
            };
            if let Some(found) = found {
                match member.agent {
                    None if is_known => {}
                    None => known.push((said, found.clone())),
                    // Whose key its sessions use is the registered agent's to say.
                    Some(_) => member.settings.account = found.account,
                }
                (member.settings.provider, member.settings.model) = (found.provider, found.model);
            }
            for Wrong { key, refusal } in wrongs {
                let is_own = match key {
                    "provider" => member.settings.provider.is_some(),
                    "account" => member.settings.account.is_some(),
                    _ => true,
                };
                let line = lines.of_setting(n, key, is_own).or_else(|| lines.of(n, "name"));
                let why = refusal.why.map(|why| format!(": {}", one_line(&why, 160))).unwrap_or_default();
                let message = format!("{} cannot run: {}{why}", member.name, refusal.message);
                let fault = Fault::new(line, message);
                let hint = refusal.hints.first().map(|hint| hint.command.clone());
                faults.push(match hint {
                    Some(hint) => fault.hint(hint),
                    None => fault,
                });
            }
            settled.push(member);
        }
        settled
    }

    /// How a member's session would be run, as far as nobody says otherwise until then; or all that keeps it from being run.
    async fn settle(
        &self,
        campaign: &Campaign,
        member: &Member,
        said: &Settings,
        change: &Change,
    ) -> (Option<Settings>, Vec<Wrong>) {
        let mut wrongs = Vec::new();
        let agent = member.agent.as_ref().map(ToString::to_string);
        let key = agent.as_ref().and_then(|_| format!("mission:{}", member.name).parse::<Key>().ok());
        let mut wanted = NewSession {
            campaign: campaign.id.to_string(),
            provider: said.provider.clone().unwrap_or_default(),
            model: said.model.clone(),
            auth_profile: said.account.clone(),
            agent,
            key,
            ..NewSession::default()
        };
        match self.whose(&wanted, campaign).await {
            Ok(whose) => whose.fill(&mut wanted, &self.shared),
            Err(refusal) => wrongs.push(Wrong { key: "agent", refusal }),
        }
        if wanted.provider.is_empty() {
            match self.usual_provider(&wanted, campaign, change).await {
                Ok(usual) => wanted.provider = usual,
                // Its agent may have one, if it were there.
                Err(_) if !wrongs.is_empty() => return (None, wrongs),
                Err(refusal) => return (None, vec![Wrong { key: "name", refusal }]),
            }
        }
        let (provider, account) = (wanted.provider, wanted.auth_profile);
        if let Err(refusal) = self.shared.provider(&provider) {
            wrongs.push(Wrong { key: "provider", refusal });
            return (None, wrongs);
        }
        let settings = self.shared.options.providers.of_account(&provider, account.as_ref());
        let known = account.as_ref().filter(|_| settings.is_ok());
        if let Err(refusal) = self.shared.check_program(&provider, known).await {
            wrongs.push(Wrong { key: "provider", refusal });
        }
        let settings = match settings {
            Ok(settings) if wrongs.is_empty() => settings,
            Ok(_) => return (None, wrongs),
            Err(refusal) => {
                wrongs.push(Wrong { key: "account", refusal });
                return (None, wrongs);
            }
        };
        let usual = campaign.policy.model_for(&provider).map(str::to_owned).or(settings.model);
        let model = wanted.model.or(usual);
        (Some(Settings { provider: Some(provider), model, account, ..Settings::default() }), wrongs)
    }

    /// A limit of what is misspelt limits nobody, and nobody notices.
    fn limits_that_mean_nobody(
        &self,
        plan: &Plan,
        lines: &Lines,
        faults: &mut Vec<Fault>,
    ) -> Result<(), Refusal> {
        let limits = &plan.limits;
        if limits.providers.is_empty() && limits.accounts.is_empty() {
            return Ok(());
        }
        let configured = self.shared.options.providers.all()?;
        let providers = self.shared.provider_names();
        let mut accounts: Vec<String> =
            configured.into_values().flat_map(|settings| settings.profiles.into_keys()).collect();
        let named = plan.agents.iter().filter_map(|member| member.settings.account.as_ref());
        accounts.extend(named.map(ToString::to_string));
        for (names, known, key) in
            [(&limits.providers, providers, "providers"), (&limits.accounts, accounts, "accounts")]
        {
            for name in names.keys().filter(|name| !known.contains(name)) {
                let hint = match nearest(name, known.iter().map(String::as_str)) {
                    Some(meant) => format!("did you mean {meant}?"),
                    None if known.is_empty() => "there are none".to_owned(),
                    None => format!("there are: {}", known.join(" ")),
                };
                let what = key.trim_end_matches('s');
                let message =
                    format!("a limit is of the {what} \"{}\", which there is not", one_line(name, 40));
                faults.push(Fault::new(lines.inside("limits", key), message).hint(hint));
            }
        }
        Ok(())
    }
}
