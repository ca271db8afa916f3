//! A sandbox that cannot be had whole is not had at all, and it is said why.

use std::fs;
use std::os::unix::fs::symlink;

use ostler_sandbox::channel::ExecReport;

use ostler_domain::confinement::Protect;

use crate::support::{Campaign, each_way};

/// Starts what must be refused, and returns stage, message and hint.
fn refusal(campaign: &Campaign) -> (String, String, String) {
    let ended = campaign.start("echo ran").end();
    assert_eq!(ended.stdout, "");
    assert_eq!(ended.status.code(), Some(126), "{ended:?}");
    match ended.refusals.into_iter().next() {
        Some(ExecReport::Failed { stage, message, hint, .. }) => (stage, message, hint),
        other => panic!("{other:?}"),
    }
}

#[test]
fn another_directory_in_the_roots_place_is_refused() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        fs::rename(campaign.root(), campaign.outside().join("moved")).unwrap();
        fs::create_dir(campaign.root()).unwrap();
        campaign.give(campaign.root());
        let (stage, message, hint) = refusal(&campaign);
        assert_eq!(stage, "root");
        assert!(message.contains("not the directory that was registered"), "{message}");
        assert!(hint.contains("register"), "{hint}");

        fs::remove_dir(campaign.root()).unwrap();
        symlink(campaign.outside().join("moved"), campaign.root()).unwrap();
        assert_eq!(refusal(&campaign).0, "root", "nor a link to it");
        fs::remove_file(campaign.root()).unwrap();
        assert_eq!(refusal(&campaign).0, "root", "nor nothing");
    });
}

#[test]
fn a_document_that_gives_the_system_away_is_refused() {
    each_way(|way| {
        let campaign = Campaign::new(way).with(|confinement| confinement.writable = vec!["/etc".into()]);
        let (stage, message, _) = refusal(&campaign);
        assert_eq!(stage, "document");
        assert!(message.contains("/etc is a directory of the system"), "{message}");
        let campaign = Campaign::new(way).with(|confinement| confinement.version = 99);
        assert_eq!(refusal(&campaign).0, "document");
    });
}

#[test]
fn a_protected_name_that_is_a_link_is_refused_with_the_way_out() {
    each_way(|way| {
        let mut campaign = Campaign::new(way);
        campaign.write("settings/x", "");
        symlink("settings", campaign.path(".vscode")).unwrap();
        let (stage, message, hint) = refusal(&campaign);
        assert_eq!(stage, "tooling");
        assert!(message.contains(".vscode is a link"), "{message}");
        assert!(hint.contains("protect_tooling=off"), "{hint}");
        campaign.confinement.tooling.protect = Protect::Off;
        campaign.run("true");
    });
}

#[test]
fn what_is_kept_leads_nowhere_else() {
    each_way(|way| {
        let mut campaign = Campaign::new(way);
        let shared = campaign.outside().canonicalize().unwrap().join("shared");
        fs::create_dir(&shared).unwrap();
        campaign.give(&shared);
        symlink("/etc", shared.join("context")).unwrap();
        campaign.confinement.kept = vec![shared.join("context")];
        campaign.confinement.writable = vec![shared];
        let (stage, message, _) = refusal(&campaign);
        assert_eq!(stage, "root");
        assert!(message.contains("context"), "{message}");
    });
}

#[test]
fn a_lease_leads_nowhere_else() {
    each_way(|way| {
        let campaign = Campaign::new(way).with(|confinement| {
            confinement.root.read_only = true;
            confinement.root.leased = vec!["out".into()];
        });
        symlink(campaign.outside(), campaign.path("out")).unwrap();
        let (_, message, _) = refusal(&campaign);
        assert!(message.contains("out"), "{message}");
    });
}

#[test]
fn what_is_missing_is_named() {
    each_way(|way| {
        let campaign =
            Campaign::new(way).with(|confinement| confinement.read_only = vec!["/nowhere/tool".into()]);
        let (_, message, _) = refusal(&campaign);
        assert!(message.contains("/nowhere/tool"), "{message}");
        let mut campaign = Campaign::new(way);
        campaign.cwd = Some("/nowhere".into());
        assert_eq!(refusal(&campaign).0, "cwd");
        let campaign = Campaign::new(way);
        let ended = campaign.start_program("/nowhere", &[]).end();
        assert!(
            matches!(&ended.refusals[..], [ExecReport::Failed { stage, errno: Some(2), .. }] if stage == "exec"),
            "{ended:?}"
        );
        assert_eq!(ended.status.code(), Some(126));
    });
}

#[test]
fn a_stream_that_is_more_than_a_pipe_is_not_handed_in() {
    each_way(|way| {
        let mut campaign = Campaign::new(way);
        for foreign in [campaign.outside().to_owned(), campaign.write("input", "words")] {
            campaign.foreign_stdin = Some(foreign);
            let (stage, message, _) = refusal(&campaign);
            assert_eq!(stage, "init");
            assert!(message.contains("no pipe and no terminal"), "{message}");
        }
        campaign.foreign_stdin = Some("/dev/null".into());
        campaign.run("true");
    });
}
