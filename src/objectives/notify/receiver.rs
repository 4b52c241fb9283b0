//! Who is told: an address, and a name that holds no secret.

use std::fmt;

use sha2::{Digest, Sha256};
use url::Url;

use super::error::NotifyError;

/// How a receiver is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// How everything stands, again and again (Alertmanager's API, version 2).
    Alertmanager,
    /// Each change once (Standard Webhooks).
    Webhook,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Alertmanager => "alertmanager",
            Self::Webhook => "webhook",
        }
    }

    const fn setting(self) -> &'static str {
        match self {
            Self::Alertmanager => "--alertmanager",
            Self::Webhook => "--webhook",
        }
    }
}

/// Somebody who is told.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Receiver {
    /// Kind, host and a digest of the address without its user: the same after a password has changed.
    pub(super) id: String,
    pub(super) kind: Kind,
    /// Where; may hold a password or a token.
    pub(super) url: Url,
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)
    }
}

/// Reads the addresses of one setting.
///
/// # Errors
/// [`NotifyError::Address`].
pub(super) fn read(kind: Kind, addresses: &[String]) -> Result<Vec<Receiver>, NotifyError> {
    let refuse = |at: usize, reason: String| NotifyError::Address { setting: kind.setting(), position: at + 1, reason };
    let mut receivers: Vec<Receiver> = Vec::new();
    for (at, text) in addresses.iter().enumerate() {
        let url: Url = text.parse().map_err(|error| refuse(at, format!("cannot be read ({error}); give a URL")))?;
        let Some(host) = url.host_str().filter(|_| matches!(url.scheme(), "http" | "https")) else {
            return Err(refuse(at, "must begin with http:// or https:// and name a host".to_owned()));
        };
        let port = url.port_or_known_default().unwrap_or_default();
        let id = format!("{}:{host}:{port}#{}", kind.name(), digest(&url));
        if receivers.iter().all(|receiver| receiver.id != id) {
            receivers.push(Receiver { id, kind, url });
        }
    }
    Ok(receivers)
}

/// Tells two addresses of one host apart without showing either.
fn digest(url: &Url) -> String {
    let mut digest = Sha256::new();
    digest.update(url.scheme());
    digest.update(url.path());
    digest.update(url.query().unwrap_or_default());
    hex::encode(&digest.finalize()[..4])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(address: &str) -> Receiver {
        read(Kind::Webhook, &[address.to_owned()]).expect("an address").remove(0)
    }

    #[test]
    fn names_tell_addresses_apart_and_hold_no_secret() {
        let receiver = one("https://me:hunter2@hooks.example/services/T0KEN?sig=S3CRET");
        assert!(receiver.id.starts_with("webhook:hooks.example:443#"), "{}", receiver.id);
        for text in [receiver.id.clone(), format!("{receiver:?}")] {
            assert!(!["hunter2", "T0KEN", "S3CRET", "me"].iter().any(|secret| text.contains(secret)), "{text}");
        }
        assert_eq!(receiver.id, one("https://me:changed@hooks.example/services/T0KEN?sig=S3CRET").id);
        assert_ne!(receiver.id, one("https://hooks.example/services/OTHER").id);
    }

    #[test]
    fn a_bad_address_is_named_by_its_place_and_not_shown() {
        for bad in ["hunter2", "ftp://hunter2@host/", "http://"] {
            let addresses = ["http://a".to_owned(), bad.to_owned()];
            let told = read(Kind::Alertmanager, &addresses).expect_err("refused").to_string();
            assert!(told.contains("number 2 of --alertmanager") && !told.contains("hunter2"), "{told}");
        }
    }

    #[test]
    fn an_address_given_twice_is_one_receiver() {
        let twice = ["http://a:9093".to_owned(), "http://a:9093/".to_owned(), "http://b:9093".to_owned()];
        assert_eq!(read(Kind::Alertmanager, &twice).expect("addresses").len(), 2);
    }
}
