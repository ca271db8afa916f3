//! Random inputs: every kind of request and report, sensible or not.

use ostler_domain::{
    ApprovalId, Budget, CampaignId, ConversationId, Message, MessageId, Mode, Now, SessionId, Time, Usage,
    budget::{CampaignBudget, Lent, Used, WhenUsedUp},
    call::{Call, CallFault, Reply, StepMark},
    conversation::QueueDrop,
    denied::{Denied, DeniedKind},
    event::{
        Action, AgentRetrying, AskKind, By, ContextCompacted, ContextMeasured, Leftover, Process, Raw,
        StopReason, Text, ToolCall, ToolResult,
    },
    gateway::{NetDecision, Network},
    handoff::Wish,
    message::Queue,
    price::Dollars,
    session::{
        Approve, Begin, Billing, BudgetUse, CallUsage, Config, Context, Created, ExitFacts, How, Input,
        Intake, Refused, Report, Request, RestartPolicy, Sandbox, Spawn, StopRule, Watchdog, WatchdogLimits,
    },
    time::BootId,
};
use proptest::{collection::vec, option, prelude::*};

pub(crate) fn time(n: i64) -> Time {
    Time::from_micros(1_760_000_000_000_000 + n)
}

pub(crate) fn context(step: u64) -> Context {
    Context {
        now: Now {
            wall: time(i64::try_from(step).unwrap() * 1_000),
            since_boot: std::time::Duration::from_millis(1_000_000 + step),
            boot: BootId("boot".into()),
        },
        entropy: u128::from(step),
        policy: Some(ostler_domain::Policy::default()),
        prices: Default::default(),
        on_reboot: Default::default(),
        is_work_over: false,
    }
}

pub(crate) fn message(n: u8) -> Message {
    let mode = match n {
        0..=200 => Mode::Followup,
        201..=215 => Mode::Steer,
        216..=235 => Mode::Collect,
        236.. => Mode::Interrupt,
    };
    Message { id: MessageId::new(time(0), u128::from(n)), text: format!("message {n}"), mode }
}

pub(crate) fn created(
    restart: RestartPolicy,
    approve: Approve,
    ends_with_turn: bool,
    budget: Option<Budget>,
) -> Created {
    let id = SessionId::new(time(0), 7);
    Created {
        id,
        campaign: CampaignId::new(time(0), 1),
        conversation: ConversationId::new(time(0), 2),
        name: "some-work".parse().unwrap(),
        agent: None,
        config: Config {
            provider: "script".into(),
            model: None,
            working_dir: "/srv/shop".into(),
            branch: None,
            worktree: None,
            budget,
            when_used_up: WhenUsedUp::Hold,
            billing: Billing::Calls,
            timeout_us: Some(60_000_000),
            deadline: None,
            restart,
            approve,
            ends_with_turn,
            environment: Default::default(),
            provider_config: Default::default(),
            system_prompt: None,
            auth_profile: None,
            ticket: None,
            ticket_id: None,
            mission: None,
            watchdogs: WatchdogLimits::default(),
            resumes_after_limit: true,
            approval_us: ostler_domain::session::approval_limit(),
            priority: Default::default(),
            idle_stop_us: Some(1_800_000_000),
            no_tools: false,
            leases: Vec::new(),
        },
        sandbox: Sandbox::Off,
        policy: Default::default(),
        continues: None,
        chain: id,
        spawned_by: None,
        bounded_by: None,
        restart_count: 0,
        short_lives: 0,
        begin: Begin::Fresh,
        imported: None,
    }
}

pub(crate) fn any_created() -> impl Strategy<Value = Created> {
    let restart =
        prop_oneof![Just(RestartPolicy::Never), Just(RestartPolicy::OnFailure), Just(RestartPolicy::Always)];
    let approve =
        prop_oneof![Just(Approve::Ask), Just(Approve::All), Just(Approve::Nobody), Just(Approve::Policy)];
    (restart, approve, any::<bool>(), option::of(any_budget())).prop_map(|(r, a, e, b)| created(r, a, e, b))
}

