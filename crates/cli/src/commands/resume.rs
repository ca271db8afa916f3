//! `ostler resume`: lets sessions go on, whatever held them; a turn that failed is tried again.

use clap::Args;
use ostler_client::{Client, ResumeSession, Session};
use ostler_domain::{Refusal, budget::Amount, text::shell_word};

use super::{
    chosen::{Chosen, Deed},
    lost, many, native,
};
use crate::{app::App, exit_code, failure::Failure, filters::Filters, parse};

#[derive(Debug, Args)]
#[command(mut_arg("who", |who| who.required_unless_present("lost")))]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    chosen: Chosen,
    /// Those that were lost when this machine restarted: shows what each would cost, and asks
    #[arg(long, conflicts_with_all = ["who", "budget", "tape"], conflicts_with_all = Filters::IDS)]
    lost: bool,
    /// Leave the lost ones as they are, and ask no more
    #[arg(long, requires = "lost", conflicts_with = "who")]
    leave: bool,
    /// Print the provider's own command that goes on with it, without Ostler
    #[arg(long, conflicts_with_all = ["lost", "budget", "tape"], requires = "who")]
    native: bool,
    /// Allow this much in all, what is used included: 5usd, 500k, or both with a comma between them
    #[arg(long, value_parser = parse::budget, value_name = "AMOUNT")]
    budget: Option<Amount>,
    /// Let the tape become this large: 8GiB
    #[arg(long, value_parser = parse::bytes, value_name = "SIZE")]
    tape: Option<u64>,
}

pub(crate) async fn run(app: &App, args: ResumeArgs) -> Result<u8, Failure> {
    if args.lost {
        let wish = match args.leave {
            true => lost::Wish::Leave,
            false => lost::Wish::GoOn { yes: args.chosen.yes, dry_run: args.chosen.dry_run },
        };
        return lost::run(app, wish).await;
    }
    let client = app.client().await?;
    let chosen = args.chosen;
    if args.native {
        return native::run(app, &client, &chosen.who).await;
    }
    if let ([who, ..], [model, ..]) = (chosen.who.as_slice(), chosen.filters.model.as_slice()) {
        return Err(Refusal::invalid("--model finds sessions here, and does not change their model")
            .hint(
                format!("ostler restart {} --model {}", shell_word(who), shell_word(model)),
                "goes on with another model",
            )
            .into());
    }
    let deed = Deed { verb: "resume", done: "resumed", of_the_ended: true };
    let Some(operands) = chosen.sessions(app, &client, &deed).await? else { return Ok(exit_code::OK) };
    let raised = |session: &Session| ResumeSession {
        who: session.id.to_string(),
        max_tokens: args.budget.and_then(|amount| amount.tokens),
        max_dollars: args.budget.and_then(|amount| amount.dollars),
        tape_bytes: args.tape,
    };
    let act = async |client: &Client, who: &str| {
        let session = client.session(who).await?;
        // Nobody must know a session's state to pick a verb: what has ended goes on in a new session.
        if session.outcome.is_some() {
            let budget = args.budget.unwrap_or_default();
            let fresh = client.restart_with(who, None, budget).await?;
            let Some(tape_bytes) = args.tape else { return Ok(("goes on".to_owned(), fresh)) };
            let larger = ResumeSession {
                who: fresh.id.to_string(),
                tape_bytes: Some(tape_bytes),
                ..ResumeSession::default()
            };
            let fresh = client.resume_session(larger).await?;
            return Ok(("goes on".to_owned(), fresh));
        }
        Ok(("goes on".to_owned(), client.resume_session(raised(&session)).await?))
    };
    many::each(app, &client, &operands, act).await
}
