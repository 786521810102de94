//! Stamps, writers and epochs of one body: each written as its difference from the one before.
//!
//! Writers and epochs are few and long, so they get numbers in order of first use; a number used for the first time is
//! followed by its content. Epoch 0 is the genesis.
use super::BodyError;
use super::bytes::{Reader, put_signed, put_varint};
use coeval_time::{EditId, Epoch, Incarnation, Stamp, WallTime};
use std::collections::BTreeMap;

/// What the encoder has written so far.
#[derive(Default)]
pub(super) struct Writing {
    writers: BTreeMap<Incarnation, u64>,
    epochs: BTreeMap<Epoch, u64>,
    hlc: u64,
    writer: Option<Incarnation>,
    epoch: Epoch,
}

/// What the decoder has read so far.
#[derive(Default)]
pub(super) struct Reading {
    writers: Vec<Incarnation>,
    epochs: Vec<Epoch>,
    hlc: u64,
    writer: Option<Incarnation>,
    epoch: Epoch,
}

impl Writing {
    /// Whether the previous stamp had the same writer.
    pub(super) fn same_writer(&self, writer: Incarnation) -> bool {
        self.writer == Some(writer)
    }

    /// Whether the previous leaf had the same epoch.
    pub(super) fn same_epoch(&self, epoch: Epoch) -> bool {
        self.epoch == epoch
    }

    /// A stamp of any writer.
    pub(super) fn stamp(&mut self, out: &mut Vec<u8>, stamp: Stamp) {
        self.hlc(out, stamp.hlc);
        self.writer(out, stamp.writer);
    }

    /// The nanoseconds alone. The difference wraps, so every pair of stamps has exactly one.
    pub(super) fn hlc(&mut self, out: &mut Vec<u8>, hlc: u64) {
        put_signed(out, hlc.wrapping_sub(self.hlc).cast_signed());
        self.hlc = hlc;
    }

    pub(super) fn writer(&mut self, out: &mut Vec<u8>, writer: Incarnation) {
        self.writer = Some(writer);
        let next = self.writers.len() as u64;
        let number = *self.writers.entry(writer).or_insert(next);
        put_varint(out, number);
        if number == next {
            out.extend_from_slice(&writer.0.to_le_bytes());
        }
    }

    pub(super) fn epoch(&mut self, out: &mut Vec<u8>, epoch: Epoch) {
        self.epoch = epoch;
        if epoch == Epoch::GENESIS {
            return put_varint(out, 0);
        }
        let next = self.epochs.len() as u64 + 1;
        let number = *self.epochs.entry(epoch).or_insert(next);
        put_varint(out, number);
        if number == next {
            let EditId { stamp, index } = epoch.jump;
            out.extend_from_slice(&epoch.at.as_nanos().to_le_bytes());
            out.extend_from_slice(&stamp.hlc.to_le_bytes());
            out.extend_from_slice(&stamp.writer.0.to_le_bytes());
            put_varint(out, index.into());
        }
    }
}

impl Reading {
    pub(super) fn stamp(&mut self, from: &mut Reader<'_>) -> Result<Stamp, BodyError> {
        let hlc = self.hlc(from)?;
        let writer = self.writer(from)?;
        Ok(Stamp { hlc, writer })
    }

    pub(super) fn hlc(&mut self, from: &mut Reader<'_>) -> Result<u64, BodyError> {
        self.hlc = self.hlc.wrapping_add_signed(from.signed()?);
        Ok(self.hlc)
    }

    /// The writer of the previous stamp, where the flags say that this one has the same.
    pub(super) fn last_writer(&self, from: &Reader<'_>) -> Result<Incarnation, BodyError> {
        self.writer.ok_or_else(|| from.malformed("writer: the same as none"))
    }

    /// The epoch of the previous leaf.
    pub(super) fn last_epoch(&self) -> Epoch {
        self.epoch
    }

    /// A writer that differs from the previous stamp's.
    pub(super) fn other_writer(&mut self, from: &mut Reader<'_>) -> Result<Incarnation, BodyError> {
        let before = self.writer;
        let writer = self.writer(from)?;
        if before == Some(writer) { Err(from.not_canonical("writer")) } else { Ok(writer) }
    }

    fn writer(&mut self, from: &mut Reader<'_>) -> Result<Incarnation, BodyError> {
        let number = from.varint()?;
        let known = usize::try_from(number).ok().and_then(|n| self.writers.get(n)).copied();
        let writer = match known {
            Some(writer) => writer,
            None if number == self.writers.len() as u64 => {
                let writer = Incarnation(from.u64()?);
                self.writers.push(writer);
                writer
            }
            None => return Err(from.range("writer number")),
        };
        self.writer = Some(writer);
        Ok(writer)
    }

    /// An epoch that differs from the previous leaf's.
    pub(super) fn other_epoch(&mut self, from: &mut Reader<'_>) -> Result<Epoch, BodyError> {
        let number = from.varint()?;
        let known = usize::try_from(number).ok().and_then(|n| self.epochs.get(n.checked_sub(1)?)).copied();
        let epoch = match (number, known) {
            (0, _) => Epoch::GENESIS,
            (_, Some(epoch)) => epoch,
            (n, None) if n == self.epochs.len() as u64 + 1 => {
                let at = WallTime::from_nanos(from.u64()?);
                let stamp = Stamp::new(from.u64()?, Incarnation(from.u64()?));
                let epoch = Epoch { at, jump: EditId { stamp, index: from.u32("index of an edit")? } };
                self.epochs.push(epoch);
                epoch
            }
            _ => return Err(from.range("epoch number")),
        };
        if epoch == self.epoch {
            return Err(from.not_canonical("epoch"));
        }
        self.epoch = epoch;
        Ok(epoch)
    }
}
