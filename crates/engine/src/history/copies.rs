//! Which transcripts of a directory were taken in before: from here, or from another one of which this is a copy.

use std::{
    collections::{BTreeMap, HashSet},
    path::{Path, PathBuf},
};

use ostler_domain::{
    ConversationId,
    history::{Source, Standing},
};
use ostler_store::KnownHistory;

use super::{
    Run, Stopped,
    beside::{Found, dialogue},
    stand,
    stores::StoreFile,
};

/// Transcripts whose dialogues were taken in, in the order of their names: the first has what is nobody's.
#[derive(Default)]
pub(super) struct Taken {
    /// From here, up to a place: their lines are kept already.
    pub(super) read: BTreeMap<PathBuf, (ConversationId, u64)>,
    /// From another directory, of which these have more, less, or the same.
    pub(super) copies: BTreeMap<PathBuf, ConversationId>,
    /// Those among them that were never anywhere else: an export of ours is a store too.
    pub(super) own: HashSet<ConversationId>,
    /// The directory that one of the copies was read from.
    pub(super) origin: Option<PathBuf>,
}

impl Run<'_> {
    /// The transcripts among these files whose dialogues were taken in.
    pub(super) async fn taken(&self, files: &[Found]) -> Result<Taken, Stopped> {
        let mut taken = Taken::default();
        for file in files {
            let Some(stem) = dialogue(&file.name) else { continue };
            if let Some(own) = self.own_conversation(&stem).await? {
                taken.copies.insert(file.name.clone(), own);
                taken.own.insert(own);
                continue;
            }
            let known = self.engine.shared.store.known_history(Source::OpenClaw, &stem).await?;
            let Some(known) = known else { continue };
            let (name, conversation) = (file.name.clone(), known.session.conversation);
            let is_here = Path::new(&known.file) == file.path;
            if is_here || (self.is_moved(file, &known).await && !Path::new(&known.file).exists()) {
                taken.read.insert(name, (conversation, known.mark.to));
            } else {
                taken.copies.insert(name, conversation);
                taken.origin = Path::new(&known.file).parent().map(Path::to_owned).or(taken.origin);
            }
        }
        Ok(taken)
    }

    /// Whether a file begins with all that was read of its dialogue elsewhere.
    async fn is_moved(&self, file: &Found, known: &KnownHistory) -> bool {
        let Found { path, size, written, .. } = file.clone();
        let file = StoreFile { source: Source::OpenClaw, path, size, written };
        let standing = stand(file, Some(known)).await;
        matches!(standing, Ok(Standing::Same | Standing::Grown { .. }))
    }
}
