//! What must hold of a policy, whatever somebody types or sends. Used by the fuzz target and, on bytes of its own
//! making, by a test of `ostler-domain`.

use ostler_domain::{confinement::Confinement, gateway::GatewayOrder, policy::Policy};

/// Text is a list of settings, one a line; anything is also tried as a document.
pub(super) fn holds(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut policy = Policy::default();
    for line in text.lines() {
        if let Ok(changed) = policy.changed_by([&line.to_owned()]) {
            policy = changed;
        }
    }
    assert!(policy.is_within(&policy), "no policy is wider than itself");
    let said = policy.settings();
    let again = Policy::default().changed_by(&said);
    assert_eq!(again.as_ref(), Ok(&policy), "what is said of it makes the same one: {said:?}");
    let json = serde_json::to_vec(&policy).expect("a policy has a document");
    assert_eq!(serde_json::from_slice::<Policy>(&json).ok(), Some(policy.clone()));
    assert!(!policy.lines().is_empty());

    if let Ok(document) = serde_json::from_slice::<Confinement>(bytes) {
        let _ = document.fault();
    }
    let _ = serde_json::from_slice::<GatewayOrder>(bytes);
    if let Ok(policy) = serde_json::from_slice::<Policy>(bytes) {
        let _ = (policy.lines(), policy.settings(), policy.is_within(&Policy::default()));
    }
}
