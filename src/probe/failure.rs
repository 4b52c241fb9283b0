//! Why a request did not end well.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use model::ResultClass;

/// What went wrong with one request. No message holds text of the request or the answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Failure {
    /// The name has no address.
    #[error("the host's name has no address ({0})")]
    Dns(io::ErrorKind),
    /// No address could be connected to.
    #[error("cannot connect ({0})")]
    Connect(io::ErrorKind),
    /// The proxy refused, or cannot be used.
    #[error("the proxy {0}")]
    Proxy(&'static str),
    /// The handshake failed.
    #[error("TLS: {0}")]
    Tls(String),
    /// The connection broke before the answer's head had come.
    #[error("the connection broke before the answer")]
    NoAnswer,
    /// The connection broke in the answer.
    #[error("the connection broke in the answer")]
    Reset,
    /// The request took longer than allowed.
    #[error("timeout")]
    Timeout,
    /// The stream was silent for longer than allowed.
    #[error("stalled: the stream fell silent")]
    Stalled,
    /// An event said that the answer failed.
    #[error("an event of the stream says that the answer failed")]
    StreamError,
    /// A redirect that leads nowhere, or one too many.
    #[error("a redirect {0}")]
    Redirect(&'static str),
    /// The answer is compressed, though that was not asked for.
    #[error("the answer is compressed, though that was not asked for")]
    Encoded,
    /// The stream has more tokens than any answer.
    #[error("the stream has more than a million tokens")]
    TooMany,
}

impl Failure {
    /// A class of low cardinality, for the record.
    pub const fn class(&self) -> &'static str {
        match self {
            Self::Dns(_) => "dns",
            Self::Connect(io::ErrorKind::ConnectionRefused) => "connection_refused",
            Self::Connect(_) => "connect",
            Self::Proxy(_) => "proxy",
            Self::Tls(_) => "tls",
            Self::NoAnswer => "no_answer",
            Self::Reset => "reset",
            Self::Timeout => "timeout",
            Self::Stalled => "stalled",
            Self::StreamError => "stream_error",
            Self::Redirect(_) => "redirect",
            Self::Encoded => "encoded",
            Self::TooMany => "too_many_tokens",
        }
    }

    /// How a request with this failure ended; `begun` is whether a token had come.
    pub const fn result(&self, begun: bool) -> ResultClass {
        match self {
            Self::Timeout | Self::Stalled => ResultClass::Timeout,
            Self::Reset if begun => ResultClass::Truncated,
            _ => ResultClass::Error,
        }
    }
}

/// Why a client cannot be made.
#[derive(Debug, Error)]
pub enum SetupError {
    /// The file of certificates cannot be used.
    #[error("{}: {reason}; give a file with certificates in PEM form", path.display())]
    CaFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// There are no protocol versions that TLS could use.
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
}
