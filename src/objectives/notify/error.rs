//! What is wrong with the settings of receivers.

use thiserror::Error;

/// Why no receiver can be notified. No message holds an address or a key: they may be secret.
#[derive(Debug, Error)]
pub enum NotifyError {
    /// An address that cannot be used.
    #[error("the address number {position} of {setting} {reason}")]
    Address {
        setting: &'static str,
        /// Which of its addresses, from 1.
        position: usize,
        /// What is wrong with it, and what to give.
        reason: String,
    },
    /// The signing key cannot be used, or is not there.
    #[error(
        "--webhook-secret {0}; give whsec_ and 24 to 64 random bytes in base64, as `openssl rand -base64 32` makes"
    )]
    Secret(&'static str),
    /// No HTTP client can be made.
    #[error("cannot make an HTTP client")]
    Client(#[source] reqwest::Error),
}
