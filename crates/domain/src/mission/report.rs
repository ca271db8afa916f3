//! The closing report: what was asked for, what came of it, what it cost, in markdown.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use super::{AssignmentStatus, Merging, Slot, Spent, State, words::short_span};
use crate::{
    AssignmentId, Time,
    text::{one_line, visible},
};

/// How much of a result the report has.
const RESULT_CHARS: usize = 2_000;

/// How an assignment stands, and what it has used by now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    pub status: AssignmentStatus,
    pub spent: Spent,
}

impl State {
    /// The report as it is at this moment. The mission need not be over: `known` is how its assignments stand by now and what
    /// they have used, of which a mission's events have only what ended.
    pub fn report(&self, now: Time, known: &BTreeMap<AssignmentId, Standing>) -> String {
        let of = |(place, slot): (usize, &Slot)| {
            let known = known.get(&slot.assignment.id).copied();
            known.unwrap_or(Standing { status: self.status_of(place), spent: slot.spent })
        };
        let each: Vec<Standing> = self.slots.iter().enumerate().map(of).collect();
        let mut text = String::new();
        self.report_head(&mut text, now, &each);
        self.report_table(&mut text, now, &each);
        self.report_results(&mut text);
        self.report_rest(&mut text);
        text
    }

    fn report_head(&self, text: &mut String, now: Time, each: &[Standing]) {
        let (progress, mut spent) = (self.progress(), Spent::default());
        each.iter().for_each(|one| spent += one.spent);
        let why = self.over.as_ref().map(|over| over.why.as_str()).filter(|why| !why.is_empty());
        let why = why.map_or(String::new(), |why| format!(": {}", line(why)));
        let _ = writeln!(text, "# Mission {}: {}{why}\n", self.name, self.status().as_str());
        for words in visible(&self.plan.objective).lines() {
            let _ = writeln!(text, "> {words}");
        }
        let _ = writeln!(text, "\n- id: {}\n- strategy: {}", self.id, self.plan.strategy.as_str());
        let _ = writeln!(text, "- created: {} by {}", self.created_at.rfc3339(), line(&self.by.0));
        if let Some(started) = self.started_at {
            let _ = writeln!(text, "- started: {}", started.rfc3339());
        }
        if let Some(over) = &self.over {
            let _ = writeln!(text, "- ended: {}", over.at.rfc3339());
        }
        let _ = writeln!(text, "- ran: {}", short_span(self.ran(now)));
        if let Some(forecast) = self.forecast {
            let [low, high] = [forecast.low(), forecast.high()].map(short_span);
            let held = match self.is_over() {
                true if forecast.held(self.ran(now)) => ", which held",
                true => ", which did not hold",
                false => "",
            };
            let _ = writeln!(text, "- forecast: {low} to {high}{held}");
        }
        let all = progress.all;
        let removed = match self.slots.iter().filter(|slot| slot.removed).count() {
            0 => String::new(),
            removed => format!("; {removed} removed"),
        };
        let _ = writeln!(
            text,
            "- assignments: {} of {} completed, {} failed, {} skipped or cancelled{removed}",
            all.completed, all.total, all.failed, all.left_out
        );
        let usage = spent.usage;
        let _ = writeln!(
            text,
            "- used: {} input, {} cache read, {} cache write, {} output tokens",
            usage.input, usage.cache_read, usage.cache_write, usage.output
        );
        let _ = writeln!(text, "- cost: {}", spent.cost_words(&self.unpriced_models(each)));
        if let Some(budget) = self.budget {
            let _ = writeln!(text, "- budget: {budget}");
        }
    }

    /// The models of what has no price.
    fn unpriced_models(&self, each: &[Standing]) -> String {
        let unpriced = each.iter().enumerate().filter(|(_, one)| one.spent.unpriced);
        let models: BTreeSet<String> = unpriced.map(|(place, _)| self.model_words(place)).collect();
        models.into_iter().collect::<Vec<_>>().join(", ")
    }

    /// `opus`, `the usual model of codex`.
    fn model_words(&self, place: usize) -> String {
        let work = self.work(place);
        match (&work.model, &work.provider) {
            (Some(model), _) => line(model),
            (None, Some(provider)) => format!("the usual model of {}", line(provider)),
            (None, None) => "its model".to_owned(),
        }
    }

    fn report_table(&self, text: &mut String, now: Time, each: &[Standing]) {
        text.push_str(
            "\n## Assignments\n\n| name | role | state | tries | time | tokens | cost | session |\n",
        );
        text.push_str("|---|---|---|---|---|---|---|---|\n");
        for (place, (slot, one)) in self.slots.iter().zip(each).enumerate() {
            let Standing { status, spent } = *one;
            let took =
                slot.took(now).filter(|_| slot.has_begun(status)).map_or_else(|| "–".to_owned(), short_span);
            let session = slot.sessions.last().map_or_else(|| "–".to_owned(), ToString::to_string);
            let word = if slot.removed { "removed" } else { status.as_str() };
            let _ = writeln!(
                text,
                "| {} | {} | {} {} | {} | {took} | {} | {} | {session} |",
                slot.assignment.name,
                slot.assignment.role,
                status.sign(),
                word,
                slot.attempt,
                spent.usage.total(),
                spent.cost_words(&self.model_words(place))
            );
        }
    }

    fn report_results(&self, text: &mut String) {
        let ended =
            self.slots.iter().filter(|slot| !slot.removed).filter_map(|slot| Some((slot, slot.end()?)));
        let mut has_head = false;
        for (slot, end) in ended.filter(|(_, end)| !end.why.is_empty() || !end.product.is_empty()) {
            if !std::mem::replace(&mut has_head, true) {
                text.push_str("\n## What came of them\n");
            }
            let _ = writeln!(text, "\n### {}\n", slot.assignment.name);
            if end.status != AssignmentStatus::Completed {
                let _ = writeln!(text, "{}: {}\n", end.status.as_str(), line(&end.why));
            }
            if !end.product.text.is_empty() {
                let said: String = visible(&end.product.text).chars().take(RESULT_CHARS).collect();
                // Whatever an agent says stays within its quotation.
                said.lines().for_each(|words| text.push_str(&format!("> {words}\n")));
            }
            for output in &end.product.outputs {
                let _ = writeln!(
                    text,
                    "- {} ({}): {}",
                    line(&output.name),
                    output.kind.as_str(),
                    line(&output.value)
                );
            }
        }
    }

    fn report_rest(&self, text: &mut String) {
        match &self.merge {
            Merging::NotBegun => {}
            Merging::Running { .. } | Merging::Checked { .. } | Merging::Moving { .. } => {
                text.push_str("\n## Merge\n\nunder way\n");
            }
            Merging::Merged { commit, .. } => {
                let commit = commit.as_deref().unwrap_or("done");
                let _ = writeln!(text, "\n## Merge\n\nmerged: {}", line(commit));
            }
            Merging::Failed { output, .. } => {
                let _ = writeln!(text, "\n## Merge\n\nfailed; the branch is as it was:\n");
                visible(output).lines().for_each(|words| text.push_str(&format!("    {words}\n")));
            }
        }
        if !self.collisions.is_empty() {
            text.push_str("\n## Collisions that were foreseen\n\n");
            for seen in &self.collisions {
                let name = |place: usize| &self.slots[place].assignment.name;
                let paths = line(&seen.paths.join(", "));
                let _ = writeln!(text, "- {} × {}: {paths}", name(seen.one), name(seen.other));
            }
        }
    }
}

fn line(text: &str) -> String {
    one_line(text, 400).replace('|', "\\|")
}
