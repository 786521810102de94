//! Drafts: what people want of the clock, as the edits that do it.
use crate::{Clock, EditKind, SimDuration, SimTime, WallTime};

/// Why a draft would not do what was asked.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
pub enum DraftError {
    /// The target lies behind, in the direction the clock runs.
    #[error(
        "sim time is {sim} and runs at scale {scale}: it moves away from {target}; set a scale of the other sign first"
    )]
    Behind {
        /// Where the clock was to run to.
        target: SimTime,
        /// Where it is.
        sim: SimTime,
        /// The scale set.
        scale: f64,
    },
    /// The scale is zero.
    #[error("the scale is 0, so sim time never gets to {target}: set another scale first")]
    StandingStill {
        /// Where the clock was to run to.
        target: SimTime,
    },
}

impl Clock {
    /// The edits that run the clock, ending a pause or stop, until sim time is exactly `target`. Make them as one
    /// batch, all at `at`. Whatever happens to the rate meanwhile, it stops there.
    ///
    /// # Errors
    /// [`DraftError`] when the clock does not get there by the scale in effect at `at`.
    pub fn draft_run_until(&self, target: SimTime, at: WallTime) -> Result<Vec<EditKind>, DraftError> {
        let state = self.state(at);
        let (sim, scale) = (state.sim, state.segment.scale);
        let way = target.since(sim);
        if way == SimDuration::ZERO {
            return Ok(vec![EditKind::StopAt(target)]);
        }
        if scale == 0.0 {
            return Err(DraftError::StandingStill { target });
        }
        if way.is_negative() != (scale < 0.0) {
            return Err(DraftError::Behind { target, sim, scale });
        }
        // Resume first: in the other order, a stop that is reached already would be undone at once.
        Ok(vec![EditKind::Resume, EditKind::StopAt(target)])
    }

    /// The edits that run the clock by exactly `by` of sim time and stop it there: a single step.
    ///
    /// # Errors
    /// As [`draft_run_until`](Self::draft_run_until); `by` has the sign of the scale.
    pub fn draft_step(&self, by: SimDuration, at: WallTime) -> Result<Vec<EditKind>, DraftError> {
        self.draft_run_until(self.sim_at(at).saturating_add(by), at)
    }
}
