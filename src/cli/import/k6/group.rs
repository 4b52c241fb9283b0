//! Points gathered into requests. k6 writes the points of one request together, under one time and the same labels; how
//! many they are depends on its version, its thresholds and its extensions, and those of two requests may interleave.

use std::collections::VecDeque;

use super::point::{Labels, Part, Point};
use model::UnixNanos;

/// Points that may come between two of one request.
const STRETCH: u64 = 512;

/// The points of one request.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// When it ended.
    pub time: UnixNanos,
    /// The labels of each of its points.
    pub labels: Labels,
    parts: [Option<f64>; Part::COUNT],
    /// The number of the last point that was added.
    touched: u64,
}

impl Group {
    fn new(time: UnixNanos, labels: Labels) -> Self {
        Self { time, labels, parts: [None; Part::COUNT], touched: 0 }
    }

    /// One of its parts, in milliseconds or as a count.
    pub fn part(&self, part: Part) -> Option<f64> {
        self.parts[part as usize]
    }

    /// How many parts are there.
    pub fn size(&self) -> usize {
        self.parts.iter().flatten().count()
    }

    /// xk6-sse tells the start of a request by this one point at the time of the start.
    pub fn is_stream_start(&self) -> bool {
        self.size() == 1 && self.part(Part::Sending).is_some()
    }

    /// xk6-sse tells the end of a request by these three.
    pub fn is_stream_end(&self) -> bool {
        let parts = [Part::Count, Part::Sending, Part::Duration];
        self.size() == parts.len() && parts.into_iter().all(|part| self.part(part).is_some())
    }

    fn takes(&self, part: Part, point: &Point) -> bool {
        self.time == point.time && self.part(part).is_none() && self.labels == point.labels
    }
}

/// Groups to which points may still come, the one touched last at the end.
#[derive(Debug, Default)]
pub struct Groups {
    open: VecDeque<Group>,
    points: u64,
}

impl Groups {
    /// Adds a point to its request, and takes out those that are over.
    pub fn add(&mut self, part: Part, point: Point) -> Vec<Group> {
        self.points += 1;
        // The newest first: of two copies of a request the second is the one that goes on.
        let found = self.open.iter().rposition(|group| group.takes(part, &point));
        let mut group =
            found.and_then(|at| self.open.remove(at)).unwrap_or_else(|| Group::new(point.time, point.labels));
        group.parts[part as usize] = Some(point.value);
        group.touched = self.points;
        self.open.push_back(group);
        let mut over = Vec::new();
        while self.open.front().is_some_and(|group| self.points - group.touched >= STRETCH) {
            over.extend(self.open.pop_front());
        }
        over
    }

    /// All that are left at the file's end, and apart from them the one that the last point belongs to.
    pub fn finish(mut self) -> (Vec<Group>, Option<Group>) {
        let last = self.open.pop_back();
        (self.open.into(), last)
    }
}
