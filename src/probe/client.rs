//! What all requests of one probe have in common.

use std::sync::Arc;
use std::time::Duration;

use hyper_util::client::proxy::matcher::Matcher;
use rustls::ClientConfig;

use super::failure::SetupError;
use super::rules::Rules;
use super::tls::{self, HttpVersion, Trust};

/// When to give up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The whole of a request, setup and redirects included.
    pub total: Duration,
    /// Silence after the answer's head.
    pub stall: Duration,
    /// How many redirects are followed.
    pub redirects: u32,
}

/// How requests are made.
#[derive(Debug)]
pub struct Client {
    /// How answers are read.
    pub rules: Rules,
    /// When to give up.
    pub limits: Limits,
    pub(super) version: HttpVersion,
    pub(super) tls: Arc<ClientConfig>,
    pub(super) proxies: Matcher,
}

impl Client {
    /// A client that uses the proxies which the environment names.
    ///
    /// # Errors
    /// A file of certificates that cannot be used.
    pub fn new(rules: Rules, limits: Limits, trust: &Trust, version: HttpVersion) -> Result<Self, SetupError> {
        let tls = Arc::new(tls::config(trust, version)?);
        Ok(Self { rules, limits, version, tls, proxies: Matcher::from_env() })
    }
}
