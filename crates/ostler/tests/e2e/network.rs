//! The gateway of a session: denied with a reason, and recorded.

use ostler_domain::{
    Event,
    denied::{Denied, DeniedKind},
    session::Outcome,
};
use ostler_testkit::{
    TestHome,
    process::{Proc, command_line},
    scenario, skip, wait,
};
use serde_json::json;

use crate::OSTLER;

fn denied(events: &[ostler_domain::Recorded]) -> Vec<Denied> {
    let denied = events.iter().filter_map(|recorded| match &recorded.event {
        Event::Denied(denied) => Some(denied.clone()),
        _ => None,
    });
    denied.collect()
}

/// Asks the proxy by hand: nothing but bash is needed, and no packet leaves the machine.
fn ask(target: &str) -> serde_json::Value {
    let script = format!(
        "exec 3<>/dev/tcp/127.0.0.1/${{HTTPS_PROXY##*:}} && \
         printf 'CONNECT {target} HTTP/1.1\\r\\n\\r\\n' >&3 && cat <&3; echo \"$NO_PROXY $no_proxy\""
    );
    json!({"run": ["bash", "-c", script]})
}

#[tokio::test]
async fn a_denied_connection_is_answered_and_recorded_with_its_words() {
    if !std::path::Path::new("/bin/bash").exists() {
        skip::lacking("a_denied_connection_is_answered_and_recorded_with_its_words needs bash");
        return;
    }
    let home = TestHome::started(OSTLER).await;
    for (mode, target, rule, grant) in [
        ("open", "10.1.2.3:443", "it is a private address", None),
        ("open", "127.0.0.1:443", "it is a loopback address", None),
        (
            "provider",
            "files.example:443",
            "net=provider",
            Some("ostler campaign set shop net.allow+=files.example"),
        ),
    ] {
        let set = home.run(&["campaign", "set", "shop", &format!("net.mode={mode}")]);
        assert!(set.status.success(), "{set:?}");
        let client = home.client().await;
        let mut wanted = ostler_client::CreateSession::new("shop", "script");
        wanted.initial_message = Some(scenario::of(vec![ask(target)]));
        wanted.ends_with_turn = true;
        let created = client.create_session(wanted).await.unwrap();
        let view = home.ended(&created.id.to_string()).await;
        assert_eq!(view.outcome, Some(Outcome::Done));
        let events = home.events(&client, created.id).await;
        let wanted = Denied {
            kind: DeniedKind::Network,
            target: target.to_owned(),
            rule: rule.to_owned(),
            grant: grant.map(str::to_owned),
        };
        assert_eq!(denied(&events), [wanted]);
        assert_eq!(view.denied, 1);
        let audit = std::fs::read_to_string(home.home.state().join("audit.jsonl")).unwrap();
        let door = |door: &str| audit.contains(&format!(r#""door":"{door}""#));
        assert!(audit.contains(r#""object":"network "#) && door("session") && door("control"), "{audit}");
        assert!(audit.contains(r#""pid":"#), "{audit}");
        let output = events.iter().find_map(|recorded| match &recorded.event {
            Event::AgentToolResult(result) => Some(result.output.clone()),
            _ => None,
        });
        let output = output.unwrap();
        let words = format!("denied network {target} (rule: {rule})");
        assert!(output.starts_with("HTTP/1.1 403 ") && output.contains(&words), "{output}");
        assert!(output.contains("127.0.0.1,localhost,::1 127.0.0.1,localhost,::1"), "{output}");
        let logs = home.run(&["logs", &created.id.to_string()]);
        let logs = String::from_utf8_lossy(&logs.stdout).into_owned();
        assert!(logs.contains(&format!("network {target} (rule: {rule})")), "{logs}");
        assert!(grant.is_none_or(|grant| logs.contains(grant)), "{logs}");
    }
}

#[tokio::test]
async fn a_preset_without_hosts_keeps_a_session_from_starting() {
    let home = TestHome::started(OSTLER).await;
    let set = home.run(&["campaign", "set", "shop", "net.mode=provider", "net.allow+=@rust"]);
    assert!(set.status.success(), "{set:?}");
    let client = home.client().await;
    let session = home.session(&client, "hello").await;
    let view = home.ended(&session.id.to_string()).await;
    assert_eq!(view.outcome, Some(Outcome::FailedStart), "{view:?}");
    let obituary = view.obituary.unwrap();
    assert!(obituary.sentence.contains("[network.presets] rust"), "{obituary:?}");
    let cures: Vec<&str> = obituary.cures.iter().map(|cure| cure.command.as_str()).collect();
    assert_eq!(
        cures,
        ["ostler config set network.presets.rust+=HOST", "ostler campaign set shop net.allow-=@rust"]
    );
    let denied = denied(&home.events(&client, session.id).await);
    assert!(matches!(&denied[..], [one] if one.kind == DeniedKind::Policy), "{denied:?}");
}

#[tokio::test]
async fn a_gateway_that_is_killed_is_followed_by_another() {
    if !std::path::Path::new("/bin/bash").exists() {
        skip::lacking("a_gateway_that_is_killed_is_followed_by_another needs bash");
        return;
    }
    let home = TestHome::started(OSTLER).await;
    assert!(home.run(&["campaign", "set", "shop", "net.mode=provider"]).status.success());
    let client = home.client().await;
    let pause = json!({"run": ["bash", "-c", "until [ -e go ]; do sleep 0.02; done"]});
    let mut wanted = ostler_client::CreateSession::new("shop", "script");
    wanted.initial_message =
        Some(scenario::of(vec![ask("first.example:443"), pause, ask("second.example:443")]));
    wanted.ends_with_turn = true;
    let session = client.create_session(wanted).await.unwrap().id;
    let is_gateway = |process: &Proc| {
        command_line(process.pid).get(1..3) == Some(&["internal".to_owned(), "gateway".to_owned()])
    };
    let gateway = || home.children_of(&home.keeper(session)?).into_iter().find(is_gateway);
    let first = wait::answer("a gateway", wait::PATIENCE, gateway);
    let recorded = async {
        while denied(&home.events(&client, session).await).is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(wait::PATIENCE, recorded).await.unwrap();
    first.kill_and_wait();
    std::fs::write(home.campaign_dir().join("go"), "").unwrap();
    assert_eq!(home.ended(&session.to_string()).await.outcome, Some(Outcome::Done));
    let hosts: Vec<String> =
        denied(&home.events(&client, session).await).into_iter().map(|denied| denied.target).collect();
    assert_eq!(hosts, ["first.example:443", "second.example:443"]);
}
