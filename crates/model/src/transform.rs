//! The decision's closed grammar of transforms, and what each does to a claim (spec 7.4, 11.5).

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::json::read::{Expected, FromJson, Mismatch, ToJson, string};
use crate::scalar::Predicate;

/// The most transforms that one decision can carry.
pub const MAX_TRANSFORMS: usize = 64;

/// One transform: `redact:NAME`, `truncate:NAME:N` or `compress:task-facts`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Transform {
    text: String,
    effect: Effect,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Effect {
    Redact(Predicate),
    Truncate(Predicate, usize),
    CompressTaskFacts,
}

impl Transform {
    /// Parses the grammar; a truncation limit has no leading zero.
    pub fn parse(text: &str) -> Option<Self> {
        let effect = if text == "compress:task-facts" {
            Effect::CompressTaskFacts
        } else if let Some(predicate) = text.strip_prefix("redact:") {
            Effect::Redact(Predicate::new(predicate)?)
        } else {
            let (predicate, limit) = text.strip_prefix("truncate:")?.rsplit_once(':')?;
            Effect::Truncate(Predicate::new(predicate)?, truncation_limit(limit)?)
        };
        Some(Self {
            text: text.to_owned(),
            effect,
        })
    }

    /// The transform as decisions write it.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// A limit that no text can reach is as good as any larger one.
fn truncation_limit(digits: &str) -> Option<usize> {
    let is_plain = !digits.is_empty()
        && !digits.starts_with('0')
        && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| digits.parse().unwrap_or(usize::MAX))
}

impl FromJson for Transform {
    fn from_json(value: &Value) -> Result<Self, Mismatch> {
        Self::parse(string(value)?).ok_or_else(|| Expected::Pattern("a transform").into())
    }
}

impl ToJson for Transform {
    fn to_json(&self) -> Value {
        Value::String(self.text.clone())
    }
}

/// The joint effect of a decision's transforms.
///
/// Compression comes before truncation, so that a limit counts what is really disclosed. Several
/// limits for one predicate are the smallest of them.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    redacted: HashSet<Predicate>,
    limits: HashMap<Predicate, usize>,
    compresses: bool,
}

impl Effects {
    /// The joint effect of `transforms`.
    pub fn of(transforms: &[Transform]) -> Self {
        let mut effects = Self::default();
        for transform in transforms {
            match &transform.effect {
                Effect::Redact(predicate) => {
                    effects.redacted.insert(predicate.clone());
                }
                Effect::Truncate(predicate, limit) => {
                    let smallest = effects.limits.entry(predicate.clone()).or_insert(*limit);
                    *smallest = (*smallest).min(*limit);
                }
                Effect::CompressTaskFacts => effects.compresses = true,
            }
        }
        effects
    }

    /// Whether claims with this predicate are dropped.
    pub fn redacts(&self, predicate: &Predicate) -> bool {
        self.redacted.contains(predicate)
    }

    /// The claim's text after compression and truncation.
    pub fn apply_to_text(&self, predicate: &Predicate, text: &str) -> String {
        let text = if self.compresses {
            compress(text)
        } else {
            text.to_owned()
        };
        self.cut(predicate, text)
    }

    /// The claim's value after truncation; only strings are cut.
    pub fn apply_to_value(&self, predicate: &Predicate, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.cut(predicate, text)),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_) => value,
        }
    }

    fn cut(&self, predicate: &Predicate, mut text: String) -> String {
        if let Some(limit) = self.limits.get(predicate) {
            text.truncate(prefix_of_units(&text, *limit));
        }
        text
    }
}

/// The length in bytes of the longest prefix with at most `limit` UTF-16 code units.
///
/// A character that needs two units and does not fit is left out whole: half of it could neither
/// be signed nor read.
fn prefix_of_units(text: &str, limit: usize) -> usize {
    let mut units = 0;
    for (index, character) in text.char_indices() {
        units += character.len_utf16();
        if units > limit {
            return index;
        }
    }
    text.len()
}

/// Collapses each run of white space to one space and removes it at both ends.
fn compress(text: &str) -> String {
    let words = text
        .split(is_ecmascript_space)
        .filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// White space as ECMAScript defines it, which is not Unicode's set: with U+FEFF, without U+0085.
const fn is_ecmascript_space(character: char) -> bool {
    matches!(
        character,
        '\u{9}'..='\u{d}'
            | ' '
            | '\u{a0}'
            | '\u{1680}'
            | '\u{2000}'..='\u{200a}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{202f}'
            | '\u{205f}'
            | '\u{3000}'
            | '\u{feff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn effects(transforms: &[&str]) -> Effects {
        let parsed: Vec<_> = transforms
            .iter()
            .map(|text| Transform::parse(text).expect("in the grammar"))
            .collect();
        Effects::of(&parsed)
    }

    fn predicate(text: &str) -> Predicate {
        Predicate::new(text).expect("a predicate")
    }

    #[test]
    fn keeps_to_its_grammar() {
        for good in [
            "redact:a.b",
            "truncate:a-b:1",
            "truncate:a:120",
            "compress:task-facts",
        ] {
            assert!(Transform::parse(good).is_some(), "{good}");
        }
        assert!(Transform::parse(&format!("truncate:a:1{}", "0".repeat(400))).is_some());
        for bad in [
            "",
            "redact:",
            "redact:A",
            "redact:a:1",
            "truncate:a",
            "truncate:a:",
            "truncate:a:0",
            "truncate:a:01",
            "truncate:a:-1",
            "truncate:a:+1",
            "truncate:a:1.5",
            "truncate:a:1 ",
            "truncate::1",
            "compress:task-fact",
            "compress:task-facts ",
            "drop:a",
            "redact:a\n",
        ] {
            assert!(Transform::parse(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn compresses_before_it_truncates() {
        let effects = effects(&["truncate:a:5", "compress:task-facts", "truncate:a:9"]);
        let a = predicate("a");
        assert_eq!(effects.apply_to_text(&a, "  x \u{feff}\n y   zzz"), "x y z");
        assert_eq!(effects.apply_to_text(&predicate("b"), " x  y "), "x y");
        assert_eq!(
            effects.apply_to_value(&a, json!("  x  y z")),
            json!("  x  ")
        );
        assert_eq!(
            effects.apply_to_value(&a, json!(["  long one"])),
            json!(["  long one"])
        );
        assert_eq!(effects.apply_to_text(&a, "\u{85}x"), "\u{85}x");
    }

    #[test]
    fn never_splits_a_character() {
        let effects = effects(&["truncate:a:2"]);
        let a = predicate("a");
        assert_eq!(effects.apply_to_text(&a, "x\u{1F600}"), "x");
        assert_eq!(effects.apply_to_text(&a, "\u{1F600}x"), "\u{1F600}");
    }

    #[test]
    fn redacts_by_whole_predicate() {
        let effects = effects(&["redact:a.b"]);
        assert!(effects.redacts(&predicate("a.b")));
        assert!(!effects.redacts(&predicate("a")));
        assert!(!effects.redacts(&predicate("a.b.c")));
    }

    proptest! {
        #[test]
        fn cut_text_is_a_prefix_within_the_limit(text in any::<String>(), limit in 1usize..40) {
            let effects = effects(&[&format!("truncate:a:{limit}")]);
            let cut = effects.apply_to_text(&predicate("a"), &text);
            prop_assert!(text.starts_with(&cut));
            let units = cut.encode_utf16().count();
            prop_assert!(units <= limit);
            prop_assert!(cut == text || units + 1 >= limit);
        }
    }
}
