//! Arrays and maps with the bounds of their schemas.

use std::collections::{BTreeMap, HashSet};
use std::hash::Hash;
use std::ops::Deref;

use serde_json::Value;

use crate::json::read::{Expected, FromJson, Mismatch, ToJson, array};

/// The limit of lists whose schema has none; the size of the document bounds them.
pub const UNBOUNDED: usize = usize::MAX;

/// An array of `MIN` to `MAX` elements.
#[derive(Clone, Debug, PartialEq)]
pub struct List<T, const MIN: usize, const MAX: usize>(Vec<T>);

impl<T, const MIN: usize, const MAX: usize> List<T, MIN, MAX> {
    /// The elements, if there are not too few or too many.
    pub fn new(elements: Vec<T>) -> Option<Self> {
        (MIN <= elements.len() && elements.len() <= MAX).then_some(Self(elements))
    }
}

impl<T, const MIN: usize, const MAX: usize> List<T, MIN, MAX> {
    /// The elements, to be changed in place.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut()
    }

    /// Moves the elements out for a while; the caller puts them back before anyone looks.
    pub(crate) fn take(&mut self) -> Self {
        Self(std::mem::take(&mut self.0))
    }
}

impl<T, const MIN: usize, const MAX: usize> Deref for List<T, MIN, MAX> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: FromJson, const MIN: usize, const MAX: usize> FromJson for List<T, MIN, MAX> {
    fn from_json(value: &Value) -> Result<Self, Mismatch> {
        read_elements(value, MIN, MAX).map(Self)
    }
}

impl<T: ToJson, const MIN: usize, const MAX: usize> ToJson for List<T, MIN, MAX> {
    fn to_json(&self) -> Value {
        self.0.iter().map(ToJson::to_json).collect()
    }
}

/// An array of `MIN` to `MAX` elements that are all different.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UniqueList<T, const MIN: usize, const MAX: usize>(Vec<T>);

impl<T: Eq + Hash, const MIN: usize, const MAX: usize> UniqueList<T, MIN, MAX> {
    /// The elements, if they are distinct and there are not too few or too many.
    pub fn new(elements: Vec<T>) -> Option<Self> {
        (MIN <= elements.len() && elements.len() <= MAX && are_distinct(&elements))
            .then_some(Self(elements))
    }
}

impl<T, const MIN: usize, const MAX: usize> Deref for UniqueList<T, MIN, MAX> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: FromJson + Eq + Hash, const MIN: usize, const MAX: usize> FromJson
    for UniqueList<T, MIN, MAX>
{
    fn from_json(value: &Value) -> Result<Self, Mismatch> {
        let elements = read_elements(value, MIN, MAX)?;
        if !are_distinct(&elements) {
            return Err(Expected::Distinct.into());
        }
        Ok(Self(elements))
    }
}

impl<T: ToJson, const MIN: usize, const MAX: usize> ToJson for UniqueList<T, MIN, MAX> {
    fn to_json(&self) -> Value {
        self.0.iter().map(ToJson::to_json).collect()
    }
}

/// An object of `MIN` to `MAX` members with free names of one form.
#[derive(Clone, Debug, PartialEq)]
pub struct Dictionary<K: Ord, V, const MIN: usize, const MAX: usize>(BTreeMap<K, V>);

impl<K: Ord, V, const MIN: usize, const MAX: usize> Dictionary<K, V, MIN, MAX> {
    /// The members, if there are not too few or too many.
    pub fn new(members: BTreeMap<K, V>) -> Option<Self> {
        (MIN <= members.len() && members.len() <= MAX).then_some(Self(members))
    }
}

impl<K: Ord, V, const MIN: usize, const MAX: usize> Deref for Dictionary<K, V, MIN, MAX> {
    type Target = BTreeMap<K, V>;

    fn deref(&self) -> &BTreeMap<K, V> {
        &self.0
    }
}

impl<K, V, const MIN: usize, const MAX: usize> FromJson for Dictionary<K, V, MIN, MAX>
where
    K: Ord + MemberName,
    V: FromJson,
{
    fn from_json(value: &Value) -> Result<Self, Mismatch> {
        let object = value.as_object().ok_or(Expected::Object)?;
        let members = object
            .iter()
            .map(|(name, value)| {
                let name = K::from_name(name).ok_or(Expected::Pattern("a member name"))?;
                Ok((name, V::from_json(value)?))
            })
            .collect::<Result<_, Mismatch>>()?;
        Self::new(members).ok_or_else(|| Expected::Length.into())
    }
}

impl<K, V, const MIN: usize, const MAX: usize> ToJson for Dictionary<K, V, MIN, MAX>
where
    K: Ord + AsRef<str>,
    V: ToJson,
{
    fn to_json(&self) -> Value {
        let members = self.0.iter();
        Value::Object(
            members
                .map(|(name, value)| (name.as_ref().to_owned(), value.to_json()))
                .collect(),
        )
    }
}

/// A type that can name the members of a [`Dictionary`].
pub trait MemberName: Sized + AsRef<str> {
    /// The name, if it has the form.
    fn from_name(name: &str) -> Option<Self>;
}

impl MemberName for String {
    fn from_name(name: &str) -> Option<Self> {
        Some(name.to_owned())
    }
}

impl MemberName for crate::scalar::Name {
    fn from_name(name: &str) -> Option<Self> {
        Self::new(name)
    }
}

impl MemberName for crate::scalar::Predicate {
    fn from_name(name: &str) -> Option<Self> {
        Self::new(name)
    }
}

impl MemberName for crate::scalar::Namespace {
    fn from_name(name: &str) -> Option<Self> {
        Self::new(name)
    }
}

fn read_elements<T: FromJson>(value: &Value, min: usize, max: usize) -> Result<Vec<T>, Mismatch> {
    let elements = array(value)?;
    if elements.len() < min || elements.len() > max {
        return Err(Expected::Length.into());
    }
    elements
        .iter()
        .enumerate()
        .map(|(index, element)| {
            T::from_json(element).map_err(|mismatch| mismatch.under_index(index))
        })
        .collect()
}

fn are_distinct<T: Eq + Hash>(elements: &[T]) -> bool {
    let mut seen = HashSet::with_capacity(elements.len());
    elements.iter().all(|element| seen.insert(element))
}
