//! Faults at chosen durable steps: writes of the engine and of the pins, counted together.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use cl_kv::{Batch, Engine, Entry, Error, Scan, Stored};
use cl_receipt_store::pin::{NotAdvanced, Pin, PinFailed};

/// What happens at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Action {
    /// The process ends before the step.
    Kill,
    /// The process ends after the step.
    KillAfter,
    /// The step fails and has no effect.
    Fail,
    /// The step fails and has its effect.
    FailAfter,
    /// The step takes a while.
    Delay,
}

impl Action {
    pub(crate) const ALL: [Self; 5] = [
        Self::Kill,
        Self::KillAfter,
        Self::Fail,
        Self::FailAfter,
        Self::Delay,
    ];
}

/// What the end of the process is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Death {
    /// Nothing can be read or written any more.
    #[default]
    Pretended,
    /// The real one.
    Real,
}

/// What is to fail, and what did.
#[derive(Debug, Default)]
pub(crate) struct Failpoints {
    death: Death,
    state: Mutex<State>,
    /// Told when reads are held no more.
    released: Condvar,
}

#[derive(Debug, Default)]
struct State {
    step: u64,
    plan: BTreeMap<u64, Action>,
    done: Vec<Action>,
    is_dead: bool,
    last_before_reads_fail: Option<Action>,
    are_pins_down: bool,
    are_reads_held: bool,
    held_reads: usize,
    chunks_read: u64,
}

impl Failpoints {
    pub(crate) fn new(death: Death, plan: BTreeMap<u64, Action>) -> Self {
        let state = State {
            plan,
            ..State::default()
        };
        Self {
            death,
            state: Mutex::new(state),
            released: Condvar::new(),
        }
    }

    /// Plans what happens `later` steps after the next one.
    pub(crate) fn plan(&self, later: u64, action: Action) {
        let mut state = self.state();
        let step = state.step + later;
        state.plan.insert(step, action);
    }

    /// Once this has happened, the engine reads nothing.
    pub(crate) fn fail_reads_after(&self, action: Action) {
        self.state().last_before_reads_fail = Some(action);
    }

    /// The engine reads again.
    pub(crate) fn heal_reads(&self) {
        self.state().last_before_reads_fail = None;
    }

    /// From now on, or not any more, no pin is written.
    pub(crate) fn set_pins_down(&self, are_down: bool) {
        self.state().are_pins_down = are_down;
    }

    /// From now on, or not any more, reads of many records wait.
    pub(crate) fn hold_reads(&self, are_held: bool) {
        self.state().are_reads_held = are_held;
        self.released.notify_all();
    }

    /// How many reads of many records wait.
    pub(crate) fn held_reads(&self) -> usize {
        self.state().held_reads
    }

    /// How many reads of many records there were.
    pub(crate) fn chunks_read(&self) -> u64 {
        self.state().chunks_read
    }

    fn read_chunk(&self) {
        let mut state = self.state();
        state.held_reads += 1;
        while state.are_reads_held {
            state = self.released.wait(state).unwrap();
        }
        state.held_reads -= 1;
        state.chunks_read += 1;
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.state().is_dead
    }

