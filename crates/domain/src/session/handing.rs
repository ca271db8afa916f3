//! Work that goes on in another session.

use super::{Created, State};
use crate::{
    Event, SessionId,
    event::By,
    handoff::{HandoffRequested, Known, Made, Pack, Wish, gather},
};

impl Created {
    /// Whose rights bound those of whoever takes this one's work over. An agent gives nobody what it has not itself; a person
    /// gives what the campaign allows.
    pub fn bound_handed_on(&self, by: &By) -> Option<SessionId> {
        by.is_session().then_some(self.id)
    }

    /// The same for whoever goes on in its place: what an agent's wish has bounded stays so until a person has it go on.
    pub fn bound_after(&self, by_person: bool) -> Option<SessionId> {
        self.bounded_by.filter(|_| !by_person)
    }
}

impl State {
    /// That its work is to go on elsewhere, and what was said about it.
    pub fn handoff(&self) -> Option<&HandoffRequested> {
        self.handoff.as_ref()
    }

    /// What it was handed when it began.
    pub fn handed(&self) -> Option<&Pack> {
        self.handed.as_deref()
    }

    /// What the next session is handed of this one's work, which its events tell, and what became of its tree.
    pub fn pack<'a>(&self, wish: Wish, events: impl IntoIterator<Item = &'a Event>, made: Made) -> Pack {
        let mut known = gather(events);
        known.add_made(made, &self.created.config.working_dir);
        let mut wish = wish;
        if let Some(before) = &self.handed {
            // Whoever got the work handed on tells of it as of its own.
            let Known { asked, finished, files, commits, .. } = before.known.clone();
            known.asked = asked;
            known.finished =
                before.wish.done.iter().chain(&finished).cloned().chain(known.finished).collect();
            known.files = files
                .into_iter()
                .filter(|file| !known.files.contains(file))
                .chain(known.files.clone())
                .collect();
            known.commits = commits.into_iter().chain(known.commits).collect();
            wish.decided = before.wish.decided.iter().cloned().chain(wish.decided).collect();
        }
        known.trim();
        let why = match (&self.ended, &self.handoff) {
            (Some(ended), _) => ended.obituary.sentence.clone(),
            (None, Some(requested)) => format!("It was handed on, asked by {}.", requested.by.0),
            (None, None) => String::new(),
        };
        Pack { from: self.created.id, why, wish, known, instead: None }
    }
}
