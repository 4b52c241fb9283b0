//! The gateway's own GPUs: slots that are given out in the order of asking.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use model::Nanos;

/// When each slot is free again, from the start of the play.
pub struct Pool(BinaryHeap<Reverse<Nanos>>);

impl Pool {
    /// When a slot that is away is free again, until it is given back.
    pub const NEVER: Nanos = Nanos(i64::MAX);

    /// All of them free.
    pub fn new(slots: usize) -> Self {
        Self((0..slots).map(|_| Reverse(Nanos::ZERO)).collect())
    }

    /// Holds the slots that are free first.
    pub fn take(&mut self, slots: usize, until: Nanos) {
        for _ in 0..slots {
            self.0.pop();
        }
        self.0.extend((0..slots).map(|_| Reverse(until)));
    }

    /// Lets go of those that are held for good.
    pub fn give_back(&mut self, now: Nanos) {
        let slots = std::mem::take(&mut self.0).into_iter();
        self.0 = slots.map(|Reverse(free)| Reverse(if free == Self::NEVER { now } else { free })).collect();
    }

    /// When the next slot is free.
    pub fn free_from(&self) -> Nanos {
        self.0.peek().map_or(Self::NEVER, |Reverse(free)| *free)
    }

    /// Takes the slot that is free first.
    pub fn occupy(&mut self, until: Nanos) {
        self.0.pop();
        self.0.push(Reverse(until));
    }
}
