//! The memory that all listeners share: bytes are reserved while they are read and given back when the call ends, so
//! that many large requests at one time are refused rather than held.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use metrics::gauge;

use super::intake::Refusal;
use super::limits::{ByteLimit, Limits};

/// Bytes that may be in flight at one time. Clones share one account.
#[derive(Debug, Clone)]
pub struct Budget {
    account: Arc<Account>,
}

#[derive(Debug)]
struct Account {
    used: AtomicUsize,
    limit: ByteLimit,
    retry_after: Duration,
}

impl Budget {
    /// An empty account of `limits.in_flight`, but never less than the largest single request needs: a smaller one
    /// would refuse that request for ever while promising that a retry helps.
    pub fn new(limits: &Limits) -> Self {
        let largest = limits.grpc_message.bytes.max(limits.http_body.bytes).max(limits.records_body.bytes);
        let bytes = limits.in_flight.bytes.max(largest.saturating_mul(REQUEST_COPIES));
        let account = Account {
            used: AtomicUsize::new(0),
            limit: limits.in_flight.with_bytes(bytes),
            retry_after: limits.retry_after,
        };
        Self { account: Arc::new(account) }
    }

    /// Opens an empty reservation for one request.
    pub fn reserve(&self) -> Reservation {
        Reservation { account: Arc::clone(&self.account), held: AtomicUsize::new(0) }
    }

    /// Bytes reserved now.
    pub fn used(&self) -> usize {
        self.account.used.load(Ordering::Relaxed)
    }
}

/// How often the bytes of one request can be held at one time: as received, decompressed, and split or decoded.
const REQUEST_COPIES: usize = 3;

/// The bytes one request holds; dropping it gives them back.
#[derive(Debug)]
pub struct Reservation {
    account: Arc<Account>,
    held: AtomicUsize,
}

impl Reservation {
    /// Takes `bytes` more.
    ///
    /// # Errors
    /// `Refusal::Overloaded` where all requests together would exceed the limit, `Refusal::Invalid` where this one
    /// would do so alone, since a retry cannot help it.
    pub fn grow(&self, bytes: usize) -> Result<(), Refusal> {
        let account = &self.account;
        if self.held.load(Ordering::Relaxed).saturating_add(bytes) > account.limit.bytes {
            return Err(self.never_fits());
        }
        let room = |used: usize| used.checked_add(bytes).filter(|total| *total <= account.limit.bytes);
        if account.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).is_err() {
            return Err(self.refusal());
        }
        self.held.fetch_add(bytes, Ordering::Relaxed);
        gauge!("tracejoin_receive_in_flight_bytes").increment(bytes as f64);
        Ok(())
    }

    fn never_fits(&self) -> Refusal {
        let ByteLimit { bytes, setting, .. } = self.account.limit;
        let message = format!(
            "the request alone takes more memory than the {bytes} bytes that all requests may hold: send smaller \
             batches or raise {setting}"
        );
        Refusal::Invalid { message }
    }

    fn refusal(&self) -> Refusal {
        let ByteLimit { bytes, subject, setting } = self.account.limit;
        Refusal::Overloaded {
            message: format!("{subject} has reached its limit of {bytes} bytes ({setting}): try again"),
            retry_after: self.account.retry_after,
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let held = *self.held.get_mut();
        self.account.used.fetch_sub(held, Ordering::Relaxed);
        gauge!("tracejoin_receive_in_flight_bytes").decrement(held as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small_budget() -> Budget {
        let limits = Limits::default();
        let tiny = |limit: ByteLimit| limit.with_bytes(10);
        Budget::new(&Limits {
            grpc_message: tiny(limits.grpc_message),
            http_body: tiny(limits.http_body),
            records_body: tiny(limits.records_body),
            in_flight: limits.in_flight.with_bytes(100),
            ..limits
        })
    }

    #[test]
    fn what_is_dropped_is_given_back() {
        let budget = small_budget();
        let first = budget.reserve();
        first.grow(60).expect("there is room for 60 of 100");
        first.grow(40).expect("there is room for all 100");
        assert_eq!(budget.used(), 100);
        drop(first);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn over_the_limit_is_refused_with_its_setting_and_holds_nothing() {
        let budget = small_budget();
        let first = budget.reserve();
        first.grow(90).expect("there is room for 90 of 100");
        let second = budget.reserve();
        let refusal = second.grow(11).expect_err("101 of 100 bytes");
        assert!(matches!(&refusal, Refusal::Overloaded { retry_after, .. } if *retry_after > Duration::ZERO));
        assert!(refusal.to_string().contains("100 bytes (--max-in-flight-bytes)"), "{refusal}");
        assert_eq!(budget.used(), 90);
    }

    #[test]
    fn what_never_fits_is_refused_for_good() {
        let alone = small_budget().reserve();
        assert!(
            matches!(alone.grow(101), Err(Refusal::Invalid { message }) if message.contains("--max-in-flight-bytes"))
        );
    }

    #[test]
    fn a_limit_below_one_request_is_raised_to_it() {
        let limits = Limits::default();
        let budget = Budget::new(&Limits { in_flight: limits.in_flight.with_bytes(1), ..limits.clone() });
        let only = budget.reserve();
        assert_eq!(only.grow(limits.records_body.bytes * REQUEST_COPIES), Ok(()));
    }
}
