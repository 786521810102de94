//! What waits for a thread of the program to take it: a bounded queue, pulled or waited for.
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Time-outs are cut to this: later than any program waits, and an instant that the system can represent.
const LONGEST_WAIT: Duration = Duration::from_secs(3_600 * 24 * 365);

/// `timeout`, or the longest wait there is.
pub(crate) fn bounded(timeout: Duration) -> Duration {
    timeout.min(LONGEST_WAIT)
}

/// The instant at which a wait of `timeout` ends. `Duration::MAX` waits as good as for ever, where a plain sum panics.
pub(crate) fn deadline(timeout: Duration) -> Instant {
    Instant::now() + bounded(timeout)
}

/// A queue that drops its oldest when nobody takes them, and counts those.
#[derive(Debug)]
pub(crate) struct Inbox<T> {
    queue: Mutex<Queue<T>>,
    arrived: Condvar,
    limit: usize,
}

#[derive(Debug)]
struct Queue<T> {
    items: VecDeque<T>,
    dropped: u64,
    closed: bool,
}

impl<T> Inbox<T> {
    /// A queue of at most `limit` items.
    pub(crate) fn new(limit: usize) -> Self {
        let queue = Mutex::new(Queue { items: VecDeque::new(), dropped: 0, closed: false });
        Self { queue, arrived: Condvar::new(), limit }
    }

    pub(crate) fn push(&self, item: T) {
        let mut queue = self.queue.lock();
        if queue.items.len() == self.limit {
            queue.items.pop_front();
            queue.dropped += 1;
        }
        queue.items.push_back(item);
        self.arrived.notify_all();
    }

    pub(crate) fn poll(&self) -> Option<T> {
        self.queue.lock().items.pop_front()
    }

    pub(crate) fn wait(&self, timeout: Duration) -> Option<T> {
        let deadline = deadline(timeout);
        let mut queue = self.queue.lock();
        while queue.items.is_empty() && !queue.closed {
            if self.arrived.wait_until(&mut queue, deadline).timed_out() {
                break;
            }
        }
        queue.items.pop_front()
    }

    /// Nothing comes any more: whoever waits is told so.
    pub(crate) fn close(&self) {
        self.queue.lock().closed = true;
        self.arrived.notify_all();
    }

    /// How many were dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.queue.lock().dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_drops_its_oldest_and_counts_them() {
        let inbox = Inbox::new(3);
        (0..5).for_each(|n| inbox.push(n));
        assert_eq!(inbox.dropped(), 2);
        assert_eq!(std::iter::from_fn(|| inbox.poll()).collect::<Vec<_>>(), [2, 3, 4]);
        assert_eq!(inbox.wait(Duration::ZERO), None);
    }

    #[test]
    fn a_wait_without_end_ends_when_something_comes_or_nothing_can() {
        let inbox = Inbox::new(1);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| inbox.wait(Duration::MAX));
            inbox.push(7);
            assert_eq!(waiter.join().unwrap(), Some(7));
            let waiter = scope.spawn(|| inbox.wait(Duration::MAX));
            inbox.close();
            assert_eq!(waiter.join().unwrap(), None);
        });
    }
}
