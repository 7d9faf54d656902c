//! Witnesses: others who cosign a checkpoint only if it continues all that they have seen of the log.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use cl_tlog::{
    AddCheckpoint, NamedWitness, Policy, SignedCheckpoint, VerifierKey, WitnessAnswer, Witnesses,
};

use tokio::time::Instant;

use crate::core::routing::Tenant;
use crate::core::trees::Tree;
use crate::error::Error;
use crate::store::Store;
use crate::witness::{Witness, WitnessAway};

/// How often a witness may name another size than it was asked from.
const ATTEMPTS: usize = 4;

/// What callers are made to wait for without a rest after it.
const PATIENCE: Duration = Duration::from_secs(1);

/// Longer than any witness takes to answer or to fail.
const LIMIT: Duration = Duration::from_secs(30);

/// Why there is no quorum.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CosigningFailed {
    /// A witness did not answer.
    #[error(transparent)]
    Away(#[from] WitnessAway),
    /// A witness answered in no known form, or signed something else.
    #[error("a witness gave a wrong answer: {0}")]
    Malformed(#[from] cl_tlog::Error),
    /// A witness does not know the log, or not its key, or had another reason.
    #[error("a witness refused with HTTP status {0}")]
    Refused(u16),
    /// The newest checkpoint has not been cosigned yet.
    #[error("the newest checkpoint is not cosigned yet")]
    Pending,
}

/// Why a checkpoint was not cosigned.
#[derive(Debug)]
pub enum NotCosigned {
    /// A witness has seen a larger tree, of this size.
    Ahead(u64),
    /// A witness has seen a tree that this one does not continue.
    Inconsistent,
    /// Too few witnesses answered.
    Failed(CosigningFailed),
    /// The stored tiles give no proof.
    Unproven(Error),
}

/// The witnesses of all logs, and how many of them are needed. The default needs none.
#[derive(Default)]
pub struct Cosigning {
    asked: Vec<Arc<Asked>>,
    quorum: Witnesses,
    /// Held while witnesses are asked, so that a checkpoint is sent once.
    asking: Mutex<Asking>,
}

/// How asking went last.
#[derive(Default)]
struct Asking {
    /// Until when nobody is asked, after witnesses that were long silent.
    rests_until: Option<Instant>,
}

/// Whether to wait for an answer that another caller is getting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The committer does.
    Yes,
    /// A reader does not.
    No,
}

/// A witness that is asked.
struct Asked {
    name: String,
    key: VerifierKey,
    witness: Box<dyn Witness>,
    /// The size that it cosigned last, by log.
    known: Mutex<BTreeMap<Tenant, u64>>,
    /// Held for one question.
    question: Mutex<()>,
}

/// What a question has come to.
struct Answered {
    place: usize,
    answer: Result<WitnessAnswer, CosigningFailed>,
}

impl Cosigning {
    /// Asks the witnesses of a policy, each as `dial` reaches it.
    pub fn new<E>(
        policy: &Policy,
        dial: impl Fn(&NamedWitness) -> Result<Box<dyn Witness>, E>,
    ) -> Result<Self, E> {
        let asked = policy.named_witnesses().iter().map(|named| {
            Ok(Arc::new(Asked {
                name: named.name().to_owned(),
                key: named.key().clone(),
                witness: dial(named)?,
                known: Mutex::default(),
                question: Mutex::default(),
            }))
        });
        Ok(Self {
            asked: asked.collect::<Result<_, E>>()?,
            quorum: policy.witnesses(),
            asking: Mutex::default(),
        })
    }

    /// Whether anybody is asked.
    pub fn has_witnesses(&self) -> bool {
        !self.asked.is_empty()
    }

    /// The checkpoint of a tree with the cosignatures of a quorum. Returns once it is reached, without
    /// waiting for the other witnesses.
    pub fn cosign(
        &self,
        tenant: &Tenant,
        tree: &Tree,
        store: &dyn Store,
        wait: Wait,
    ) -> Result<SignedCheckpoint, NotCosigned> {
        let pending = || NotCosigned::Failed(CosigningFailed::Pending);
        let mut asking = match wait {
            Wait::Yes => lock(&self.asking),
            Wait::No => self.asking.try_lock().map_err(|_| pending())?,
        };
        let begun = Instant::now();
        if asking.rests_until.is_some_and(|until| begun < until) {
            return Err(pending());
        }
        let cosigned = self.ask_all(tenant, tree, store);
        // Whoever was silent for long is left alone for as long, so that callers need not wait in turn.
        let silence = begun.elapsed();
        let rests = cosigned.is_err() && silence > PATIENCE;
        asking.rests_until = rests.then(|| Instant::now() + silence);
        cosigned
    }