fn any_budget() -> impl Strategy<Value = Budget> {
    let dollars = option::of((0u64..2_000).prop_map(Dollars));
    (option::of(0u64..2_000), dollars, any::<bool>()).prop_map(|(tokens, dollars, hold)| Budget {
        tokens,
        dollars,
        when_used_up: if hold { WhenUsedUp::Hold } else { WhenUsedUp::Stop },
    })
}

pub(crate) fn any_queue() -> impl Strategy<Value = Queue> {
    let drop = prop_oneof![Just(QueueDrop::Old), Just(QueueDrop::New), Just(QueueDrop::Summarize)];
    (0u64..3, option::of(1u32..4), drop).prop_map(|(debounce_ms, cap, drop)| Queue {
        mode: Mode::Followup,
        debounce_ms,
        cap,
        drop,
    })
}

fn any_request() -> impl Strategy<Value = Request> {
    prop_oneof![
        3 => Just(Request::Start),
        1 => Just(Request::StartAgain),
        4 => any::<u8>().prop_map(|n| Request::prompt(message(n))),
        2 => (any::<u8>(), any_queue(), any::<bool>()).prop_map(|(n, queue, is_dropped)| Request::Prompt {
            said: Box::new(message(n).into()),
            queue,
            dropped: (is_dropped && n % 4 == 0).then(|| "nobody was named".to_owned()),
        }),
        1 => any::<u8>().prop_map(|n| Request::Cancel { id: message(n).id }),
        1 => Just(Request::CancelAll),
        1 => (any::<u8>(), "[ab]{0,3}").prop_map(|(n, text)| Request::Edit { id: message(n).id, text }),
        1 => (any::<u8>(), option::of(any::<u8>())).prop_map(|(n, before)| Request::Reorder {
            id: message(n).id,
            before: before.map(|n| message(n).id),
        }),
        1 => any::<u8>().prop_map(|n| Request::MoveAway {
            id: message(n).id,
            conversation: ConversationId::new(time(0), 3),
            message: MessageId::new(time(1), 1),
        }),
        1 => Just(Request::Interrupt),
        1 => ("[ab]?", any::<bool>()).prop_map(|(model, while_it_lives)| Request::Model { model, while_it_lives }),
        1 => Just(Request::Pause),
        2 => option::of(any_budget()).prop_map(|budget| Request::Resume { budget, tape_bytes: None }),
        1 => prop_oneof![
            Just(StopRule::Stop), Just(StopRule::Kill), Just(StopRule::Timeout), Just(StopRule::Restart)
        ].prop_map(Request::Stop),
        1 => (any::<u8>(), any::<bool>()).prop_map(|(n, allow)| Request::Answer {
            id: ApprovalId::new(time(i64::from(n) * 1_000), u128::from(n)), allow, message: if allow { String::new() } else { "no".to_owned() },
            hears_why: n % 2 == 0 }),
        1 => any::<bool>().prop_map(|freeze| Request::Halt { freeze }),
        1 => Just(Request::ReleaseHalt),
    ]
}

fn any_raw() -> impl Strategy<Value = Raw> {
    any::<(String, u64, u64)>().prop_map(|(text, bytes, at)| Raw { text, bytes, at })
}

