//! A program runs, is where it should be, and its end is told.

use std::os::unix::process::ExitStatusExt;

use crate::support::{Campaign, each_way};

#[test]
fn a_program_runs_and_its_end_is_told() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        let ended = campaign.start("echo hello; echo there >&2").end();
        assert!(ended.status.success(), "{ended:?}");
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("hello\n", "there\n"));
        assert!(ended.warden.success());
        assert_eq!(campaign.start("exit 42").end().status.code(), Some(42));
        assert_eq!(campaign.start("kill -TERM $$").end().status.signal(), Some(15));
    });
}
