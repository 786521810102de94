//! A publisher's exact value, beside the register it publishes to.
//!
//! The truth names the stamp of the register it belongs to: a newer write, by whomever, drops it without a further step.
use crate::cell::Cell;
use crate::epochs::Epochs;
use crate::layout::{Buffer, HEADER, Header, MAX_WIDTH};
use coeval_cell::RingCell;
use coeval_time::{Context, Stamp};
use coeval_value::SampleMeta;

/// Versions kept, so that a reader is hardly ever lapped by its publisher.
const SLOTS: usize = 4;

impl Cell {
    /// Keeps `words` of a value of `kind` as the truth at `context`, if the register holds a value.
    pub(crate) fn keep_truth(&self, context: &Context, kind: u8, words: &[u64], epochs: &Epochs) {
        let register = self.stamp();
        if register == Stamp::NONE {
            return;
        }
        let meta = SampleMeta {
            sim: context.sim,
            epoch: context.epoch,
            direction: context.direction,
            discontinuous: false,
        };
        let mut header = Header::new(register, &meta, epochs);
        (header.kind, header.words) = (kind, words.len() as u8);
        let mut sample: Buffer = [0; _];
        header.put(&mut sample);
        sample[HEADER..HEADER + words.len()].copy_from_slice(words);
        let truth = self.truth.get_or_init(|| Box::new(RingCell::new(MAX_WIDTH, SLOTS)));
        truth.lock().publish(&sample[..HEADER + words.len()]);
    }

    /// Drops the truth.
    pub(crate) fn drop_truth(&self) {
        if let Some(truth) = self.truth.get() {
            // No register has this stamp.
            truth.lock().publish(&[0; HEADER]);
        }
    }

    /// The truth over `register`, read into `sample`; `None`, and `sample` untouched, where there is none.
    #[inline]
    pub(crate) fn truth_over(&self, register: &Header, sample: &mut Buffer) -> Option<Header> {
        let truth = self.truth.get()?;
        let mut words: Buffer = [0; _];
        truth.read(&mut words)?;
        let header = Header::get(&words);
        if header.stamp != register.stamp {
            return None;
        }
        *sample = words;
        Some(header)
    }
}
