//! How many sandboxes there may be at once, and who waits for one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};

/// The right to have one sandbox. Clones are one right together, given back
/// when the last is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Slot(
    #[expect(dead_code, reason = "held for its drop")] Arc<OwnedSemaphorePermit>,
);

/// Why there is no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoSlot {
    /// All are taken, and so is the queue; or the wait was too long.
    Busy,
    /// None are given out any more.
    Closed,
}

/// All slots, and the bounded queue in front of them.
#[derive(Debug)]
pub(crate) struct Slots {
    free: Arc<Semaphore>,
    waiting: AtomicUsize,
    queue: usize,
    wait: Duration,
}

impl Slots {
    pub(crate) fn new(slots: usize, queue: usize, wait: Duration) -> Self {
        Self { free: Arc::new(Semaphore::new(slots)), waiting: AtomicUsize::new(0), queue, wait }
    }

    /// Takes a slot, waiting in the queue if there is room in it.
    ///
    /// # Errors
    ///
    /// [`NoSlot`], at once where waiting would not help.
    pub(crate) async fn enter(&self) -> Result<Slot, NoSlot> {
        match self.try_enter() {
            Err(NoSlot::Busy) => {}
            entered => return entered,
        }
        let room = |waiting| (waiting < self.queue).then_some(waiting + 1);
        self.waiting
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, room)
            .map_err(|_| NoSlot::Busy)?;
        // Also when this future is dropped because its client went away.
        let _place = Place(&self.waiting);
        match tokio::time::timeout(self.wait, Arc::clone(&self.free).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(Slot(Arc::new(permit))),
            Ok(Err(_)) => Err(NoSlot::Closed),
            Err(_) => Err(NoSlot::Busy),
        }
    }

    /// Takes a slot if one is free.
    ///
    /// # Errors
    ///
    /// [`NoSlot`].
    pub(crate) fn try_enter(&self) -> Result<Slot, NoSlot> {
        match Arc::clone(&self.free).try_acquire_owned() {
            Ok(permit) => Ok(Slot(Arc::new(permit))),
            Err(TryAcquireError::NoPermits) => Err(NoSlot::Busy),
            Err(TryAcquireError::Closed) => Err(NoSlot::Closed),
        }
    }

    /// Gives out no more slots, not to those in the queue either.
    pub(crate) fn close(&self) {
        self.free.close();
    }

    /// How many wait in the queue.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

/// A place in the queue.
struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn queue_is_bounded_in_length_and_time() {
        let slots = Arc::new(Slots::new(1, 1, Duration::from_secs(5)));
        let first = slots.enter().await.unwrap();
        let also_first = first.clone();
        let queued = tokio::spawn({
            let slots = Arc::clone(&slots);
            async move { slots.enter().await }
        });
        tokio::task::yield_now().await;
        assert_eq!(slots.waiting(), 1);
        // The queue is full: refused at once.
        assert_eq!(slots.enter().await.unwrap_err(), NoSlot::Busy);
        // A slot is free when all its clones are gone.
        drop(first);
        tokio::task::yield_now().await;
        assert_eq!(slots.waiting(), 1);
        drop(also_first);
        let held = queued.await.unwrap().unwrap();
        assert_eq!(slots.waiting(), 0);
        // A wait that is too long ends as busy, one that is given up leaves.
        assert_eq!(slots.enter().await.unwrap_err(), NoSlot::Busy);
        drop(tokio::time::timeout(Duration::from_secs(1), slots.enter()).await);
        assert_eq!(slots.waiting(), 0);
        slots.close();
        assert_eq!(slots.enter().await.unwrap_err(), NoSlot::Closed);
        drop(held);
        assert_eq!(slots.try_enter().unwrap_err(), NoSlot::Closed);
    }
}
