//! What agents do in their turns: they think, use tools, ask for leave, reach for the network, and pay for all of it.

use std::time::Duration;

use ostler_domain::{
    Usage,
    denied::{Denied, DeniedKind},
    event::{Action, AskKind, By, Raw, ToolCall, ToolResult},
    gateway::{NetDecision, Network},
    session::{CallUsage, Input, Report, Request},
};

use super::{
    history::{History, PEOPLE},
    life::Life,
    words::{rank, text, word},
};

const TOOLS: &[&str] = &["Bash", "Read", "Edit", "Grep", "Write", "Glob", "WebFetch"];

impl History {
    /// One thing that the agent does; says how many events it was.
    pub(super) fn activity(&mut self, life: &mut Life) -> u64 {
        let before = life.events.len();
        life.pass(Duration::from_millis(200 + self.seed.below(4_000)));
        match self.seed.below(100) {
            0..15 => {
                let bytes = self.length(80, 900);
                life.report(Report::Thinking(text(&mut self.seed, bytes).into()));
            }
            15..57 => {
                let bytes = self.length(20, 6_000);
                self.tool(life, bytes);
            }
            57..80 => {
                let bytes = self.length(60, 1_500);
                life.report(Report::Completion(text(&mut self.seed, bytes).into()));
            }
            80..92 => self.call(life, 0),
            92..96 => self.approval(life),
            96..98 => self.network(life),
            98 => self.denied(life),
            _ => {
                let text = text(&mut self.seed, 60);
                let bytes = text.len() as u64;
                life.report(Report::Stderr(Raw { text, bytes, at: 0 }));
            }
        }
        (life.events.len() - before) as u64
    }

    pub(super) fn tool(&mut self, life: &mut Life, output_bytes: usize) {
        let seed = &mut self.seed;
        let tool = TOOLS[rank(seed, TOOLS.len() as f64)].to_owned();
        let tool_id = format!("tool-{:08x}", seed.below(u64::from(u32::MAX)));
        let summary = format!("{} {}", word(seed), word(seed));
        let input = format!("{{\"command\":\"{summary}\",\"path\":\"src/{}.rs\"}}", word(seed));
        life.report(Report::ToolCall(ToolCall {
            tool,
            tool_id: tool_id.clone(),
            summary,
            input,
            subagent: None,
        }));
        life.pass(Duration::from_millis(30 + seed.below(3_000)));
        let success = seed.chance(88);
        let output = text(seed, output_bytes);
        life.report(Report::ToolResult(ToolResult {
            tool_id,
            success,
            exit: Some(i32::from(!success)),
            output,
            subagent: None,
        }));
    }

    /// A request for leave or a question. Rules answer some, people most, and some nobody before the turn ends.
    fn approval(&mut self, life: &mut Life) {
        let seed = &mut self.seed;
        let ask = format!("ask-{:06x}", seed.below(1 << 24));
        let input = text(seed, 40);
        let kind = if seed.chance(10) { AskKind::Question } else { AskKind::Leave };
        let action = match (kind, seed.below(4)) {
            (AskKind::Question, _) | (_, 0) => Action::Other,
            (_, 1) => Action::Run { command: format!("cargo test -p {}", word(seed)) },
            (_, 2) => Action::Fetch { url: format!("https://{}.example/", word(seed)) },
            _ => Action::Write { paths: vec![format!("src/{}.rs", word(seed))] },
        };
        life.report(Report::ApprovalAsked {
            ask,
            tool: "Bash".to_owned(),
            input,
            kind,
            action,
            subagent: None,
        });
        let Some(id) = life.state.approvals().first().map(|open| open.id) else { return };
        if self.seed.chance(8) {
            return;
        }
        life.pass(Duration::from_secs(5 + self.seed.below(90)));
        let by = self.somebody();
        life.ask(
            Request::Answer { id, allow: self.seed.chance(80), message: String::new(), hears_why: true },
            &by,
        );
    }

    fn network(&mut self, life: &mut Life) {
        let seed = &mut self.seed;
        let host = format!("{}.example", word(seed));
        let is_allowed = seed.chance(70);
        life.hear(Input::Network(Network {
            grant: (!is_allowed).then(|| format!("ostler campaign set - net.allow+={host}")),
            host,
            port: 443,
            decision: if is_allowed { NetDecision::Allowed } else { NetDecision::Denied },
            rule: "net.mode=provider".to_owned(),
            bytes_in: seed.below(1 << 20),
            bytes_out: seed.below(1 << 14),
            failure: String::new(),
        }));
    }

    fn denied(&mut self, life: &mut Life) {
        life.hear(Input::Denied(Denied {
            kind: DeniedKind::Command,
            target: format!("{} {}", word(&mut self.seed), word(&mut self.seed)),
            rule: "not among the campaign's commands".to_owned(),
            grant: None,
        }));
    }

    /// One model call: the wire tells of half of them too.
    pub(super) fn call(&mut self, life: &mut Life, more: u64) {
        let usage = self.usage(more);
        let model = life.state.created().config.model.clone();
        let call = Some(format!("call-{:012x}", self.seed.below(1 << 48)));
        let call = CallUsage { usage, model, call };
        if self.seed.chance(50) {
            life.hear(Input::Wire(call.clone()));
        }
        life.report(Report::Usage(call));
    }

    fn usage(&mut self, more: u64) -> Usage {
        let seed = &mut self.seed;
        let output = 50 + seed.below(1_500);
        Usage {
            input: 200 + seed.below(3_000) + more,
            cache_read: seed.below(80_000),
            cache_write: seed.below(4_000),
            output,
            reasoning: seed.below(output),
        }
    }

    pub(super) fn somebody(&mut self) -> By {
        By(PEOPLE[rank(&mut self.seed, PEOPLE.len() as f64)].to_owned())
    }
}
