//! What stands in a document: the serde side of [`super::schema`].
//!
//! A derived struct stops at its first mistake. Here no field fails: it keeps its place and either its value or why that
//! cannot be used, so that one reading finds every mistake. Only text that is not YAML ends the reading.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_saphyr::{Location, Spanned};

/// A field that a document may give. An explicit `null` counts as given, unlike with `Option`.
#[derive(Debug)]
pub(super) struct Given<T>(Option<Spanned<T>>);

impl<T> Given<T> {
    pub(super) const fn get(&self) -> Option<&Spanned<T>> {
        self.0.as_ref()
    }

    pub(super) const fn is_absent(&self) -> bool {
        self.0.is_none()
    }
}

impl<T> Default for Given<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> From<T> for Given<T> {
    fn from(value: T) -> Self {
        Self(Some(without_place(value)))
    }
}

/// A value that is written, and was not read from a text.
pub(super) const fn without_place<T>(value: T) -> Spanned<T> {
    Spanned::new(value, Location::UNKNOWN, Location::UNKNOWN)
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Given<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Spanned::deserialize(deserializer).map(|value| Self(Some(value)))
    }
}

impl<T: Serialize> Serialize for Given<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// A mapping that is read as `F`, a list of `I`, or one value, whichever the text gives.
#[derive(Debug)]
pub(super) enum Node<F, I> {
    Scalar(Scalar),
    List(Vec<Spanned<I>>),
    Mapping(F),
}

/// A field that should hold a list.
pub(super) type List<I> = Node<Any, I>;

impl<F, I> Node<F, I> {
    /// What it is, in words.
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Scalar(scalar) => scalar.kind(),
            Self::List(_) => Scalar::List.kind(),
            Self::Mapping(_) => Scalar::Mapping.kind(),
        }
    }
}

impl<'de, F: FromMap<'de>, I: Deserialize<'de>> Deserialize<'de> for Node<F, I> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor(PhantomData))
    }
}

impl<F: Serialize, I: Serialize> Serialize for Node<F, I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Scalar(scalar) => scalar.serialize(serializer),
            Self::List(items) => items.serialize(serializer),
            Self::Mapping(fields) => fields.serialize(serializer),
        }
    }
}

struct NodeVisitor<F, I>(PhantomData<(F, I)>);

impl<'de, F: FromMap<'de>, I: Deserialize<'de>> Visitor<'de> for NodeVisitor<F, I> {
    type Value = Node<F, I>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(Node::Scalar(Scalar::Nothing))
    }

    fn visit_none<E: de::Error>(self) -> Result<Self::Value, E> {
        self.visit_unit()
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Node::Scalar(Scalar::Flag(value)))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Node::Scalar(Scalar::Whole(value)))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Node::Scalar(u64::try_from(value).map_or(Scalar::Number(value as f64), Scalar::Whole)))
    }

    fn visit_u128<E: de::Error>(self, value: u128) -> Result<Self::Value, E> {
        self.visit_f64(value as f64)
    }

    fn visit_i128<E: de::Error>(self, value: i128) -> Result<Self::Value, E> {
        self.visit_f64(value as f64)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Node::Scalar(Scalar::Number(value)))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Node::Scalar(Scalar::Text(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Self::Value, A::Error> {
        F::from_map(entries).map(Node::Mapping)
    }
}

/// One value. What a list or a mapping holds is left out: it stands where neither fits.
#[derive(Debug)]
pub(super) enum Scalar {
    /// Also `null`.
    Nothing,
    Flag(bool),
    /// A whole number that is not negative.
    Whole(u64),
    /// Any other number.
    Number(f64),
    Text(String),
    List,
    Mapping,
}

impl Scalar {
    /// What it is, in words.
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Flag(true) => "true",
            Self::Flag(false) => "false",
            Self::Whole(_) | Self::Number(_) => "a number",
            Self::Text(_) => "a text",
            Self::List => "a list",
            Self::Mapping => "a mapping",
        }
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Node::<Any, Any>::deserialize(deserializer)? {
            Node::Scalar(scalar) => scalar,
            Node::List(_) => Self::List,
            Node::Mapping(Any) => Self::Mapping,
        })
    }
}

impl Serialize for Scalar {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Nothing => serializer.serialize_unit(),
            Self::Flag(flag) => serializer.serialize_bool(*flag),
            Self::Whole(number) => serializer.serialize_u64(*number),
            Self::Number(number) => serializer.serialize_f64(*number),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List => serializer.serialize_seq(Some(0))?.end(),
            Self::Mapping => serializer.serialize_map(Some(0))?.end(),
        }
    }
}

/// A type that a field can have, and the form in which it is written.
pub(super) trait Leaf: Sized {
    /// # Errors
    /// What is wrong and what to do, to stand behind the name of the field.
    fn read(scalar: &Scalar) -> Result<Self, String>;

    fn write(&self) -> Scalar;
}

/// A value of a field, or why it cannot be used.
#[derive(Debug)]
pub(super) struct Checked<T>(pub(super) Result<T, String>);

impl<T> From<T> for Checked<T> {
    fn from(value: T) -> Self {
        Self(Ok(value))
    }
}

impl<T> From<T> for Given<Checked<T>> {
    fn from(value: T) -> Self {
        Checked::from(value).into()
    }
}

impl<'de, T: Leaf> Deserialize<'de> for Checked<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Scalar::deserialize(deserializer).map(|scalar| Self(T::read(&scalar)))
    }
}

impl<T: Leaf> Serialize for Checked<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Ok(value) => value.write().serialize(serializer),
            Err(reason) => Err(serde::ser::Error::custom(reason)),
        }
    }
}

/// What a mapping is read as.
pub(super) trait FromMap<'de>: Sized {
    fn from_map<A: MapAccess<'de>>(entries: A) -> Result<Self, A::Error>;
}

/// Anything, read only so that the text behind it can be.
#[derive(Debug)]
pub(super) struct Any;

impl<'de> FromMap<'de> for Any {
    fn from_map<A: MapAccess<'de>>(mut entries: A) -> Result<Self, A::Error> {
        while entries.next_entry::<String, Self>()?.is_some() {}
        Ok(Self)
    }
}

impl<'de> Deserialize<'de> for Any {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Node::<Self, Self>::deserialize(deserializer).map(|_| Self)
    }
}

impl Serialize for Any {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit()
    }
}
