//! A client for streamed answers that measures what a person waits for, each part by itself.
//!
//! One request, one connection: DNS, connecting, TLS, sending, the answer's head, every event, the end. All times are of
//! one monotonic clock. `rules` and `watch` are pure; `dial` and `exchange` talk to the network. No text of a prompt or
//! an answer, no header's value and no address beyond its host is ever kept or shown.

mod client;
mod connection;
mod dial;
mod exchange;
mod failure;
mod observation;
mod rules;
mod stamps;
mod tls;
mod usage;
mod watch;

pub use client::{Client, Limits};
pub use exchange::{Request, identity};
pub use failure::{Failure, SetupError};
pub use observation::Observation;
pub use rules::{DoneRule, NoPointer, Rules, Sequence, TokenKind, pointer};
pub use tls::{HttpVersion, Trust};
pub use usage::Usage;
pub use watch::{Class, Seen};
