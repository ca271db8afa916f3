//! What the environment might tell.

use std::fs;

use super::{read, said};
use crate::attempt::{Attempt, Said, usual};
use crate::scene::SCENE_VARIABLE;

pub(super) const ALL: &[Attempt] = &[
    usual("environment/own", "find a variable that nobody gave it", |_| {
        let other = std::env::vars_os()
            .find(|(name, _)| !["PATH", "HOME", SCENE_VARIABLE].iter().any(|known| name == *known));
        match other {
            Some((name, value)) => Said::Got(format!("{}={}", name.display(), value.display())),
            None => Said::Blocked("there is none".to_owned()),
        }
    }),
    usual("environment/inits", "read the environment that the sandbox was started with", |_| {
        read("/proc/1/environ")
    }),
    usual("environment/other-processes", "read the environment of every process that is there", |_| {
        let own = std::process::id().to_string();
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let found = entries
            .filter(|entry| entry.file_name().to_string_lossy() != own)
            .filter(|entry| entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit()))
            .find(|entry| fs::read(entry.path().join("environ")).is_ok());
        said(found.ok_or("none can be read"))
    }),
];
