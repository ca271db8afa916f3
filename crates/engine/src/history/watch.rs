//! Goes on looking at stores: what grows is taken in as it grows, and its session is live for as long as somebody is taken to
//! write to the file.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use ostler_domain::{
    Refusal, SessionId, Time,
    history::{Found, Import, News, Source, Totals, Verdict, is_at_work},
};

use super::{Run, Stopped, outside, settled, stores::Seen, unpacked};

/// Pause between two looks: each asks for the sizes of all files, and reads none that has not changed.
const LOOK: Duration = Duration::from_secs(2);

/// Sessions that are followed, and when their files were last written to.
type Followed = HashMap<SessionId, Time>;

impl Run<'_> {
    /// Looks until nobody listens, or the daemon leaves.
    pub(super) async fn watch(&mut self, import: &Import) -> Result<(), Refusal> {
        let (mut seen, mut followed) = (Seen::new(), Followed::new());
        let shutdown = self.engine.shared.shutdown.clone();
        let mut is_first = true;
        let ended = loop {
            let looked = {
                let _turn = self.engine.shared.importing.lock().await;
                self.look(import, is_first, &mut seen, &mut followed).await
            };
            match looked {
                Ok(()) => is_first = false,
                Err(Stopped::Gone) => break Ok(()),
                Err(Stopped::Refused(refusal)) => break Err(refusal),
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = self.news.closed() => break Ok(()),
                () = shutdown.cancelled() => break Ok(()),
            }
        };
        for id in followed.into_keys() {
            self.engine.end_imported(id, "Nobody follows it any more.").await?;
        }
        ended
    }

    async fn look(
        &mut self,
        import: &Import,
        is_first: bool,
        seen: &mut Seen,
        followed: &mut Followed,
    ) -> Result<(), Stopped> {
        let (mut totals, mut dialogues) = (Totals::default(), Vec::new());
        let mut looked_through = Vec::new();
        for store in &import.stores {
            let (looked, since, before) = (store.clone(), import.since, std::mem::take(seen));
            let state_dir = self.engine.shared.options.state_dir.clone();
            let found = tokio::task::spawn_blocking(move || {
                let found = unpacked::look(&looked, since, &before, &state_dir);
                (found, before)
            });
            let (found, before) =
                found.await.map_err(|_| Refusal::internal("looking through a store failed"))?;
            *seen = before;
            let (these, why_not) = match found {
                Ok(looked) => {
                    looked_through.extend(looked.stores);
                    (looked.dialogues, looked.why_not)
                }
                Err(why) => (Vec::new(), Some(why)),
            };
            if is_first {
                let files = these.len() as u64;
                let bytes = these.iter().map(|dialogue| dialogue.file.size).sum();
                let (source, dir) = (store.source, store.dir.clone());
                let running = outside::running(source).await;
                self.tell(News::Found(Found { source, dir, files, bytes, why_not, running })).await?;
            }
            dialogues.extend(these);
        }
        let changed: HashSet<Source> = dialogues.iter().map(|dialogue| dialogue.file.source).collect();
        dialogues.sort_by_key(|dialogue| (dialogue.about.first, dialogue.file.path.clone()));
        for dialogue in dialogues {
            let file = dialogue.file.clone();
            let follow = is_at_work(file.written, self.engine.shared.clock.now().wall);
            let (mut news, taken) = self.one(dialogue, follow).await?;
            seen.insert(file.path, (file.size, file.written));
            if let Some(taken) = taken {
                news = settled(news, taken.answer).await?;
            }
            // Also one that a single import has taken in meanwhile.
            if let Some(session) = news.session.filter(|_| follow) {
                followed.insert(session, file.written);
            }
            totals.add(&news);
            if is_first || news.verdict != Verdict::Same {
                self.tell(News::File(Box::new(news))).await?;
            }
        }
        for store in &looked_through {
            if is_first || changed.contains(&store.source) {
                self.beside(store, &mut totals).await?;
            }
        }
        let now = self.engine.shared.clock.now().wall;
        let quiet: Vec<SessionId> =
            followed.iter().filter(|(_, written)| !is_at_work(**written, now)).map(|(id, _)| *id).collect();
        for id in quiet {
            followed.remove(&id);
            self.engine.end_imported(id, "Nothing has come to its file for a while.").await?;
        }
        if is_first || totals.files > 0 {
            self.tell(News::Done(totals)).await?;
        }
        Ok(())
    }
}
