//! What takes the space: the state directory looked through. Links are not followed, and what goes away meanwhile is not
//! missed.

use std::{
    collections::{BTreeMap, HashMap},
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use ostler_domain::{
    ConversationId, Refusal, SessionId,
    session::View,
    space::{OfCampaign, OfSession, Part, Taken, by_campaign},
};

use crate::{DiskRoom, Engine};

/// What takes the space.
#[derive(Debug, Clone)]
pub struct DiskUse {
    pub disk: DiskRoom,
    pub parts: Vec<(Part, Taken)>,
    pub campaigns: Vec<OfCampaign>,
    /// The largest first.
    pub sessions: Vec<OfSession>,
}

/// What was found in the directory.
#[derive(Debug, Default, PartialEq, Eq)]
struct Looked {
    parts: BTreeMap<Part, Taken>,
    /// By the names of the directories.
    tapes: HashMap<String, u64>,
    homes: HashMap<String, u64>,
}

impl Engine {
    /// What takes the space, with the `most` largest sessions.
    pub async fn disk_use(&self, most: usize) -> Result<DiskUse, Refusal> {
        let state_dir = self.shared.options.state_dir.clone();
        let looked = tokio::task::spawn_blocking(move || look(&state_dir)).await;
        let looked = looked.map_err(|error| Refusal::internal(error.to_string()))?.map_err(|error| {
            Refusal::internal("the state directory cannot be read").because(error.to_string())
        })?;
        let mut sessions = self.owners(&looked).await?;
        sessions.sort_by_key(|session| std::cmp::Reverse(session.total()));
        let campaigns = by_campaign(&sessions);
        sessions.truncate(most);
        let parts = looked.parts.into_iter().collect();
        Ok(DiskUse { disk: self.shared.disk_room(), parts, campaigns, sessions })
    }

    /// Whose the tapes and homes are.
    async fn owners(&self, looked: &Looked) -> Result<Vec<OfSession>, Refusal> {
        let store = &self.shared.store;
        let mut sessions: HashMap<SessionId, OfSession> = HashMap::new();
        for (name, tape) in &looked.tapes {
            let Ok(id) = name.parse::<SessionId>() else { continue };
            if let Some(view) = store.session(id).await? {
                sessions.insert(id, OfSession { tape: *tape, ..of(&view) });
            }
        }
        for (name, home) in &looked.homes {
            let Ok(id) = name.parse::<ConversationId>() else { continue };
            if let Some(view) = store.sessions_of_conversation(id, 1).await?.pop() {
                sessions.entry(view.id).or_insert_with(|| of(&view)).home = *home;
            }
        }
        Ok(sessions.into_values().collect())
    }
}

fn of(view: &View) -> OfSession {
    OfSession {
        id: view.id,
        conversation: view.conversation,
        name: view.name.clone(),
        campaign: view.campaign,
        has_ended: view.outcome.is_some(),
        tape: 0,
        home: 0,
    }
}

fn look(state_dir: &Path) -> io::Result<Looked> {
    let mut looked = Looked::default();
    for entry in fs::read_dir(state_dir)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let part = Part::of(&name);
        let own = match part {
            Part::Tapes => &mut looked.tapes,
            Part::Homes => &mut looked.homes,
            _ => {
                *looked.parts.entry(part).or_default() += taken(entry.path());
                continue;
            }
        };
        for below in fs::read_dir(entry.path()).into_iter().flatten().flatten() {
            let taken = taken(below.path());
            own.insert(below.file_name().to_string_lossy().into_owned(), taken.bytes);
            *looked.parts.entry(part).or_default() += taken;
        }
    }
    Ok(looked)
}

/// A file, or a directory with everything below it. What cannot be looked at takes nothing.
pub(crate) fn taken(path: PathBuf) -> Taken {
    let mut sum = Taken::default();
    let mut ahead = vec![path];
    while let Some(path) = ahead.pop() {
        let Ok(facts) = fs::symlink_metadata(&path) else { continue };
        // What it takes, not how long it is: tapes may have holes.
        sum += Taken { bytes: facts.blocks() * 512, files: u64::from(!facts.is_dir()) };
        if facts.is_dir() {
            ahead.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_below_is_counted_once_and_no_link_followed() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: usize| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, vec![1; bytes]).unwrap();
        };
        write("ostler.db", 8_192);
        write("sessions/ses_1/tape.1", 8_192);
        write("homes/cnv_1/deep/er/file", 8_192);
        std::os::unix::fs::symlink("/usr", dir.path().join("homes/cnv_1/usr")).unwrap();
        let looked = look(dir.path()).unwrap();
        assert!(looked.tapes["ses_1"] >= 8_192 && looked.tapes["ses_1"] < 64 << 10, "{looked:?}");
        assert!(looked.homes["cnv_1"] >= 8_192 && looked.homes["cnv_1"] < 64 << 10, "{looked:?}");
        assert_eq!(looked.parts[&Part::Homes].files, 2, "the file, and the link itself");
        assert!(looked.parts[&Part::Database].bytes >= 8_192);
    }
}
