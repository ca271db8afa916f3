//! Whatever the core says, it hears again, through real bytes.

use std::time::Duration;

use ostler_domain::{Receipt, RequestId, Time, sql::Answer};
use ostler_wire::{
    from_proto, pb,
    reply::{
        AnswerGiven, CheckNews, DaemonStopping, Delta, EventPage, Hit, NewToken, Received, Sent, Taken,
        UsageSums,
    },
    request::MissionAction,
    to_proto,
};
use proptest::prelude::*;
use prost::Message;

use crate::dice::{Dice, dice};

fn bytes<M: Message + Default>(message: &M) -> M {
    M::decode(message.encode_to_vec().as_slice()).unwrap()
}

fn request_id() -> RequestId {
    RequestId::new(Time::from_micros(1), 2)
}

proptest! {
    #[test]
    fn sessions(mut dice in dice()) {
        let view = dice.view();
        prop_assert_eq!(from_proto::view(bytes(&to_proto::view(&view))), Ok(view));
    }

    #[test]
    fn imports(mut dice in dice()) {
        let import = dice.import();
        prop_assert_eq!(from_proto::import(bytes(&to_proto::import(&import))), Ok(import));
        for news in dice.import_news() {
            prop_assert_eq!(from_proto::import_news(bytes(&to_proto::import_news(&news))), Ok(news));
        }
    }

    #[test]
    fn campaigns(mut dice in dice()) {
        let campaign = dice.campaign();
        let (id, name) = (campaign.id, campaign.name.clone());
        prop_assert_eq!(from_proto::campaign_name(bytes(&to_proto::campaign_name(id, &name))), Ok((id, name)));
        prop_assert_eq!(from_proto::campaign(bytes(&to_proto::campaign(&campaign))), Ok(campaign));
    }

    #[test]
    fn providers(mut dice in dice()) {
        let models = dice.models();
        prop_assert_eq!(from_proto::models(bytes(&to_proto::models(models.clone()))), models);
        let status = dice.provider_status();
        prop_assert_eq!(from_proto::provider_status(bytes(&to_proto::provider_status(status.clone()))), status);
    }

    #[test]
    fn questions_in_sql(mut dice in dice()) {
        let question = dice.question();
        prop_assert_eq!(from_proto::question(bytes(&to_proto::question(&question))), question);
        for answer in [Answer::Columns(vec!["a".to_owned()]), Answer::Rows(dice.sql_rows()), Answer::Cut] {
            prop_assert_eq!(from_proto::sql_answer(bytes(&to_proto::sql_answer(answer.clone()))), answer);
        }
    }

    #[test]
    fn who_comes_in_by_http(mut dice in dice()) {
        let token = dice.http_token();
        prop_assert_eq!(from_proto::http_token(bytes(&to_proto::http_token(token.clone()))), Ok(token.clone()));
        let made = NewToken { token, secret: "secret".to_owned() };
        prop_assert_eq!(from_proto::new_token(bytes(&to_proto::new_token(made.clone()))), Ok(made));
        let way = dice.way_in();
        prop_assert_eq!(from_proto::way_in(bytes(&to_proto::way_in(way.clone()))), Ok(way));
    }

    #[test]
    fn what_is_shared(mut dice in dice()) {
        let share = dice.share();
        prop_assert_eq!(from_proto::share(bytes(&to_proto::share(share.clone()))), Ok(share.clone()));
        let made = ostler_wire::reply::NewShare { share, secret: "secret".to_owned() };
        prop_assert_eq!(from_proto::new_share(bytes(&to_proto::new_share(made.clone()))), Ok(made));
    }

    #[test]
    fn usage(mut dice in dice()) {
        let usage = dice.usage();
        prop_assert_eq!(from_proto::usage(bytes(&to_proto::usage(usage))), usage);
    }

    #[test]
    fn events(mut dice in dice()) {
        let received = dice.received();
        prop_assert_eq!(from_proto::received(bytes(&to_proto::received(&received))), Ok(received.clone()));
        if let Received::Known(recorded) = &received {
            prop_assert_eq!(to_proto::recorded(recorded), to_proto::received(&received));
        }
        let page = EventPage { events: vec![received.clone(), dice.received()], next: Some(dice.number()) };
        prop_assert_eq!(from_proto::event_page(bytes(&to_proto::event_page(&page))), Ok(page));
        let hit = Hit { event: received, snippet: "around it".to_owned() };
        prop_assert_eq!(from_proto::hit(bytes(&to_proto::hit(&hit))), Ok(hit));
        let delta = Delta { session: dice.session_id(), text: "and th".to_owned() };
        prop_assert_eq!(from_proto::delta(bytes(&to_proto::delta(&delta))), Ok(delta));
    }

    #[test]
    fn filters(mut dice in dice()) {
        let filter = dice.session_filter();
        prop_assert_eq!(from_proto::session_filter(bytes(&to_proto::session_filter(&filter))), Ok(filter));
        let filter = dice.event_filter();
        prop_assert_eq!(from_proto::event_filter(bytes(&to_proto::event_filter(&filter))), Ok(filter));
    }

    #[test]
    fn messages_and_approvals(mut dice in dice()) {
        let delivery = dice.delivery();
        prop_assert_eq!(from_proto::delivery(bytes(&to_proto::delivery(&delivery))), Ok(delivery.clone()));
        let sent = Sent { message: delivery.message.id, receipt: Receipt::Accepted, session: dice.view(), woke: true, mode: ostler_domain::Mode::Steer, opened: None, why: delivery.why.clone(), dropped: vec![delivery.message.id], rule: delivery.rule.clone() };
        for taken in [Taken::Sent(Box::new(sent)), Taken::Reset(delivery.conversation)] {
            prop_assert_eq!(from_proto::taken(bytes(&to_proto::taken(&taken))), Ok(taken));
        }
        let approval = dice.approval();
        prop_assert_eq!(from_proto::approval(bytes(&to_proto::approval(&approval))), Ok(approval.clone()));
        let given = AnswerGiven { approval, rules: vec![dice.applied()] };
        prop_assert_eq!(from_proto::answer_given(bytes(&to_proto::answer_given(&given))), Ok(given));
    }

    #[test]
    fn agents_and_conversations(mut dice in dice()) {
        let agent = dice.agent();
        prop_assert_eq!(from_proto::agent(bytes(&to_proto::agent(&agent))), Ok(agent));
        let conversation = dice.conversation();
        prop_assert_eq!(from_proto::conversation(bytes(&to_proto::conversation(&conversation))), Ok(conversation));
    }

    #[test]
    fn missions(mut dice in dice()) {
        let mission = dice.mission();
        prop_assert_eq!(from_proto::mission(bytes(&to_proto::mission(&mission))), Ok(mission));
        let whole = dice.whole_mission();
        prop_assert_eq!(from_proto::whole_mission(bytes(&to_proto::whole_mission(&whole))), Ok(whole));
        let preview = dice.mission_preview();
        prop_assert_eq!(from_proto::mission_preview(bytes(&to_proto::mission_preview(&preview))), Ok(preview));
        let planned = dice.planned_mission();
        prop_assert_eq!(from_proto::planned_mission(bytes(&to_proto::planned_mission(&planned))), Ok(planned));
        let filter = dice.mission_filter();
        let asked = bytes(&to_proto::list_missions(&filter, ostler_domain::query::Page::of(7, Some(3))));
        prop_assert_eq!(from_proto::mission_filter(asked), Ok(filter));
    }

    #[test]
    fn wishes_to_missions(mut dice in dice()) {
        let plan = dice.plan_mission();
        prop_assert_eq!(from_proto::plan_mission(bytes(&to_proto::plan_mission(plan.clone()))), Ok(plan));
        let paused = dice.paused_mission();
        prop_assert_eq!(from_proto::paused_mission(bytes(&to_proto::paused_mission(&paused))), Ok(paused));
        let create = dice.create_mission();
        let asked = bytes(&to_proto::create_mission(create.clone(), request_id()));
        prop_assert_eq!(from_proto::create_mission(asked), Ok(create));
        let resume = dice.resume_mission();
        let asked = bytes(&to_proto::resume_mission(resume.clone(), request_id()));
        prop_assert_eq!(from_proto::resume_mission(asked), Ok(resume.clone()));
        for action in [MissionAction::Start, MissionAction::Resume, MissionAction::Retry] {
            let asked = bytes(&to_proto::preview_mission(action, resume.clone()));
            prop_assert_eq!(from_proto::preview_mission(asked), Ok((action, resume.clone())));
        }
        let retry = dice.retry_mission();
        let asked = bytes(&to_proto::retry_mission(retry.clone(), request_id()));
        prop_assert_eq!(from_proto::retry_mission(asked), Ok(retry));
    }

    #[test]
    fn tickets(mut dice in dice()) {
        let whole = dice.whole_ticket();
        prop_assert_eq!(from_proto::whole_ticket(bytes(&to_proto::whole_ticket(&whole))), Ok(whole));
        let (work, imported) = (dice.work(), dice.imported());
        prop_assert_eq!(from_proto::work(bytes(&to_proto::work(&work))), Ok(work));
        prop_assert_eq!(from_proto::imported(bytes(&to_proto::imported(&imported))), Ok(imported));
        let filter = dice.ticket_filter();
        let asked = bytes(&to_proto::list_tickets(&filter, ostler_domain::query::Page::of(7, Some(3))));
        prop_assert_eq!(from_proto::ticket_filter(asked), Ok(filter));
    }

    #[test]
    fn files(mut dice in dice()) {
        let tree = dice.tree();
        prop_assert_eq!(from_proto::tree(bytes(&to_proto::tree(&tree))), Ok(tree));
        let difference = dice.difference();
        prop_assert_eq!(from_proto::difference(bytes(&to_proto::difference(difference.clone()))), Ok(difference));
        let rewinding = dice.rewinding();
        prop_assert_eq!(from_proto::rewinding(bytes(&to_proto::rewinding(&rewinding))), Ok(rewinding));
        let chain = dice.chain();
        prop_assert_eq!(from_proto::chain(bytes(&to_proto::chain(&chain))), Ok(chain));
        let blamed = dice.blamed();
        prop_assert_eq!(from_proto::blamed(bytes(&to_proto::blamed(&blamed))), Ok(blamed));
        let removed = dice.removed_worktree();
        prop_assert_eq!(from_proto::removed_worktree(bytes(&to_proto::removed_worktree(removed.clone()))), Ok(removed));
    }

    #[test]
    fn the_node(mut dice in dice()) {
        let status = dice.node_status();
        prop_assert_eq!(from_proto::node_status(bytes(&to_proto::node_status(&status))), Ok(status));
        let used = dice.disk_use();
        prop_assert_eq!(from_proto::disk_use(bytes(&to_proto::disk_use(&used))), Ok(used));
        let lost = dice.lost();
        prop_assert_eq!(from_proto::lost_session(bytes(&to_proto::lost_session(&lost))), Ok(lost));
        let halt = dice.halt();
        prop_assert_eq!(from_proto::halt(bytes(&to_proto::halt(&halt))), Ok(halt));
        let stopping = DaemonStopping { pid: 7, sessions_left_running: dice.number() };
        prop_assert_eq!(from_proto::daemon_stopping(bytes(&to_proto::daemon_stopping(stopping))), stopping);
        let today = dice.today();
        prop_assert_eq!(from_proto::today(&bytes(&to_proto::today(&today))), today);
        let sums = UsageSums { total: dice.usage_row(), rows: vec![dice.usage_row()] };
        prop_assert_eq!(from_proto::usage_sums(bytes(&to_proto::usage_sums(&sums))), Ok(sums));
        let audit = dice.audit();
        prop_assert_eq!(from_proto::audit(bytes(&to_proto::audit(&audit))), audit);
        for news in [CheckNews::Progress(dice.progress()), CheckNews::Finding(dice.finding())] {
            prop_assert_eq!(from_proto::check_news(bytes(&to_proto::check_news(&news))), Ok(news));
        }
    }

    #[test]
    fn requests(mut dice in dice()) {
        requests_of(&mut dice);
    }

    #[test]
    fn durations(micros: u32, seconds: u32) {
        let span = Duration::new(u64::from(seconds), (micros % 1_000_000) * 1_000);
        prop_assert_eq!(from_proto::duration(to_proto::duration(span), "span"), Ok(span));
    }

    #[test]
    fn times(micros: i64) {
        let time = Time::from_micros(micros);
        prop_assert_eq!(from_proto::time(to_proto::time(time), "time"), Ok(time));
    }

    /// Bytes of anyone's making are an error or a value, never a panic.
    #[test]
    fn any_bytes(bytes: Vec<u8>) {
        let _ = pb::Session::decode(bytes.as_slice()).map(from_proto::view);
        let _ = pb::CreateSessionRequest::decode(bytes.as_slice()).map(from_proto::create_session);
        let _ = pb::Event::decode(bytes.as_slice()).map(from_proto::received);
        let _ = pb::SessionFilter::decode(bytes.as_slice()).map(from_proto::session_filter);
    }
}

fn requests_of(dice: &mut Dice) {
    macro_rules! same {
        ($($name:ident),*) => {$(
            let request = dice.$name();
            let message = bytes(&to_proto::$name(request.clone(), request_id()));
            assert_eq!(from_proto::request_id(&message.request_id), Ok(Some(request_id())));
            assert_eq!(from_proto::$name(message), Ok(request));
        )*};
    }
    same!(add_campaign, create_session, send_message, resume_session);
    let request = dice.list_events();
    assert_eq!(from_proto::list_events(bytes(&to_proto::list_events(&request))), Ok(request));
    let request = dice.get_usage();
    assert_eq!(from_proto::get_usage(bytes(&to_proto::get_usage(&request))), Ok(request));
}
