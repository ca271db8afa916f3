//! [`Store`]: the handle that everyone holds. Commits go to the writer, questions to the readers.

use std::{sync::Arc, thread::JoinHandle, time::Instant};

use ostler_domain::{
    NodeId,
    limits::{READERS, TAIL_BATCHES, WRITER_QUEUE},
};
use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast, oneshot, watch};

use crate::{
    blob::Blobs,
    check::Finding,
    commit::{Commit, Committed, Encoded},
    connect,
    error::{CommitError, Doing, Fault, ReadError},
    meter::{Counts, Meter},
    node,
    open::{Options, Paths},
    pool::{Pool, block_on},
    prices::Prices,
    published::Published,
    search::{Indexer, SearchFile, SearchReader},
    session::Shown,
    writer::{Job, Queue, Writer},
};

/// Events that became durable together, in order.
pub type Batch = Arc<[Arc<Published>]>;

/// The record of one node.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    jobs: Arc<Queue>,
    room: Arc<Semaphore>,
    writer: Option<JoinHandle<()>>,
    indexer: Option<Indexer>,
    readers: Pool<Reader>,
    /// Blobs are synced before their commit; a thread of their own keeps that out of everyone's way.
    blob_writer: Pool<Blobs>,
    blobs: Blobs,
    published: watch::Receiver<u64>,
    tail: broadcast::Sender<Batch>,
    meter: Meter,
    prices: Prices,
    node: NodeId,
    paths: Paths,
}

/// What a reading thread has at hand.
pub(crate) struct Reader {
    pub(crate) connection: Connection,
    pub(crate) blobs: Blobs,
    pub(crate) search: SearchReader,
    pub(crate) shown: Shown,
}

impl Store {
    pub(crate) fn start(
        connection: Connection,
        blobs: Blobs,
        paths: &Paths,
        options: &Options,
    ) -> Result<(Store, Vec<Finding>), Fault> {
        let node = node::node_id(&connection)?;
        let (tail, _) = broadcast::channel(TAIL_BATCHES);
        let shown = Shown::default();
        let (meter, prices) = (Meter::default(), Prices::default());
        let (writer, published) = Writer::new(connection, tail.clone(), shown.clone(), meter.clone())?;
        let search = SearchFile::new(&paths.search);
        let mut findings = Vec::new();
        let indexer = if options.search {
            let (indexer, found) = Indexer::start(&search, paths, blobs.clone(), node, published.clone())?;
            findings.extend(found);
            Some(indexer)
        } else {
            None
        };
        let reader = {
            let (db, blobs, search, shown) = (paths.db.clone(), blobs.clone(), search.clone(), shown.clone());
            let prices = prices.clone();
            move || -> Result<Reader, Fault> {
                Ok(Reader {
                    connection: prices.taught(connect::reader(&db)?)?,
                    blobs: blobs.clone(),
                    search: SearchReader::new(search.clone()),
                    shown: shown.clone(),
                })
            }
        };
        // One is enough to answer the first question; the others open the database beside it.
        let mut readers = Pool::start("ostler-read", vec![reader()?]).doing("start the readers")?;
        readers.grow("ostler-read", READERS - 1, reader).doing("start the readers")?;
        let blob_writer = Pool::start("ostler-blob", vec![blobs.clone()]).doing("start the blob writer")?;
        let jobs = Arc::new(Queue::default());
        let queue = Arc::clone(&jobs);
        let writer = std::thread::Builder::new()
            .name("ostler-write".to_owned())
            .spawn(move || writer.run(&queue))
            .doing("start the writer")?;
        let inner = Inner {
            jobs,
            room: Arc::new(Semaphore::new(WRITER_QUEUE)),
            writer: Some(writer),
            indexer,
            readers,
            blob_writer,
            blobs,
            published,
            tail,
            meter,
            prices,
            node,
            paths: paths.clone(),
        };
        Ok((Store { inner: Arc::new(inner) }, findings))
    }

    /// Commits with others' in one transaction; answers when it is durable. A refused commit writes nothing.
    /// Dropping the future does not take a commit back.
    pub async fn commit(&self, commit: Commit) -> Result<Committed, CommitError> {
        self.submit(commit).await.await.map_err(|_| CommitError::Closed)?
    }

