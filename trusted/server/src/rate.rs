//! How often one key may be used.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::keys::KeyId;

const SECOND: Duration = Duration::from_secs(1);

/// A rate for each key: the generic cell rate algorithm, which needs one
/// instant a key. A key that was idle for a second may send a second's worth
/// at once.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    /// The time between two requests at the full rate; none is no bound.
    interval: Option<Duration>,
    /// When each key's debt is paid. Bounded by the number of keys.
    paid: Mutex<HashMap<KeyId, Instant>>,
}

impl RateLimiter {
    /// `rate` is in requests a second; 0 is no bound.
    pub(crate) fn new(rate: u32) -> Self {
        Self { interval: SECOND.checked_div(rate), paid: Mutex::default() }
    }

    /// Counts one request of `key`.
    ///
    /// # Errors
    ///
    /// How long to wait, if there were too many. A refused request does not count.
    pub(crate) fn count(&self, key: KeyId, now: Instant) -> Result<(), Duration> {
        let Some(interval) = self.interval else { return Ok(()) };
        let mut paid = self.paid.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = paid.entry(key).or_insert(now);
        let debt = entry.saturating_duration_since(now) + interval;
        if debt > SECOND {
            return Err(debt - SECOND);
        }
        *entry = now + debt;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_of_requests_at_once_then_at_the_rate() {
        let limiter = RateLimiter::new(10);
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let burst = |key, now| (0..20).filter(|_| limiter.count(KeyId(key), now).is_ok()).count();
        assert_eq!(burst(1, at(0)), 10);
        assert_eq!(burst(2, at(0)), 10, "keys do not share");
        let wait = limiter.count(KeyId(1), at(0)).unwrap_err();
        assert_eq!(wait, Duration::from_millis(100));
        assert_eq!(burst(1, at(100)), 1);
        assert_eq!(burst(1, at(350)), 2);
        assert_eq!(burst(1, at(10_000)), 10, "no more than a second is saved up");

        let unbounded = RateLimiter::new(0);
        assert!((0..1000).all(|_| unbounded.count(KeyId(1), start).is_ok()));
    }
}
