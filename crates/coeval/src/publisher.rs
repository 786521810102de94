//! Publishing by dead reckoning: send only when what readers predict is off.
use crate::entity::Param;
use crate::{Error, Result};
use coeval_motion::{Decision, Reason, Thresholds};
use coeval_time::{Context, Direction, Epoch, Stamp, WallDuration};
use coeval_value::Motion;

/// When a motion is sent again.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PublishOptions {
    /// Euclidean position error that readers may see, m.
    pub threshold_m: f64,
    /// Rotation error that readers may see, rad.
    pub threshold_rad: f64,
    /// Sent again after this much wall time in any case, so that readers know the author lives.
    pub heartbeat: WallDuration,
    /// Never sent more often than this, wall time.
    pub min_interval: WallDuration,
    /// Whether to go on over a newer write by another peer (else the publisher yields and reports it).
    pub reclaim: bool,
}

impl Default for PublishOptions {
    /// The defaults of IEEE 1278.1: 1 m, 3 degrees, 5 s.
    fn default() -> Self {
        Self {
            threshold_m: 1.0,
            threshold_rad: 3.0_f64.to_radians(),
            heartbeat: WallDuration::from_secs(5),
            min_interval: WallDuration::ZERO,
            reclaim: true,
        }
    }
}

/// What an update did.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Published {
    /// Readers' prediction is good enough: nothing was sent. Local readers see the truth.
    Held,
    /// It was sent.
    Sent {
        /// Why.
        reason: Reason,
        /// With which stamp.
        stamp: Stamp,
    },
    /// Another peer has written since: the truth kept here was dropped. With [`PublishOptions::reclaim`] the next
    /// update writes over it.
    Overwritten {
        /// The write that came between.
        by: Stamp,
    },
}

/// Publishes the truth of one motion, threshold by threshold.
pub struct Publisher {
    param: Param<Motion>,
    inner: coeval_motion::Publisher,
    options: PublishOptions,
    /// The newest write that this publisher knows of.
    known: Option<Stamp>,
    /// The branch of time that it last sent on.
    branch: Option<(Epoch, Direction)>,
}

impl Drop for Publisher {
    /// Local readers see what all others see.
    fn drop(&mut self) {
        self.param.inner().drop_truth();
    }
}

impl Publisher {
    pub(crate) fn new(param: Param<Motion>, options: PublishOptions) -> Self {
        let thresholds = Thresholds {
            position: options.threshold_m,
            angle: options.threshold_rad,
            heartbeat: options.heartbeat,
            min_interval: options.min_interval,
        };
        Self { param, inner: coeval_motion::Publisher::new(thresholds), options, known: None, branch: None }
    }

    /// Takes the exact motion at the context's sim time; sends it when readers' prediction is off or the heartbeat is
    /// due. Local readers see the truth either way.
    ///
    /// # Errors
    /// A motion that is not finite is refused; the entity may be deleted; the peer may have left.
    pub fn update(&mut self, context: Context, truth: Motion) -> Result<Published> {
        self.param.shared().check_writable()?;
        self.param.shared().check_context(context)?;
        let register = self.param.inner().read_register(context);
        if let (Ok(register), Some(known)) = (&register, self.known)
            && register.stamp > known
        {
            // Somebody else wrote after this publisher: its own truth no longer speaks for the motion. One that yields
            // says so at every update.
            if self.options.reclaim {
                self.known = Some(register.stamp);
            }
            return Ok(Published::Overwritten { by: register.stamp });
        }
        let branch = (context.epoch, context.direction);
        let turned = self.branch.is_some_and(|sent| sent != branch);
        let predicted = register.as_ref().ok().map(|reading| &reading.value);
        let decision = match self.inner.decide(&truth, predicted, context.wall) {
            // After a jump or a turn, readers interpolate or hold from what their own histories happen to keep: only a
            // sample of the new branch makes them agree.
            Decision::Keep { .. } if turned => Decision::Publish(Reason::Turned),
            decision => decision,
        };
        match decision {
            Decision::Refuse => Err(Error::invalid("a motion to be published must be finite")),
            Decision::Keep { .. } | Decision::Wait(_) => {
                self.param.inner().set_truth(context, &truth);
                Ok(Published::Held)
            }
            Decision::Publish(reason) => {
                let stamp = self.param.inner().set(context, truth)?;
                self.inner.sent(context.wall);
                self.known = Some(stamp);
                self.branch = Some(branch);
                Ok(Published::Sent { reason, stamp })
            }
        }
    }

    /// The options it was made with.
    pub fn options(&self) -> PublishOptions {
        self.options
    }
}
