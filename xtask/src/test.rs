//! `cargo xtask test`: the steps one after the other, each shown whole, and a table at the end. A step that fails
//! does not keep the others from running.

pub(crate) mod examples;
mod package;
mod programs;
mod steps;

use std::time::{Duration, Instant};

use crate::Failure;
use steps::{STEPS, Step, Verdict};

pub(crate) fn run(options: &[String]) -> Result<(), Failure> {
    let mut chosen: Vec<&Step> = Vec::new();
    let mut options = options.iter();
    while let Some(option) = options.next() {
        match option.as_str() {
            "--list" => {
                STEPS.iter().for_each(|step| println!("{:10} {}", step.name, step.about));
                return Ok(());
            }
            "--only" => chosen.push(find(options.next())?),
            other => return Err(Failure::Usage(format!("test has no option \"{other}\""))),
        }
    }
    if chosen.is_empty() {
        chosen = STEPS.iter().collect();
    }
    let done: Vec<Done> = chosen.into_iter().map(play).collect();
    report(&done)
}

fn find(name: Option<&String>) -> Result<&'static Step, Failure> {
    let known = || STEPS.iter().map(|step| step.name).collect::<Vec<_>>().join(", ");
    let name = name.ok_or_else(|| Failure::Usage(format!("--only takes a step: {}", known())))?;
    let found = STEPS.iter().find(|step| step.name == name);
    found.ok_or_else(|| Failure::Usage(format!("there is no step \"{name}\"; there are: {}", known())))
}

/// A step that was taken.
struct Done {
    name: &'static str,
    verdict: Verdict,
    took: Duration,
}

fn play(step: &Step) -> Done {
    println!("\n=== {}: {}", step.name, step.about);
    let began = Instant::now();
    let verdict = (step.run)();
    let took = began.elapsed();
    println!("=== {} ({}): {}", step.name, seconds(took), verdict.said());
    Done { name: step.name, verdict, took }
}

fn report(done: &[Done]) -> Result<(), Failure> {
    println!();
    for Done { name, verdict, took } in done {
        println!("{name:10} {:>9}  {}", seconds(*took), verdict.said());
    }
    let failed: Vec<&str> =
        done.iter().filter(|done| matches!(done.verdict, Verdict::Failed(_))).map(|done| done.name).collect();
    let skipped = done.iter().filter(|done| matches!(done.verdict, Verdict::Skipped(_))).count();
    let total = seconds(done.iter().map(|done| done.took).sum());
    let ok = done.len() - failed.len() - skipped;
    println!("steps: {ok} ok, {} failed, {skipped} skipped in {total}", failed.len());
    match failed.as_slice() {
        [] => Ok(()),
        failed => Err(Failure::Failed(format!("failed: {}", failed.join(", ")))),
    }
}

fn seconds(span: Duration) -> String {
    format!("{:.1} s", span.as_secs_f64())
}
