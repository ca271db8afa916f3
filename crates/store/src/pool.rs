//! Threads that wait for the disk, so that the async ones need not; and a way to wait for them from a plain
//! thread. No runtime is needed: commands without one use the store too.

use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{Arc, Mutex, PoisonError, mpsc},
    task::{Context, Poll, Wake, Waker},
    thread::{self, JoinHandle, Thread},
};

use tokio::sync::{Semaphore, oneshot};

use crate::error::Fault;

type Job<C> = Box<dyn FnOnce(&mut C) + Send>;

/// Jobs that may wait for a worker; callers wait beyond it.
const QUEUE: usize = 256;

/// A fixed number of threads, each with a context of its own.
pub(crate) struct Pool<C> {
    jobs: Option<mpsc::Sender<Job<C>>>,
    queue: Arc<Mutex<mpsc::Receiver<Job<C>>>>,
    room: Arc<Semaphore>,
    threads: Vec<JoinHandle<()>>,
}

impl<C: Send + 'static> Pool<C> {
    /// Starts one thread per context.
    pub(crate) fn start(name: &str, contexts: Vec<C>) -> std::io::Result<Self> {
        let (jobs, queue) = mpsc::channel::<Job<C>>();
        let queue = Arc::new(Mutex::new(queue));
        let threads = contexts
            .into_iter()
            .map(|context| {
                let queue = Arc::clone(&queue);
                thread::Builder::new().name(name.to_owned()).spawn(move || work(&queue, context))
            })
            .collect::<std::io::Result<_>>()?;
        Ok(Self { jobs: Some(jobs), queue, room: Arc::new(Semaphore::new(QUEUE)), threads })
    }

    /// Adds threads that make their contexts themselves: nobody waits for them, and while one of them cannot, the others
    /// do its work.
    pub(crate) fn grow(
        &mut self,
        name: &str,
        count: usize,
        make: impl Fn() -> Result<C, Fault> + Clone + Send + 'static,
    ) -> std::io::Result<()> {
        for _ in 0..count {
            let (queue, make) = (Arc::clone(&self.queue), make.clone());
            self.threads.push(thread::Builder::new().name(name.to_owned()).spawn(move || match make() {
                Ok(context) => work(&queue, context),
                Err(fault) => {
                    tracing::warn!(error = &fault as &dyn std::error::Error, "a reader does not start");
                }
            })?);
        }
        Ok(())
    }

    /// Runs a job on one of the threads. `None` when the pool is closing or the job panicked.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut C) -> T + Send + 'static,
    ) -> Option<T> {
        let room = Arc::clone(&self.room).acquire_owned().await.ok()?;
        let (answer, answered) = oneshot::channel();
        let job = Box::new(move |context: &mut C| {
            let _room = room;
            if !answer.is_closed() {
                let _ = answer.send(job(context));
            }
        });
        self.jobs.as_ref()?.send(job).ok()?;
        answered.await.ok()
    }
}

fn work<C>(queue: &Mutex<mpsc::Receiver<Job<C>>>, mut context: C) {
    while let Some(job) = next(queue) {
        // A job that panics has lost its caller, not its thread: the others still need it.
        let _ = catch_unwind(AssertUnwindSafe(|| job(&mut context)));
    }
}

fn next<C>(queue: &Mutex<mpsc::Receiver<Job<C>>>) -> Option<Job<C>> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

impl<C> Drop for Pool<C> {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Waits for a future on a plain thread. Not for use inside an async runtime.
pub fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
