//! Sandboxes made ahead of time.
//!
//! A new sandbox is the same for every caller who asks for the same plan, until
//! a program starts in it. So some are kept ready: taking one costs nothing, and
//! the next is made behind the caller's back. No sandbox serves twice.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use wire::jail::Plan;

use super::lock;
use super::make::Made;

/// How many different plans are kept ready for.
const SHELVES: usize = 4;

/// Ready sandboxes, by the plan they were made to.
pub(super) struct Warm {
    /// How many of each plan.
    size: usize,
    /// The most recently asked for last.
    shelves: Mutex<Vec<Shelf>>,
}

struct Shelf {
    plan: Plan,
    ready: VecDeque<Made>,
    filling: bool,
}

impl Warm {
    pub(super) fn new(size: usize) -> Self {
        Self { size, shelves: Mutex::default() }
    }

    /// Takes a sandbox of this plan, if one is ready.
    pub(super) fn take(&self, plan: &Plan) -> Option<Made> {
        if !self.keeps(plan) {
            return None;
        }
        let mut old = Vec::new();
        let taken = {
            let mut shelves = lock(&self.shelves);
            let mut shelf = match shelves.iter().position(|shelf| same(&shelf.plan, plan)) {
                Some(at) => shelves.remove(at),
                None => Shelf { plan: plan.clone(), ready: VecDeque::new(), filling: false },
            };
            let mut taken = shelf.ready.pop_front();
            while taken.as_ref().is_some_and(|made| !made.is_alive()) {
                old.extend(std::mem::replace(&mut taken, shelf.ready.pop_front()));
            }
            shelves.push(shelf);
            if shelves.len() > SHELVES {
                old.extend(shelves.remove(0).ready);
            }
            taken
        };
        // Removed outside the lock.
        drop(old);
        taken
    }

    /// Makes what is missing of a plan, one after the other, in a task.
    pub(super) fn refill<F, Fut>(self: &Arc<Self>, plan: &Plan, make: F)
    where
        F: Fn() -> Fut + Send + 'static,
        Fut: Future<Output = Option<Made>> + Send,
    {
        if !self.keeps(plan) || !self.begin_filling(plan) {
            return;
        }
        let (warm, plan) = (Arc::clone(self), plan.clone());
        tokio::spawn(async move {
            while let Some(made) = make().await {
                if !warm.put(&plan, made) {
                    return;
                }
            }
            warm.end_filling(&plan);
        });
    }

    /// Removes all.
    pub(super) fn clear(&self) {
        let shelves = std::mem::take(&mut *lock(&self.shelves));
        drop(shelves);
    }

    /// A workspace is one caller's.
    fn keeps(&self, plan: &Plan) -> bool {
        self.size > 0 && plan.root.workspace.is_none()
    }

    fn begin_filling(&self, plan: &Plan) -> bool {
        let mut shelves = lock(&self.shelves);
        match shelves.iter_mut().find(|shelf| same(&shelf.plan, plan)) {
            Some(shelf) if !shelf.filling && shelf.ready.len() < self.size => {
                shelf.filling = true;
                true
            }
            _ => false,
        }
    }

    fn end_filling(&self, plan: &Plan) {
        if let Some(shelf) = lock(&self.shelves).iter_mut().find(|shelf| same(&shelf.plan, plan)) {
            shelf.filling = false;
        }
    }

    /// Adds one; says whether more are wanted.
    fn put(&self, plan: &Plan, made: Made) -> bool {
        let mut shelves = lock(&self.shelves);
        // A shelf that is gone meanwhile takes none: `made` is dropped, and so removed.
        let Some(shelf) = shelves.iter_mut().find(|shelf| same(&shelf.plan, plan)) else {
            return false;
        };
        shelf.ready.push_back(made);
        shelf.filling = shelf.ready.len() < self.size;
        shelf.filling
    }
}

/// Whether two plans make the same sandbox: all but their numbers.
fn same(a: &Plan, b: &Plan) -> bool {
    *a == Plan { number: a.number, ..b.clone() }
}
