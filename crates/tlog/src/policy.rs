//! Which logs and witnesses somebody trusts (c2sp.org/tlog-policy).

use std::collections::{BTreeMap, BTreeSet};

use crate::cosignature::{Quorum, Witnesses};
use crate::error::Error;
use crate::key::{Algorithm, Verifier, VerifierKey};

/// Bytes of the longest policy.
pub const MAX_POLICY_BYTES: usize = 1 << 16;

/// How deep groups can be nested.
const MAX_DEPTH: usize = 8;

/// The quorum that needs nobody.
const NONE: &str = "none";

/// The logs that are known, the witnesses with their addresses, and the quorum of them.
#[derive(Clone, Debug)]
pub struct Policy {
    logs: Vec<VerifierKey>,
    witnesses: Vec<NamedWitness>,
    quorum: Quorum,
}

/// A witness of a policy.
#[derive(Clone, Debug)]
pub struct NamedWitness {
    name: String,
    key: VerifierKey,
    url: Option<String>,
}

impl NamedWitness {
    /// What the policy calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The key that it cosigns with.
    pub const fn key(&self) -> &VerifierKey {
        &self.key
    }

    /// Where it takes checkpoints.
    pub fn url(&self) -> Option<&str> {
        self.url.as_deref()
    }
}

impl Policy {
    /// Parses a policy of at most [`MAX_POLICY_BYTES`].
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut reading = Reading::default();
        if text.len() > MAX_POLICY_BYTES {
            return Err(Error::Policy { line: 1 });
        }
        let mut line = 0;
        for (number, text) in (1..).zip(text.lines()) {
            line = number;
            reading.line(text).ok_or(Error::Policy { line })?;
        }
        let quorum = reading.quorum.ok_or(Error::Policy { line: line + 1 })?;
        Ok(Self {
            logs: reading.logs,
            witnesses: reading.witnesses,
            quorum,
        })
    }

    /// The keys of the logs that it names.
    pub fn logs(&self) -> &[VerifierKey] {
        &self.logs
    }

    /// The witnesses that it names.
    pub fn named_witnesses(&self) -> &[NamedWitness] {
        &self.witnesses
    }

    /// Who must have cosigned a checkpoint.
    pub fn witnesses(&self) -> Witnesses {
        let keys = self.witnesses.iter().map(|witness| witness.key.clone());
        Witnesses::by(keys.collect(), self.quorum.clone())
    }
}

/// What the lines so far have defined.
#[derive(Default)]
struct Reading {
    logs: Vec<VerifierKey>,
    witnesses: Vec<NamedWitness>,
    defined: BTreeMap<String, Defined>,
    quorum: Option<Quorum>,
}

struct Defined {
    quorum: Quorum,
    depth: usize,
    is_member: bool,
}

impl Reading {
    /// Takes one line; none if it is wrong.
    fn line(&mut self, line: &str) -> Option<()> {
        if line
            .chars()
            .any(|char| char.is_ascii_control() && char != '\t')
        {
            return None;
        }
        let items = line.split([' ', '\t']).filter(|item| !item.is_empty());
        match items.collect::<Vec<_>>().as_slice() {
            [] => Some(()),
            [first, ..] if first.starts_with('#') => Some(()),
            ["log", key] | ["log", key, _] => self.log(key),
            ["witness", name, key] => self.witness(name, key, None),
            ["witness", name, key, url] => self.witness(name, key, Some(url)),
            ["group", name, threshold, members @ ..] => self.group(name, threshold, members),
            ["quorum", NONE] => self.quorum(Quorum::default()),
            ["quorum", name] => {
                let quorum = self.defined.get(*name)?.quorum.clone();
                self.quorum(quorum)
            }
            _ => None,
        }
    }

    fn log(&mut self, key: &str) -> Option<()> {
        let key = VerifierKey::parse(key).ok()?;
        let is_new = (self.logs.iter()).all(|log| log.public_key() != key.public_key());
        let is_new = is_new && key.algorithm() == Algorithm::Ed25519;
        is_new.then(|| self.logs.push(key))
    }

    fn witness(&mut self, name: &str, key: &str, url: Option<&str>) -> Option<()> {
        let key = VerifierKey::parse(key).ok()?;
        let is_new = self.witnesses.iter().all(|other| {
            // One key under two names would count twice.
            other.key.public_key() != key.public_key() && other.key.name() != key.name()
        });
        if !is_new || key.algorithm() != Algorithm::Cosignature {
            return None;
        }
        self.define(name, Quorum::Witness(self.witnesses.len()), 0)?;
        self.witnesses.push(NamedWitness {
            name: name.to_owned(),
            key,
            url: url.map(str::to_owned),
        });
        Some(())
    }

    fn group(&mut self, name: &str, threshold: &str, members: &[&str]) -> Option<()> {
        let threshold = match threshold {
            "any" => 1,
            "all" => members.len(),
            number => usize::try_from(crate::text::decimal(number)?).ok()?,
        };
        if !(1..=members.len()).contains(&threshold) {
            return None;
        }
        let mut depth = 0;
        let mut quorums = Vec::new();
        let different: BTreeSet<_> = members.iter().collect();
        for member in &different {
            let member = self.defined.get_mut(**member)?;
            if std::mem::replace(&mut member.is_member, true) {
                return None;
            }
            depth = depth.max(member.depth + 1);
            quorums.push(member.quorum.clone());
        }
        if depth > MAX_DEPTH || different.len() < members.len() {
            return None;
        }
        let members = quorums;
        self.define(name, Quorum::Group { threshold, members }, depth)
    }

    fn quorum(&mut self, quorum: Quorum) -> Option<()> {
        self.quorum.is_none().then(|| self.quorum = Some(quorum))
    }

    fn define(&mut self, name: &str, quorum: Quorum, depth: usize) -> Option<()> {
        let defined = Defined {
            quorum,
            depth,
            is_member: false,
        };
        let is_free = name != NONE && !self.defined.contains_key(name);
        is_free.then(|| {
            self.defined.insert(name.to_owned(), defined);
        })
    }
}