    fn ask_all(
        &self,
        tenant: &Tenant,
        tree: &Tree,
        store: &dyn Store,
    ) -> Result<SignedCheckpoint, NotCosigned> {
        let (answers, inbox) = mpsc::channel();
        let mut attempts = vec![0; self.asked.len()];
        for (place, asked) in self.asked.iter().enumerate() {
            let known = lock(&asked.known).get(tenant).copied();
            // One that was not asked before has perhaps seen this very checkpoint.
            let old = known.unwrap_or_else(|| tree.size());
            self.ask(place, tenant, tree, store, old, &answers)?;
        }
        let mut signed = tree.published().clone();
        let mut failure = NotCosigned::Failed(CosigningFailed::Pending);
        let mut waiting = self.asked.len();
        while !self.is_reached(&signed) {
            let Ok(Answered { place, answer }) = inbox.recv_timeout(LIMIT) else {
                return Err(failure);
            };
            let asked = &self.asked[place];
            let failed = match answer {
                Ok(WitnessAnswer::Cosigned(signature)) => {
                    lock(&asked.known).insert(tenant.clone(), tree.size());
                    let added = signed.add(signature);
                    added.err().map(|error| NotCosigned::Failed(error.into()))
                }
                Ok(WitnessAnswer::OldSize(old)) if old > tree.size() => {
                    Some(NotCosigned::Ahead(old))
                }
                Ok(WitnessAnswer::OldSize(old)) if attempts[place] < ATTEMPTS => {
                    attempts[place] += 1;
                    self.ask(place, tenant, tree, store, old, &answers)?;
                    continue;
                }
                Ok(WitnessAnswer::OldSize(_)) => {
                    Some(NotCosigned::Failed(CosigningFailed::Pending))
                }
                Ok(WitnessAnswer::Inconsistent) => Some(NotCosigned::Inconsistent),
                Ok(WitnessAnswer::Refused(status)) => {
                    Some(NotCosigned::Failed(CosigningFailed::Refused(status)))
                }
                Err(error) => Some(NotCosigned::Failed(error)),
            };
            if let Some(failed) = failed {
                failed.log(&asked.name);
                failure = failed.graver(failure);
            }
            waiting -= 1;
            if waiting == 0 && !self.is_reached(&signed) {
                return Err(failure);
            }
        }
        Ok(signed)
    }

    fn is_reached(&self, signed: &SignedCheckpoint) -> bool {
        signed.cosignatures(&self.quorum).is_ok()
    }

    /// Asks one witness on a thread of its own.
    fn ask(
        &self,
        place: usize,
        tenant: &Tenant,
        tree: &Tree,
        store: &dyn Store,
        old: u64,
        answers: &Sender<Answered>,
    ) -> Result<(), NotCosigned> {
        let proof = tree.consistency(old, store, tenant);
        let proof = proof.map_err(NotCosigned::Unproven)?;
        let request = AddCheckpoint::new(old, proof, tree.published().clone());
        let request = request.map_err(|error| NotCosigned::Failed(error.into()))?;
        let (asked, answers) = (Arc::clone(&self.asked[place]), answers.clone());
        thread::spawn(move || {
            let answer = asked.answer(&request);
            // Nobody listens any more once there is a quorum.
            let _gone = answers.send(Answered { place, answer });
        });
        Ok(())
    }
}

impl Asked {
    fn answer(&self, request: &AddCheckpoint) -> Result<WitnessAnswer, CosigningFailed> {
        // One question at a time: a slow witness does not gather them.
        let _question = self
            .question
            .try_lock()
            .map_err(|_| CosigningFailed::Pending)?;
        let (status, body) = self.witness.add_checkpoint(request)?;
        Ok(WitnessAnswer::parse(
            status,
            &body,
            request.checkpoint(),
            &self.key,
        )?)
    }
}

impl NotCosigned {
    fn log(&self, witness: &str) {
        match self {
            Self::Ahead(size) => {
                tracing::error!(witness, size, "a witness has seen a larger tree of a log");
            }
            Self::Inconsistent => {
                tracing::error!(witness, "a witness has seen another history of a log");
            }
            Self::Failed(error) => {
                tracing::warn!(witness, %error, "a witness did not cosign a checkpoint");
            }
            Self::Unproven(error) => tracing::error!(%error, "a log gives no proof"),
        }
    }

    /// The graver of two.
    fn graver(self, other: Self) -> Self {
        if other.gravity() > self.gravity() {
            return other;
        }
        self
    }

    const fn gravity(&self) -> u8 {
        match self {
            Self::Failed(_) => 0,
            Self::Unproven(_) => 1,
            Self::Ahead(_) => 2,
            Self::Inconsistent => 3,
        }
    }
}

impl fmt::Debug for Cosigning {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.asked.iter().map(|asked| &asked.name);
        formatter.debug_list().entries(names).finish()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code under these locks leaves half a change behind.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