fn any_report() -> impl Strategy<Value = Report> {
    let usage = (0u64..900, any::<u64>(), 0u64..900).prop_map(|(input, cache_read, output)| Usage {
        input,
        cache_read,
        output,
        ..Usage::default()
    });
    prop_oneof![
        4 => Just(Report::Ready { provider_id: None, model: None }),
        4 => vec(any::<u8>(), 0..2).prop_map(|ns| Report::TurnStarted { messages: ns.into_iter().map(|n| message(n).id).collect() }),
        4 => prop_oneof![Just(StopReason::Completed), Just(StopReason::Interrupted), Just(StopReason::Error)]
            .prop_map(|stop_reason| Report::TurnEnded { stop_reason }),
        1 => any::<u8>().prop_map(|n| Report::Unread { messages: vec![message(n).id] }),
        1 => any::<u8>().prop_map(|n| Report::Unclear { messages: vec![message(n).id] }),
        1 => any::<String>().prop_map(|text| Report::Thinking(text.into())),
        1 => any::<(String, Option<String>)>().prop_map(|(text, subagent)| Report::Completion(Text { text, subagent })),
        1 => "[ab]".prop_map(|provider_id| Report::Bound { provider_id, model: None }),
        2 => vec(any::<String>(), 0..2).prop_map(|tasks| Report::Background { tasks }),
        1 => (any::<String>(), option::of(any::<i64>())).prop_map(|(what, until)| Report::RateLimited { what, until: until.map(Time::from_micros) }),
        1 => any::<(String, u32, u32, Option<u64>)>().prop_map(|(why, attempt, most, after_ms)| Report::Retrying(AgentRetrying { why, attempt, most, after_ms })),
        1 => any::<String>().prop_map(Report::AuthFailed),
        1 => any::<String>().prop_map(Report::CannotStart),
        1 => any::<(bool, Option<u64>, Option<u64>)>().prop_map(|(automatic, before, after)| Report::Compacted(ContextCompacted { automatic, before, after })),
        1 => any::<(u64, Option<u64>)>().prop_map(|(used, window)| Report::Context(ContextMeasured { used, window })),
        1 => any::<String>().prop_map(|why| Report::ContextReset { why }),
        1 => any::<(String, String, String)>().prop_map(|(tool, tool_id, summary)| Report::ToolCall(ToolCall { tool, tool_id, summary, input: String::new(), subagent: None })),
        1 => any::<(String, bool)>().prop_map(|(tool_id, success)| Report::ToolResult(ToolResult { tool_id, success, exit: None, output: String::new(), subagent: None })),
        1 => any_raw().prop_map(Report::Opaque),
        1 => any_raw().prop_map(Report::Stderr),
        2 => (usage, option::of("[ab]")).prop_map(|(usage, call)| Report::Usage(CallUsage { usage, model: None, call })),
        2 => any::<(u8, bool)>().prop_map(|(n, is_question)| Report::ApprovalAsked {
            ask: n.to_string(),
            tool: "run".into(),
            input: "x".into(),
            kind: if is_question { AskKind::Question } else { AskKind::Leave },
            action: if n % 2 == 0 { Action::Run { command: "git status".into() } } else { Action::Other },
            subagent: None,
        }),
        1 => any::<u8>().prop_map(|n| Report::ApprovalWithdrawn { ask: n.to_string() }),
        1 => Just(Report::Alive),
    ]
}

fn any_exit() -> impl Strategy<Value = ExitFacts> {
    let how = prop_oneof![
        any::<i32>().prop_map(|code| How::Exited { code }),
        Just(How::Exited { code: 0 }),
        (1i32..64).prop_map(|signal| How::Signaled { signal }),
        Just(How::NeverStarted { stage: "exec".into(), message: "gone".into(), cures: vec![] }),
        Just(How::Lost { reason: "power".into() }),
    ];
    (how, any::<bool>(), any::<bool>()).prop_map(|(how, oom, left)| ExitFacts {
        how,
        oom,
        memory: None,
        leftovers: if left { vec![Leftover { pid: 1, name: "sleep".into() }] } else { vec![] },
        asked: None,
        shut_down: false,
        wish: None,
        rung: None,
        cures: Vec::new(),
    })
}

fn any_call() -> impl Strategy<Value = Result<Call, CallFault>> {
    let mark = prop_oneof![Just(StepMark::Start), Just(StepMark::End), Just(StepMark::Fail)];
    prop_oneof![
        3 => ("[ab]", mark).prop_map(|(name, mark)| Ok(Call::Step { name, mark, note: String::new() })),
        1 => any::<String>().prop_map(|text| Ok(Call::Note { text })),
        1 => any::<String>().prop_map(|note| Ok(Call::Done { note })),
        1 => any::<String>().prop_map(|note| Ok(Call::Handoff(Box::new(Wish { note, ..Wish::default() })))),
        1 => any::<String>().prop_map(|text| Ok(Call::Send { to: "api".to_owned(), text })),
        1 => any::<String>().prop_map(|text| Ok(Call::Search { text })),
        1 => option::of(any::<String>()).prop_map(|who| Ok(Call::Show { who })),
        1 => any::<String>().prop_map(|name| Err(CallFault::Unknown(name))),
        1 => any::<String>().prop_map(|why| Err(CallFault::Malformed(why))),
    ]
}

