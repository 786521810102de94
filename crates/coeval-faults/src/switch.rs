//! Whether a fault is in: never, unless the feature `switch` is on and this thread put it in.
/// Whether a fault is put in: never in this build.
#[cfg(not(feature = "switch"))]
#[inline(always)]
pub const fn active(_fault: crate::Fault) -> bool {
    false
}

#[cfg(feature = "switch")]
mod on {
    use crate::Fault;
    use std::cell::Cell;

    thread_local! {
        /// Of this thread alone, so that several simulations run at once, each with its own fault.
        static IN: Cell<Option<Fault>> = const { Cell::new(None) };
    }

    /// Puts back what was in before, also when the closure panics.
    struct Restore(Option<Fault>);

    impl Drop for Restore {
        fn drop(&mut self) {
            IN.set(self.0);
        }
    }

    /// Whether this thread has put `fault` in.
    #[inline]
    pub fn active(fault: Fault) -> bool {
        IN.get() == Some(fault)
    }

    /// Runs `f` with `fault` in, on this thread, instead of any other.
    pub fn with<T>(fault: Fault, f: impl FnOnce() -> T) -> T {
        let _restore = Restore(IN.replace(Some(fault)));
        f()
    }

    /// Runs `f` with no fault in, whatever is in around it: who judges a faulty replica judges it by sound code.
    pub fn without<T>(f: impl FnOnce() -> T) -> T {
        let _restore = Restore(IN.replace(None));
        f()
    }
}

#[cfg(feature = "switch")]
pub use on::{active, with, without};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fault;

    #[test]
    #[cfg(not(feature = "switch"))]
    fn no_fault_is_ever_in_without_the_switch() {
        const NONE_IN: bool = active(Fault::ALL[0]);
        assert!(!NONE_IN && Fault::ALL.iter().all(|fault| !active(*fault)));
    }

    #[test]
    #[cfg(feature = "switch")]
    fn a_fault_is_in_while_its_closure_runs_on_its_thread_alone() {
        let (one, two) = (Fault::ALL[0], Fault::ALL[1]);
        let inside = with(one, || {
            let elsewhere = std::thread::spawn(move || active(one)).join().expect("no panic");
            let nested = with(two, || [active(one), active(two)]);
            (elsewhere, nested, without(|| active(one)), [active(one), active(two)])
        });
        assert_eq!(inside, (false, [false, true], false, [true, false]));
        let panicked = std::panic::catch_unwind(|| with(one, || panic!("on purpose")));
        assert!(panicked.is_err() && !active(one), "a panic leaves nothing behind");
    }
}