    /// What happened so far.
    pub(crate) fn done(&self) -> Vec<Action> {
        self.state().done.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Takes a durable step, or what happens instead.
    fn step<T, E>(&self, step: impl FnOnce() -> Result<T, E>, failed: E) -> Result<T, E> {
        let action = {
            let mut state = self.state();
            if state.is_dead {
                return Err(failed);
            }
            let number = state.step;
            state.step += 1;
            let action = state.plan.remove(&number);
            state.done.extend(action);
            action
        };
        match action {
            None => step(),
            Some(Action::Delay) => {
                thread::sleep(Duration::from_millis(3));
                step()
            }
            Some(Action::Fail) => Err(failed),
            Some(Action::FailAfter) => {
                step()?;
                Err(failed)
            }
            Some(Action::Kill) => {
                self.die();
                Err(failed)
            }
            Some(Action::KillAfter) => {
                let _unheard = step();
                self.die();
                Err(failed)
            }
        }
    }

    fn die(&self) {
        match self.death {
            Death::Pretended => self.state().is_dead = true,
            Death::Real => std::process::abort(),
        }
    }

    fn read(&self) -> Result<(), Error> {
        let state = self.state();
        let last = state.last_before_reads_fail;
        let are_down = last.is_some_and(|last| state.done.contains(&last));
        if state.is_dead || are_down {
            return Err(unavailable());
        }
        Ok(())
    }
}

fn injected() -> io::Error {
    io::Error::other("injected fault")
}

fn unavailable() -> Error {
    Error::Unavailable(Arc::new(injected()))
}

/// An engine that fails as planned.
pub(crate) struct Failing<E> {
    pub(crate) engine: E,
    pub(crate) points: Arc<Failpoints>,
}

impl<E: Engine> Engine for Failing<E> {
    fn get(&self, key: &[u8]) -> Result<Option<Stored>, Error> {
        self.points.read()?;
        self.engine.get(key)
    }

    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Stored>>, Error> {
        self.points.read()?;
        self.points.read_chunk();
        self.engine.get_many(keys)
    }

    fn scan(&self, scan: &Scan) -> Result<Vec<Entry>, Error> {
        self.points.read()?;
        self.engine.scan(scan)
    }

    fn apply(&self, batch: Batch) -> Result<(), Error> {
        self.points.step(|| self.engine.apply(batch), unavailable())
    }

    fn apply_many(&self, batches: Vec<Batch>) -> Vec<Result<(), Error>> {
        batches.into_iter().map(|batch| self.apply(batch)).collect()
    }

    fn purge(&self) -> Result<(), Error> {
        self.engine.purge()
    }
}

/// Pins that fail as planned.
pub(crate) struct FailingPin {
    pub(crate) pin: Arc<dyn Pin>,
    pub(crate) points: Arc<Failpoints>,
}

impl FailingPin {
    fn check(&self, are_down: bool) -> Result<(), PinFailed> {
        if are_down {
            return Err(injected().into());
        }
        Ok(())
    }
}

impl Pin for FailingPin {
    fn read(&self, origin: &str) -> Result<Option<String>, PinFailed> {
        self.check(self.points.is_dead())?;
        self.pin.read(origin)
    }

    fn advance(&self, origin: &str, from: Option<&str>, to: &str) -> Result<(), NotAdvanced> {
        self.check(self.points.state().are_pins_down)?;
        let failed = PinFailed::from(injected()).into();
        let advance = || self.pin.advance(origin, from, to);
        self.points.step(advance, failed)
    }

    fn origins(&self) -> Result<Vec<String>, PinFailed> {
        self.check(self.points.is_dead())?;
        self.pin.origins()
    }

    fn probe(&self) -> Result<(), PinFailed> {
        self.check(self.points.state().are_pins_down)?;
        self.points.step(|| self.pin.probe(), injected().into())
    }
}

/// Pins in memory. Clones are handles to the same ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryPin(Arc<Mutex<BTreeMap<String, String>>>);

impl MemoryPin {
    /// Loses a pin, as no store does.
    pub(crate) fn lose(&self, origin: &str) {
        self.0.lock().unwrap().remove(origin).expect("a pin");
    }

    /// The pins as they are now, apart from these.
    pub(crate) fn copy(&self) -> Self {
        Self(Arc::new(Mutex::new(self.0.lock().unwrap().clone())))
    }
}

impl Pin for MemoryPin {
    fn read(&self, origin: &str) -> Result<Option<String>, PinFailed> {
        Ok(self.0.lock().unwrap().get(origin).cloned())
    }

    fn advance(&self, origin: &str, from: Option<&str>, to: &str) -> Result<(), NotAdvanced> {
        let mut pins = self.0.lock().unwrap();
        if pins.get(origin).map(String::as_str) != from {
            return Err(NotAdvanced::Moved);
        }
        pins.insert(origin.to_owned(), to.to_owned());
        Ok(())
    }

    fn origins(&self) -> Result<Vec<String>, PinFailed> {
        Ok(self.0.lock().unwrap().keys().cloned().collect())
    }

    fn probe(&self) -> Result<(), PinFailed> {
        Ok(())
    }
}
