//! Which agent programs can work.

use std::collections::BTreeMap;

use ostler_domain::{
    config::check_provider,
    provider::{Account, SCRIPT, Status},
};

use super::{
    Finding, Verdict,
    asked::{self, Answer},
};
use crate::words;

/// The scripted agent is always there. In which sandbox it was tried, if it was.
pub(super) fn script(answer: Option<&Answer>) -> Finding {
    let text = "built in, needs no key";
    match answer {
        Some(Answer::Within(took)) => {
            Finding::new(Verdict::Ok, SCRIPT, format!("{text}, {}", asked::within(*took)))
        }
        Some(Answer::None(why)) => Finding::new(Verdict::Fail, SCRIPT, format!("{text}, but {why}"))
            .fix(format!("ostler provider test {SCRIPT} --ask")),
        None => Finding::new(Verdict::Ok, SCRIPT, text),
    }
}

/// Which agent programs can work. The one that sessions get where nobody names another has to.
pub(super) fn providers(
    all: &[Status],
    usual: Option<&str>,
    users: &BTreeMap<String, u64>,
    answers: &BTreeMap<String, Answer>,
) -> Vec<Finding> {
    let agents = || all.iter().filter(|status| status.name != SCRIPT);
    let mut findings = vec![script(answers.get(SCRIPT))];
    findings.extend(agents().map(|status| {
        let users = users.get(&status.name).copied().unwrap_or(0);
        provider(status, usual, users, answers.get(&status.name))
    }));
    findings.extend(agents().flat_map(|status| {
        let of = |account: &Account| {
            let text = format!("its profile {} lacks a login that has not ended", account.name);
            let finding = Finding::new(Verdict::Warn, status.name.clone(), text);
            account.cure(&status.name).map(|cure| finding.fix(cure))
        };
        status.profiles.iter().filter_map(of)
    }));
    if agents().all(|status| status.lacks.is_some()) {
        let text = "none can work yet: only the scripted one, which asks no model";
        let cure = "ostler provider ls says what each lacks; then ostler init";
        findings.push(Finding::new(Verdict::Warn, "agents", text).fix(cure));
    }
    findings
}

pub(super) fn provider(status: &Status, usual: Option<&str>, users: u64, answer: Option<&Answer>) -> Finding {
    let is_usual = usual == Some(status.name.as_str());
    let is_needed = is_usual || users > 0;
    let unsaid = if status.program.is_some() { "version unknown" } else { "built in" };
    let version = status.version.as_deref().unwrap_or(unsaid);
    if let (Some(problem), Err(_)) = (&status.problem, check_provider(&status.name)) {
        let verdict = if is_needed { Verdict::Fail } else { Verdict::Warn };
        let finding = Finding::new(verdict, status.name.clone(), problem.clone());
        return finding.fix(status.cure.clone().unwrap_or_default());
    }
    let needs = match (is_usual, users) {
        (true, _) => "; sessions get it unless another is named".to_owned(),
        (false, 0) => String::new(),
        (false, 1) => "; 1 agent uses it".to_owned(),
        (false, n) => format!("; {} agents use it", words::number(n)),
    };
    let (verdict, text) = match (&status.problem, &status.lacks, answer) {
        (Some(problem), ..) if is_needed => (Verdict::Fail, format!("{problem}{needs}")),
        (Some(problem), ..) if status.program.is_some() => (Verdict::Warn, problem.clone()),
        (Some(_), ..) => {
            return Finding::new(Verdict::Absent, status.name.clone(), "not installed (optional)");
        }
        (None, Some(lacks), _) if is_needed => (Verdict::Fail, format!("{version}, lacks {lacks}{needs}")),
        (None, Some(lacks), _) if status.program.is_none() => {
            (Verdict::Absent, format!("{version}, lacks {lacks} (optional)"))
        }
        (None, Some(lacks), _) => (Verdict::Warn, format!("{version}, lacks {lacks}")),
        (None, None, None) => (Verdict::Ok, format!("{version}, key: {}{needs}", status.key)),
        (None, None, Some(Answer::Within(took))) => {
            (Verdict::Ok, format!("{version}, key: {}, {}{needs}", status.key, asked::within(*took)))
        }
        (None, None, Some(Answer::None(why))) => {
            let verdict = if is_needed { Verdict::Fail } else { Verdict::Warn };
            return Finding::new(verdict, status.name.clone(), format!("{version}, but {why}{needs}"))
                .fix(format!("ostler provider test {} --ask", status.name));
        }
    };
    let finding = Finding::new(verdict, status.name.clone(), text);
    match &status.cure {
        Some(cure) if finding.is_wrong() => finding.fix(cure),
        _ => finding,
    }
}
