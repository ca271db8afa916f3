use super::*;

fn with(settings: &[&str]) -> Policy {
    settings
        .iter()
        .fold(Policy::default(), |policy, text| policy.changed(&Setting::parse(text).unwrap()).unwrap())
}

#[test]
fn a_campaign_s_model_is_its_own_provider_s() {
    let policy = with(&["provider=codex", "model=gpt-5.5"]);
    assert_eq!(policy.model_for("codex"), Some("gpt-5.5"));
    assert_eq!(policy.model_for("claude-code"), None);
    assert_eq!(with(&["model=m"]).model_for("claude-code"), Some("m"));
}

#[test]
fn a_child_is_never_wider_than_its_parent() {
    let parent = with(&["read+=@rust", "net.mode=open", "limits.memory=4GiB"]);
    assert!(parent.is_within(&parent));
    for narrower in [
        &["net.mode=none", "limits.memory=1GiB"][..],
        &["net.mode=none", "limits.memory=4GiB", "hide+=*.secret", "protect_tooling=always"],
    ] {
        assert!(with(narrower).is_within(&parent), "{narrower:?}");
    }
    for wider in [
        &["limits.memory=8GiB"][..],
        &[],
        &["limits.memory=1GiB", "net.mode=host"],
        &["limits.memory=1GiB", "write+=/srv/x"],
        &["limits.memory=1GiB", "read+=/srv/x"],
        &["limits.memory=1GiB", "ptrace=on"],
        &["limits.memory=1GiB", "protect_tooling=off"],
    ] {
        assert!(!with(wider).is_within(&parent), "{wider:?}");
    }
    assert!(!Policy::default().is_within(&with(&["hide+=*.secret"])));
}

#[test]
fn every_key_has_a_line_with_its_origin() {
    let lines = with(&["read+=@rust", "limits.tmp=2GiB"]).lines();
    let line = |key| lines.iter().rfind(|line| line.key == key).unwrap();
    assert_eq!((line("read").value.as_str(), line("read").origin), ("@rust", Origin::Campaign));
    assert_eq!(lines[0].origin, Origin::Default, "what is always readable stays so, and is shown");
    assert_eq!((line("limits.tmp").value.as_str(), line("limits.tmp").origin), ("2GiB", Origin::Campaign));
    assert_eq!(line("ptrace").origin, Origin::Default);
    assert_eq!(lines.len(), setting::KEYS.len() + 1);
}
