//! The environment of a session's agent: what it begins with, what people and providers add, and our own names last.

use std::{collections::BTreeMap, path::Path};

use ostler_domain::{
    MissionId,
    policy::Compat,
    session::Created,
    telemetry::{Context, TRACEPARENT},
};

use crate::clock::entropy;

/// A session's whole environment. Nothing overrides the reserved names: they are set last.
pub(crate) fn of_session(
    created: &Created,
    beginning: Vec<(String, String)>,
    provider: Vec<(String, String)>,
    socket: &Path,
    token: &str,
    mission_dir: Option<&Path>,
) -> Vec<(String, String)> {
    let mut environment: BTreeMap<String, String> = beginning.into_iter().collect();
    environment.extend(created.config.environment.clone());
    environment.extend(provider);
    // Whatever the agent starts that knows of traces belongs below its session, and that below whoever asked for it.
    environment.insert(TRACEPARENT.to_owned(), Context::of_session(created).to_string());
    let reserved = reserved(created, &socket.to_string_lossy(), token);
    environment.extend(reserved.into_iter().map(|(name, value)| (name.to_owned(), value)));
    if let (Some(member), Some(dir)) = (created.config.mission, mission_dir) {
        environment.extend(of_member(member.mission, dir));
    }
    environment.into_iter().collect()
}

/// What a member of a mission is told of it, and whatever says whether its work is done.
pub(crate) fn of_member(mission: MissionId, dir: &Path) -> [(String, String); 2] {
    [
        ("OSTLER_MISSION".to_owned(), mission.to_string()),
        ("OSTLER_MISSION_DIR".to_owned(), dir.to_string_lossy().into_owned()),
    ]
}

fn reserved(created: &Created, socket: &str, token: &str) -> Vec<(&'static str, String)> {
    let session = created.id.to_string();
    let campaign = created.campaign.to_string();
    let (dir, provider) = (&created.config.working_dir, &created.config.provider);
    let mut names = vec![
        ("OSTLER_SESSION_ID", session.clone()),
        ("OSTLER_CAMPAIGN", campaign.clone()),
        ("OSTLER_CAMPAIGN_DIR", dir.clone()),
        ("OSTLER_PROVIDER", provider.clone()),
        ("OSTLER_SOCKET", socket.to_owned()),
        ("OSTLER_TOKEN", token.to_owned()),
    ];
    names.extend(match created.policy.compat {
        Some(Compat::Obey) => vec![
            ("OBEY_SESSION_ID", session),
            ("OBEY_CAMPAIGN_ID", campaign),
            ("OBEY_CAMPAIGN_DIR", dir.clone()),
            ("OBEY_PROVIDER", provider.clone()),
            ("OBEY_DAEMON_SOCKET", socket.to_owned()),
        ],
        Some(Compat::Gastown) => vec![("GT_SESSION_UUID", session)],
        None => Vec::new(),
    });
    names
}

/// 256 random bits, for nobody but one session.
pub(crate) fn fresh_token() -> String {
    format!("{:032x}{:032x}", entropy(), entropy())
}

/// The few variables of ours that an agent without a sandbox gets.
pub(crate) fn unconfined() -> Vec<(String, String)> {
    const INHERITED: &[&str] = &["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "TMPDIR", "TZ"];
    INHERITED.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?))).collect()
}
