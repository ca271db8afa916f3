//! `ostler allow` and `ostler deny`: answers to agents that ask for leave.

use clap::Args;
use ostler_client::{AnswerApproval, AnswerGiven, Client};
use ostler_domain::{
    Reason, Refusal,
    approval::{Applied, NO_RULES},
};

use super::many;
use crate::{
    app::App,
    failure::Failure,
    form::ApprovalForm,
    output::{Line, Tone},
};

#[derive(Debug, Args)]
pub(crate) struct AllowArgs {
    /// Approvals, or sessions that ask one thing
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    /// The answer to a question
    #[arg(short, long, value_name = "ANSWER", default_value = "", hide_default_value = true)]
    message: String,
    /// And from now on: makes a rule of the campaign, and shows it
    #[arg(long)]
    always: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DenyArgs {
    /// Approvals, or sessions that ask one thing
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    /// What the agent is told
    #[arg(short, long, value_name = "REASON", default_value = "", hide_default_value = true)]
    message: String,
}

pub(crate) async fn allow(app: &App, args: AllowArgs) -> Result<u8, Failure> {
    let said = Said { allow: true, always: args.always, message: &args.message };
    answer(app, &args.ids, said).await
}

pub(crate) async fn deny(app: &App, args: DenyArgs) -> Result<u8, Failure> {
    answer(app, &args.ids, Said { allow: false, always: false, message: &args.message }).await
}

/// What is said to each of them.
#[derive(Debug, Clone, Copy)]
struct Said<'a> {
    allow: bool,
    always: bool,
    message: &'a str,
}

async fn answer(app: &App, ids: &[String], said: Said<'_>) -> Result<u8, Failure> {
    let client = app.client().await?;
    let mut ends = many::Ends::default();
    for typed in ids {
        match answer_one(app, &client, typed, said).await {
            Ok(given) => {
                say(app, &client, &given, said.allow).await?;
                ends.done();
            }
            Err(failure) if ids.len() == 1 => return Err(failure),
            Err(failure) => ends.failed(failure)?,
        }
    }
    Ok(ends.say(app))
}

async fn answer_one(app: &App, client: &Client, typed: &str, said: Said<'_>) -> Result<AnswerGiven, Failure> {
    let Said { allow, always, message } = said;
    let request = |approval: String| AnswerApproval { approval, allow, always, message: message.to_owned() };
    let unknown = if typed == "-" {
        None
    } else {
        match client.answer_approval(request(typed.to_owned())).await.map_err(Failure::from) {
            Err(failure) if failure.reason() == Some(Reason::ApprovalUnknown) => Some(failure),
            answered => return answered,
        }
    };
    let session = match (app.session(client, typed).await, unknown) {
        (Ok(session), _) => session,
        (Err(_), Some(unknown)) => return Err(unknown),
        (Err(failure), None) => return Err(failure),
    };
    match session.approvals_open.as_slice() {
        [one] => Ok(client.answer_approval(request(one.to_string())).await?),
        [] => Err(Refusal::new(Reason::WrongState, format!("{} asks for nothing", session.name))
            .hint("ostler ls --needs-me", "lists who waits for you")
            .into()),
        several => {
            Err(Refusal::new(Reason::Ambiguous, format!("{} asks {} things", session.name, several.len()))
                .hint(format!("ostler show {}", session.id.short()), "lists them")
                .into())
        }
    }
}

async fn say(app: &App, client: &Client, given: &AnswerGiven, allow: bool) -> Result<(), Failure> {
    let approval = &given.approval;
    if app.ui.is_json() {
        return app.ui.json(&ApprovalForm::new(approval).with_rules(&given.rules));
    }
    let (tone, word) = if allow { (Tone::Good, "allowed") } else { (Tone::Bad, "denied") };
    app.ui.data(
        &Line::toned(tone, word)
            .plain(format!("  {}", approval.asks))
            .faint(format!("   session {}", approval.session.short())),
    )?;
    let (kept, undo) = kept(app, client, given).await;
    kept.iter().try_for_each(|line| app.ui.data(line))?;
    undo.iter().for_each(|line| app.ui.remark(line));
    Ok(())
}

/// The rules that allow the same from now on, and how to take them away again.
pub(super) async fn kept(app: &App, client: &Client, given: &AnswerGiven) -> (Vec<Line>, Vec<Line>) {
    if given.rules.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let session = client.session(&given.approval.session.to_string()).await;
    let campaign = match &session {
        Ok(session) => app.campaign_name(client, &session.campaign).await,
        Err(_) => "CAMPAIGN".to_owned(),
    };
    let not_here = not_here(&given.approval.why, &given.approval.session.short());
    (
        given.rules.iter().map(|rule| rule_line(rule, &campaign)).collect(),
        not_here.into_iter().chain(undo(&given.rules, &campaign)).collect(),
    )
}

/// Where a person answers everything, no rule does.
fn not_here(why: &str, session: &str) -> Option<Line> {
    let words = format!("not in session {session}, where {NO_RULES}: it will ask again");
    (why == NO_RULES).then(|| Line::toned(Tone::Warn, words))
}

fn rule_line(rule: &Applied, campaign: &str) -> Line {
    let number = rule.number.map_or_else(|| "built in".to_owned(), |number| format!("rule {number}"));
    Line::of(format!("from now on in {campaign}:  ")).strong(number).plain(format!("  {}", rule.text))
}

/// From the last on, so that none moves the place of the next.
fn undo(rules: &[Applied], campaign: &str) -> Option<Line> {
    let mut numbers: Vec<u32> = rules.iter().filter_map(|rule| rule.number).collect();
    numbers.sort_unstable_by(|a, b| b.cmp(a));
    let settings: Vec<String> = numbers.iter().map(|number| format!("approve.rule-={number}")).collect();
    (!settings.is_empty()).then(|| {
        Line::of("undo: ")
            .with(Tone::Accent, format!("ostler campaign set {campaign} {}", settings.join(" ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Look;

    #[test]
    fn a_rule_is_said_not_to_hold_where_a_person_answers_everything() {
        let look = Look::plain(None);
        let said = not_here(NO_RULES, "k7q4x").map(|line| line.show(&look));
        assert!(said.is_some_and(|said| said.contains("not in session k7q4x")));
        assert!(not_here("rule 4: git push asks", "k7q4x").is_none());
    }
}
