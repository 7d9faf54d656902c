//! From JSON trees to typed objects and back.
//!
//! `#[derive(Deserialize)]` is not used: it takes arrays for objects, maps for enum strings, and
//! null for a missing member, all of which the closed schemas refuse (spec 6.3). The `object!`
//! macro declares a struct whose fields are exactly the members of a closed object.

use std::fmt;

use serde_json::{Map, Value};

use crate::refusal::{Code, Place, Refusal};

/// A type that reads itself from a JSON tree with the verdict of its schema.
pub trait FromJson: Sized {
    /// Reads the value.
    ///
    /// # Errors
    ///
    /// A [`Mismatch`] that names the place and what was expected there, never what was found.
    fn from_json(value: &Value) -> Result<Self, Mismatch>;
}

/// A type that writes itself as a JSON tree.
pub trait ToJson {
    /// The tree; reading it back gives an equal value.
    fn to_json(&self) -> Value;
}

/// Where a tree departs from its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    place: Place,
    expected: Expected,
}

impl Mismatch {
    /// What the schema wants at the place.
    pub const fn expected(&self) -> Expected {
        self.expected
    }

    /// The place in the document.
    pub const fn place(&self) -> &Place {
        &self.place
    }

    /// Turns the mismatch into a refusal with the code of the object being read.
    pub fn refuse(self, code: Code) -> Refusal {
        Refusal::at(code, self.place)
    }

    /// This mismatch, inside the member `name`.
    pub(crate) fn under_member(mut self, name: &'static str) -> Self {
        self.place = self.place.under_member(name);
        self
    }

    /// This mismatch, inside the array element `index`.
    pub(crate) fn under_index(mut self, index: usize) -> Self {
        self.place = self.place.under_index(index);
        self
    }
}

impl From<Expected> for Mismatch {
    fn from(expected: Expected) -> Self {
        Self {
            place: Place::root(),
            expected,
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} at {}", self.expected, self.place)
    }
}

impl std::error::Error for Mismatch {}

/// What a schema expects at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// A JSON object.
    Object,
    /// A JSON array.
    Array,
    /// A JSON string.
    String,
    /// `true` or `false`.
    Boolean,
    /// A JSON number.
    Number,
    /// A number without a fractional part.
    Integer,
    /// An RFC 3339 date and time in one of the accepted forms.
    DateTime,
    /// `sha256:` and 64 lowercase hex digits.
    Digest,
    /// One fixed value.
    Constant,
    /// One of a fixed set of strings.
    Choice,
    /// A string of the named pattern.
    Pattern(&'static str),
    /// A length or size within its bounds.
    Length,
    /// A number within its bounds.
    Range,
    /// A member that is required.
    Present,
    /// No members but those of the schema.
    NoOtherMember,
    /// Array elements that are all different.
    Distinct,
    /// A rule between members, in words.
    Rule(&'static str),
}

impl fmt::Display for Expected {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Object => "expected an object",
            Self::Array => "expected an array",
            Self::String => "expected a string",
            Self::Boolean => "expected a boolean",
            Self::Number => "expected a number",
            Self::Integer => "expected an integer",
            Self::DateTime => "expected an RFC 3339 date and time",
            Self::Digest => "expected a SHA-256 digest",
            Self::Constant => "expected the fixed value of this member",
            Self::Choice => "expected one of the registered values",
            Self::Pattern(name) => return write!(formatter, "expected {name}"),
            Self::Length => "expected a length within the limits",
            Self::Range => "expected a number within the limits",
            Self::Present => "expected a required member",
            Self::NoOtherMember => "expected no other members",
            Self::Distinct => "expected distinct elements",
            Self::Rule(rule) => return formatter.write_str(rule),
        })
    }
}

/// The string in a value.
pub(crate) fn string(value: &Value) -> Result<&str, Mismatch> {
    value.as_str().ok_or_else(|| Expected::String.into())
}

/// The array in a value.
pub(crate) fn array(value: &Value) -> Result<&[Value], Mismatch> {
    match value {
        Value::Array(elements) => Ok(elements),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            Err(Expected::Array.into())
        }
    }
}

/// The members of an object, taken one by one.
pub struct Members<'a> {
    object: &'a Map<String, Value>,
    taken: usize,
}

impl Members<'_> {
    /// Takes one member.
    ///
    /// # Errors
    ///
    /// A [`Mismatch`] under the member's name.
    pub fn take<T: Member>(&mut self, name: &'static str) -> Result<T, Mismatch> {
        let value = self.object.get(name);
        self.taken += usize::from(value.is_some());
        T::from_member(value).map_err(|mismatch| mismatch.under_member(name))
    }
}

/// A set of members that belong together.
pub trait Group: Sized {
    /// Takes the members of the set.
    ///
    /// # Errors
    ///
    /// A [`Mismatch`] relative to the object.
    fn take_from(members: &mut Members<'_>) -> Result<Self, Mismatch>;

    /// Puts the members into an object.
    fn put_into(&self, object: &mut Map<String, Value>);
}

/// Reads an object that has no members but those of its group (spec 6.3).
pub(crate) fn closed<T: Group>(value: &Value) -> Result<T, Mismatch> {
    let object = value.as_object().ok_or(Expected::Object)?;
    let mut members = Members { object, taken: 0 };
    let group = T::take_from(&mut members)?;
    if members.taken < object.len() {
        return Err(Expected::NoOtherMember.into());
    }
    Ok(group)
}

/// How a field behaves as a member: `T` is required, `Option<T>` may be absent, and
/// [`Nullable<T>`] is required but may be null.
pub trait Member: Sized {
    /// Reads the member, or its absence.
    ///
    /// # Errors
    ///
    /// A [`Mismatch`] relative to the member.
    fn from_member(value: Option<&Value>) -> Result<Self, Mismatch>;