    /// Hands a commit to the writer, waiting only for room, and leaves the answer to be waited for. Commits of
    /// one owner become durable in the order in which they were submitted.
    pub async fn submit(&self, commit: Commit) -> oneshot::Receiver<Result<Committed, CommitError>> {
        let (answer, answered) = oneshot::channel();
        match self.admit(commit).await {
            Ok((encoded, room)) => {
                let job =
                    Job::Commit { encoded: Box::new(encoded), answer, arrived: Instant::now(), _room: room };
                // A writer that is gone drops the job and with it the answer.
                let _ = self.inner.jobs.push(job);
            }
            Err(error) => drop(answer.send(Err(error))),
        }
        answered
    }

    async fn admit(&self, commit: Commit) -> Result<(Encoded, OwnedSemaphorePermit), CommitError> {
        let mut encoded = Encoded::new(commit);
        if encoded.blobs().next().is_some() {
            encoded = self.write_blobs(encoded).await?;
        }
        let room = Arc::clone(&self.inner.room).acquire_owned().await.map_err(|_| CommitError::Closed)?;
        Ok((encoded, room))
    }

    /// [`Store::commit`] for a thread without a runtime.
    pub fn commit_blocking(&self, commit: Commit) -> Result<Committed, CommitError> {
        block_on(self.commit(commit))
    }

    async fn write_blobs(&self, encoded: Encoded) -> Result<Encoded, CommitError> {
        let write = |blobs: &mut Blobs| {
            let mut encoded = encoded;
            for (hash, bytes) in encoded.blobs() {
                blobs.write(&hash, bytes).doing("write a large event")?;
            }
            encoded.forget_pictures();
            Ok::<_, Fault>(encoded)
        };
        Ok(self.inner.blob_writer.run(write).await.ok_or(CommitError::Closed)??)
    }

    /// The end of the durable log.
    pub fn last_seq(&self) -> u64 {
        *self.inner.published.borrow()
    }

    /// The end of the durable log, as it grows. A `borrow()` of it that is kept stops the writer: copy the number.
    pub fn published(&self) -> watch::Receiver<u64> {
        self.inner.published.clone()
    }

    /// Events as they become durable. Whoever falls behind reads the log by its cursor instead.
    pub fn subscribe_tail(&self) -> broadcast::Receiver<Batch> {
        self.inner.tail.subscribe()
    }

    /// How many follow the log from memory.
    pub fn followers(&self) -> usize {
        self.inner.tail.receiver_count()
    }

    /// What became durable since the record was opened.
    pub fn counts(&self) -> Counts {
        self.inner.meter.counts()
    }

    /// Commits and other work that wait for the writer.
    pub fn writer_queue(&self) -> usize {
        self.inner.jobs.depth()
    }

    pub fn node_id(&self) -> NodeId {
        self.inner.node
    }

    pub(crate) fn paths(&self) -> &Paths {
        &self.inner.paths
    }

    pub(crate) fn prices(&self) -> &Prices {
        &self.inner.prices
    }

    pub(crate) fn blobs(&self) -> &Blobs {
        &self.inner.blobs
    }

    pub(crate) fn indexer(&self) -> Option<&Indexer> {
        self.inner.indexer.as_ref()
    }

    /// Asks a question on one of the readers' threads; the whole of it sees one state of the record.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Reader) -> Result<T, ReadError> + Send + 'static,
    ) -> Result<T, ReadError> {
        let answered = self.inner.readers.run(move |reader| {
            let snapshot = reader.connection.unchecked_transaction()?;
            let answer = question(reader);
            drop(snapshot);
            answer
        });
        answered.await.ok_or(ReadError::Closed)?
    }

    /// Has the writer do something between two transactions.
    pub(crate) async fn exclusively<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Writer) -> T + Send + 'static,
    ) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        let work = Box::new(move |writer: &mut Writer| {
            let _ = answer.send(work(writer));
        });
        self.inner.jobs.push(Job::Exclusive(work)).then_some(())?;
        answered.await.ok()
    }
}

impl Drop for Inner {
    /// Waits for what was accepted to be written, so that a record that was let go of can be opened again.
    fn drop(&mut self) {
        self.jobs.close();
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
        // The writer's end is what ends the indexer.
        self.indexer = None;
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("db", &self.inner.paths.db).finish_non_exhaustive()
    }
}