pub(crate) fn any_input() -> impl Strategy<Value = Input> {
    prop_oneof![
        8 => any_request().prop_map(|request| Input::Request(request, By("ann".into()))),
        12 => any_report().prop_map(Input::Report),
        1 => (0..20_000_i64).prop_map(|n| Input::Lent { until: time(n) }),
        1 => any::<bool>().prop_map(|holds_calls| Input::Spawned(Spawn { agent: Process { pid: 9, start_time: 9 }, holds_calls })),
        3 => any::<u8>().prop_map(|n| Input::InputTaped { tag: format!("prompt:{}", message(n).id) }),
        1 => any::<String>().prop_map(|tag| Input::InputTaped { tag }),
        1 => prop_oneof![Just(Intake::Open), Just(Intake::Throttled), Just(Intake::DiskFull), Just(Intake::TapeLimit)].prop_map(Input::Intake),
        1 => any::<(u64, u64)>().prop_map(|(from, to)| Input::TapeDamaged { from, to }),
        1 => Just(Input::Tampered { names: vec![".git/config".to_owned()] }),
        1 => any::<(u16, u64, u64)>().prop_map(|(port, bytes_in, bytes_out)| Input::Network(Network {
            host: "a.example".to_owned(),
            port,
            decision: NetDecision::Allowed,
            rule: "net=open".to_owned(),
            grant: None,
            bytes_in,
            bytes_out,
            failure: String::new(),
        })),
        1 => (any::<u32>(), option::of("[ab]")).prop_map(|(n, call)| Input::Wire(CallUsage {
            usage: Usage { input: n.into(), ..Usage::default() },
            model: None,
            call,
        })),
        1 => option::of("[ab]").prop_map(|call| Input::CutShort { model: None, call }),
        1 => (0..8_u64).prop_map(|at| Input::Served { at, reply: Reply::Ok {} }),
        3 => (prop_oneof![0..8_u64, any::<u64>()], any_call()).prop_map(|(at, call)| Input::Call { at, call }),
        1 => any::<String>().prop_map(|target| Input::Denied(Denied {
            kind: DeniedKind::Policy,
            target,
            rule: "policy".to_owned(),
            grant: None,
        })),
        1 => any_exit().prop_map(Input::Exited),
        2 => prop_oneof![Just(Watchdog::Start), Just(Watchdog::FirstOutput), Just(Watchdog::Silent), Just(Watchdog::Tool), Just(Watchdog::Retries), Just(Watchdog::Budget), Just(Watchdog::BudgetTool)].prop_map(Input::Watchdog),
        1 => Just(Input::TimedOut),
        1 => Just(Input::IdledOut),
        1 => Just(Input::GiveWay),
        1 => Just(Input::LimitEnded),
        2 => Just(Input::Quiet),
        2 => (prop_oneof![Just(0_u16), Just(400), Just(401), Just(429), Just(500)], option::of(0_u64..9_000)).prop_map(
            |(status, retry_after_ms)| Input::Refused(Refused { status, retry_after_ms, failure: String::new() })
        ),
        1 => Just(Input::ApprovalsDue),
        2 => (0u64..2_000, 0u64..2_000, any::<bool>()).prop_map(|(tokens, micros, is_known)| {
            let unpriced = (!is_known).then(|| "new".to_owned());
            let used = BudgetUse {
                name: "shop".to_owned(),
                agent: None,
                budget: CampaignBudget::parse(if micros % 3 == 0 { "1000" } else { "0.001usd/day" }),
                used: Used { tokens, dollars: Dollars(micros), unpriced },
            };
            if micros % 2 == 0 { Input::Campaign(used) } else { Input::Agent(used) }
        }),
        2 => (0u64..700, 0u64..700, 0u64..700).prop_map(|(tokens, held_tokens, micros)| {
            let (dollars, held_dollars) = (Dollars(micros), Dollars(micros / 2));
            Input::Helpers(Lent { tokens, dollars, held_tokens, held_dollars, unpriced: None })
        }),
    ]
}
