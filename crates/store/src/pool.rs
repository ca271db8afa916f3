//! Threads that wait for the disk, so that the async ones need not; and a way to wait for them from a plain
//! thread. No runtime is needed: commands without one use the store too.

use std::{
    collections::VecDeque,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
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
    queue: Arc<Queue<C>>,
    room: Arc<Semaphore>,
    threads: Vec<JoinHandle<()>>,
}

/// Jobs and those who wait for one. A job wakes one thread, the one that came to rest last: what it has in its caches
/// is the freshest, and a record that is asked little is answered from one connection's.
struct Queue<C> {
    line: Mutex<Line<C>>,
}

struct Line<C> {
    jobs: VecDeque<Job<C>>,
    resting: Vec<Thread>,
    is_closed: bool,
}

impl<C> Queue<C> {
    fn new() -> Self {
        Self { line: Mutex::new(Line { jobs: VecDeque::new(), resting: Vec::new(), is_closed: false }) }
    }

    fn push(&self, job: Job<C>) {
        let mut line = self.lock();
        line.jobs.push_back(job);
        let woken = line.resting.pop();
        drop(line);
        if let Some(thread) = woken {
            thread.unpark();
        }
    }

    /// The next job, waited for; none when there will be no more.
    fn next(&self) -> Option<Job<C>> {
        let me = thread::current();
        let mut line = self.lock();
        loop {
            if let Some(job) = line.jobs.pop_front() {
                return Some(job);
            }
            if line.is_closed {
                return None;
            }
            line.resting.push(me.clone());
            drop(line);
            thread::park();
            line = self.lock();
            // A thread may wake without having been woken.
            line.resting.retain(|thread| thread.id() != me.id());
        }
    }

    fn close(&self) {
        let mut line = self.lock();
        line.is_closed = true;
        line.resting.drain(..).for_each(|thread| thread.unpark());
    }

    fn lock(&self) -> MutexGuard<'_, Line<C>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C: Send + 'static> Pool<C> {
    /// Starts one thread per context.
    pub(crate) fn start(name: &str, contexts: Vec<C>) -> std::io::Result<Self> {
        let queue = Arc::new(Queue::new());
        let threads = contexts
            .into_iter()
            .map(|context| {
                let queue = Arc::clone(&queue);
                thread::Builder::new().name(name.to_owned()).spawn(move || work(&queue, context))
            })
            .collect::<std::io::Result<_>>()?;
        Ok(Self { queue, room: Arc::new(Semaphore::new(QUEUE)), threads })
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
        self.queue.push(job);
        answered.await.ok()
    }
}

fn work<C>(queue: &Queue<C>, mut context: C) {
    while let Some(job) = queue.next() {
        // A job that panics has lost its caller, not its thread: the others still need it.
        let _ = catch_unwind(AssertUnwindSafe(|| job(&mut context)));
    }
}

impl<C> Drop for Pool<C> {
    fn drop(&mut self) {
        self.queue.close();
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

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    fn pool(threads: u32) -> Pool<u32> {
        Pool::start("test", (0..threads).collect()).unwrap()
    }

    #[test]
    fn a_job_is_done_by_who_came_to_rest_last() {
        let pool = pool(3);
        for _ in 0..50 {
            let last = loop {
                match pool.queue.lock().resting.as_slice() {
                    [_, _, last] => break last.id(),
                    _ => thread::yield_now(),
                }
            };
            assert_eq!(block_on(pool.run(|_| thread::current().id())), Some(last));
        }
    }

    #[test]
    fn jobs_run_beside_each_other_and_a_panic_costs_no_thread() {
        let pool = pool(2);
        assert_eq!(block_on(pool.run(|_| panic!("a job of a test"))).map(|()| 0), None);
        for _ in 0..100 {
            let both = Arc::new(Barrier::new(2));
            let other = Arc::clone(&both);
            thread::scope(|scope| {
                scope.spawn(|| block_on(pool.run(move |_| other.wait())));
                block_on(pool.run(move |_| both.wait())).unwrap();
            });
        }
    }
}
