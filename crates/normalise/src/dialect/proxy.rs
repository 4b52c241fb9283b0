//! What pure proxies have in common (design, section 3, rule 9).

use super::{Reading, Role};
use model::ServerPhase;

/// The server span: its own time outside its attempts is gateway time.
pub fn server(dialect: &'static str, rule: &'static str) -> Reading {
    Reading { role: Role::ProxyServer, phase: Some(ServerPhase::Gateway), ..Reading::of(dialect, rule) }
}

/// An attempt. Its phase depends on what lies inside it, which only the join sees.
pub fn attempt(dialect: &'static str, rule: &'static str) -> Reading {
    Reading { role: Role::ProxyAttempt, ..Reading::of(dialect, rule) }
}
