//! Entering a context: code far down a call chain finds the one its thread works in, without reading a clock.
use coeval_time::Context;
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;

thread_local! {
    static ENTERED: RefCell<Vec<(u64, Context)>> = const { RefCell::new(Vec::new()) };
    static NEXT: Cell<u64> = const { Cell::new(0) };
}

/// The context that this thread entered last and has not left: `None` outside of any.
///
/// It never changes while it is entered, however long that takes: this reads no clock.
pub fn current() -> Option<Context> {
    ENTERED.with_borrow(|entered| entered.last().map(|(_, context)| *context))
}

/// Keeps a context entered on this thread until it is dropped; see [`Peer::enter`](crate::Peer::enter).
///
/// It belongs to its thread, and cannot be sent to another:
///
/// ```compile_fail,E0277
/// fn send<T: Send>(_: T) {}
/// let peer = coeval::Peer::host("demo").open().unwrap();
/// send(peer.enter(peer.context()));
/// ```
#[derive(Debug)]
#[must_use = "the context is left as soon as this is dropped"]
pub struct Entered {
    number: u64,
    /// A raw pointer is neither `Send` nor `Sync`.
    _of_this_thread: PhantomData<*const ()>,
}

impl Entered {
    pub(crate) fn new(context: Context) -> Self {
        let number = NEXT.get();
        NEXT.set(number + 1);
        ENTERED.with_borrow_mut(|entered| entered.push((number, context)));
        Self { number, _of_this_thread: PhantomData }
    }
}

impl Drop for Entered {
    /// Leaves this context, whatever was entered since and is not left yet.
    fn drop(&mut self) {
        // At the end of the thread its list may be gone already: then there is nothing to leave.
        let _ = ENTERED.try_with(|entered| entered.borrow_mut().retain(|(number, _)| *number != self.number));
    }
}

#[cfg(test)]
mod tests {
    use super::current;
    use crate::{Peer, SimTime};

    #[test]
    fn the_innermost_context_is_current_and_each_thread_has_its_own() {
        let peer = Peer::host("a").open().unwrap();
        assert_eq!(current(), None);
        let outer = peer.context();
        let entered = peer.enter(outer);
        let inner = outer.at(SimTime::from_secs_nanos(7, 0));
        {
            let _entered = peer.enter(inner);
            assert_eq!(current(), Some(inner));
            assert_eq!(std::thread::spawn(current).join().unwrap(), None);
        }
        assert_eq!(current(), Some(outer));
        drop(entered);
        assert_eq!(current(), None);
    }

    #[test]
    fn an_entered_context_stands_still_and_reads_no_clock() {
        let peer = Peer::host("a").rate(1e6).open().unwrap();
        let _entered = peer.enter(peer.context());
        let first = current();
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert_eq!(current(), first);
        assert!(peer.context().sim > first.unwrap().sim);
    }

    #[test]
    fn contexts_left_out_of_order_leave_the_others_entered() {
        let peer = Peer::host("a").open().unwrap();
        let contexts = [1, 2, 3].map(|s| peer.context().at(SimTime::from_secs_nanos(s, 0)));
        let [one, two, three] = contexts.map(|context| peer.enter(context));
        drop(two);
        assert_eq!(current(), Some(contexts[2]));
        drop(three);
        assert_eq!(current(), Some(contexts[0]));
        drop(one);
        assert_eq!(current(), None);
    }
}