    /// Writes the member, unless it is absent.
    fn put(&self, name: &'static str, object: &mut Map<String, Value>);
}

impl<T: FromJson + ToJson> Member for T {
    fn from_member(value: Option<&Value>) -> Result<Self, Mismatch> {
        value
            .ok_or_else(|| Expected::Present.into())
            .and_then(T::from_json)
    }

    fn put(&self, name: &'static str, object: &mut Map<String, Value>) {
        object.insert(name.to_owned(), self.to_json());
    }
}

impl<T: FromJson + ToJson> Member for Option<T> {
    fn from_member(value: Option<&Value>) -> Result<Self, Mismatch> {
        value.map(T::from_json).transpose()
    }

    fn put(&self, name: &'static str, object: &mut Map<String, Value>) {
        if let Some(value) = self {
            value.put(name, object);
        }
    }
}

/// A required member that may be null.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Nullable<T>(pub Option<T>);

impl<T> Nullable<T> {
    /// The value, unless it is null.
    pub const fn get(&self) -> Option<&T> {
        self.0.as_ref()
    }
}

impl<T> From<Option<T>> for Nullable<T> {
    fn from(value: Option<T>) -> Self {
        Self(value)
    }
}

impl<T: FromJson> FromJson for Nullable<T> {
    fn from_json(value: &Value) -> Result<Self, Mismatch> {
        if value.is_null() {
            return Ok(Self(None));
        }
        T::from_json(value).map(|value| Self(Some(value)))
    }
}

impl<T: ToJson> ToJson for Nullable<T> {
    fn to_json(&self) -> Value {
        self.0.as_ref().map_or(Value::Null, ToJson::to_json)
    }
}

/// Declares a closed object: each field is one member, named like the field or by `as "name"`.
///
/// Its `Debug` form names the type only, since members may be private. `check = path` adds a rule
/// between members: a function from `&Self` to `Result<(), Mismatch>`. `flatten field: Type` puts
/// the members of another object among this one's own.
macro_rules! object {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $( $(#[$field_meta:meta])* $field:ident $(as $member:literal)? : $type:ty, )*
        }
        $(flatten $(#[$group_meta:meta])* $group:ident : $group_type:ty;)?
        $(check = $check:path;)?
    ) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq)]
        pub struct $name {
            $( $(#[$field_meta])* pub $field: $type, )*
            $( $(#[$group_meta])* pub $group: $group_type, )?
        }

        impl $crate::json::read::Group for $name {
            fn take_from(
                members: &mut $crate::json::read::Members<'_>,
            ) -> Result<Self, $crate::json::read::Mismatch> {
                Ok(Self {
                    $( $field: members.take(
                        $crate::json::read::member_name!($field $($member)?),
                    )?, )*
                    $( $group: <$group_type as $crate::json::read::Group>::take_from(members)?, )?
                })
            }

            fn put_into(&self, object: &mut serde_json::Map<String, serde_json::Value>) {
                $( $crate::json::read::Member::put(
                    &self.$field,
                    $crate::json::read::member_name!($field $($member)?),
                    object,
                ); )*
                $( $crate::json::read::Group::put_into(&self.$group, object); )?
            }
        }

        impl $crate::json::read::FromJson for $name {
            fn from_json(
                value: &serde_json::Value,
            ) -> Result<Self, $crate::json::read::Mismatch> {
                let object: Self = $crate::json::read::closed(value)?;
                $( $check(&object)?; )?
                Ok(object)
            }
        }

        impl $crate::json::read::ToJson for $name {
            fn to_json(&self) -> serde_json::Value {
                let mut object = serde_json::Map::new();
                $crate::json::read::Group::put_into(self, &mut object);
                serde_json::Value::Object(object)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    };
}

macro_rules! member_name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $member:literal) => {
        $member
    };
}

/// Declares an enum whose variants are fixed strings.
macro_rules! choice {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $( $(#[$variant_meta:meta])* $variant:ident = $text:literal, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $( $(#[$variant_meta])* $variant, )*
        }

        impl $name {
            /// Every value, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The value as objects write it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// The value that objects write as `text`.
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)* _ => None }
            }
        }

        impl $crate::json::read::FromJson for $name {
            fn from_json(
                value: &serde_json::Value,
            ) -> Result<Self, $crate::json::read::Mismatch> {
                Self::parse($crate::json::read::string(value)?)
                    .ok_or_else(|| $crate::json::read::Expected::Choice.into())
            }
        }

        impl $crate::json::read::ToJson for $name {
            fn to_json(&self) -> serde_json::Value {
                self.as_str().into()
            }
        }
    };
}

/// Declares a member that has one fixed value.
macro_rules! constant {
    ($( $(#[$meta:meta])* pub struct $name:ident = $value:expr; )*) => { $(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name;

        impl $crate::json::read::FromJson for $name {
            fn from_json(
                value: &serde_json::Value,
            ) -> Result<Self, $crate::json::read::Mismatch> {
                if $crate::json::read::is_same(value, &$value.into()) {
                    Ok(Self)
                } else {
                    Err($crate::json::read::Expected::Constant.into())
                }
            }
        }

        impl $crate::json::read::ToJson for $name {
            fn to_json(&self) -> serde_json::Value {
                serde_json::Value::from($value)
            }
        }
    )* };
}

/// Whether two scalars are one value of JSON, in which 1 and 1.0 are.
pub(crate) fn is_same(value: &Value, other: &Value) -> bool {
    match (value.as_f64(), other.as_f64()) {
        (Some(value), Some(other)) => value == other,
        (None, _) | (_, None) => value == other,
    }
}

pub(crate) use {choice, constant, member_name, object};
