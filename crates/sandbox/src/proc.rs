//! `/proc` of the new pid namespace, without what concerns the whole machine. Made by init: a process outside of the
//! namespace cannot.

use std::fs;
use std::io;
use std::path::Path;

use crate::mounts::{self, NO_PROGRAMS, NOTHING};
use crate::refusal::{OrRefuse, Refusal, Stage};
use crate::root::{MASK_DIR, MASK_FILE};

/// Switches of the kernel.
const READ_ONLY: [&str; 5] = ["sys", "irq", "bus", "fs", "sysrq-trigger"];
/// Memory, keys and addresses of the kernel, and other people's processes by their side effects.
const COVERED: [&str; 9] =
    ["kcore", "keys", "key-users", "kallsyms", "kmsg", "timer_list", "sched_debug", "acpi", "scsi"];

pub(crate) fn mount() -> Result<(), Refusal> {
    let proc = Path::new("/proc");
    let make = || mounts::attach(mounts::make("proc", &[], NO_PROGRAMS)?, mounts::handle(proc)?);
    make().or_refuse(Stage::Proc, "mounting /proc")?;
    for name in READ_ONLY {
        let path = proc.join(name);
        over(&path, &path).or_refuse(Stage::Proc, format_args!("protecting {}", path.display()))?;
    }
    for name in COVERED {
        let path = proc.join(name);
        let mask = if fs::metadata(&path).is_ok_and(|found| found.is_dir()) { MASK_DIR } else { MASK_FILE };
        over(Path::new(mask), &path).or_refuse(Stage::Proc, format_args!("covering {}", path.display()))?;
    }
    Ok(())
}

fn over(source: &Path, target: &Path) -> io::Result<()> {
    match mounts::handle(target) {
        Ok(target) => mounts::bind(mounts::handle(source)?, target, NOTHING),
        // Not every kernel has all of them.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
