//! Mappings: the fields of a derived struct, or values by name.

use serde::de::value::StringDeserializer;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_saphyr::Spanned;

use super::node::{Any, FromMap, Given, Node};

/// A field that should hold the fields of a struct.
pub(super) type Mapping<F> = Node<Known<F>, Any>;
/// A field that should hold values by names that no struct declares.
pub(super) type Named<T> = Node<Entries<T>, Any>;

/// Values by name, in the order of the text.
#[derive(Debug)]
pub(super) struct Entries<T>(pub(super) Vec<(Spanned<String>, Spanned<T>)>);

impl<'de, T: Deserialize<'de>> FromMap<'de> for Entries<T> {
    fn from_map<A: MapAccess<'de>>(mut entries: A) -> Result<Self, A::Error> {
        let mut list = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            list.push(entry);
        }
        Ok(Self(list))
    }
}

impl<T: Serialize> Serialize for Entries<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// The fields of a struct, and every name that the text gives, also those that the struct does not declare.
#[derive(Debug)]
pub(super) struct Known<F> {
    pub(super) fields: F,
    pub(super) names: Vec<Spanned<String>>,
    /// The names that the struct declares.
    pub(super) declared: &'static [&'static str],
}

impl<F> From<F> for Known<F> {
    fn from(fields: F) -> Self {
        Self { fields, names: Vec::new(), declared: &[] }
    }
}

impl<F> From<F> for Given<Mapping<F>> {
    fn from(fields: F) -> Self {
        Node::Mapping(Known::from(fields)).into()
    }
}

impl<'de, F: Deserialize<'de>> FromMap<'de> for Known<F> {
    fn from_map<A: MapAccess<'de>>(entries: A) -> Result<Self, A::Error> {
        let (mut names, mut declared) = (Vec::new(), [].as_slice());
        let fields = F::deserialize(Struct { entries, names: &mut names, declared: &mut declared })?;
        Ok(Self { fields, names, declared })
    }
}

impl<F: Serialize> Serialize for Known<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.fields.serialize(serializer)
    }
}

/// Gives a derived struct the entries that it declares, and notes the names of all.
struct Struct<'n, A> {
    entries: A,
    names: &'n mut Vec<Spanned<String>>,
    declared: &'n mut &'static [&'static str],
}

impl<'de, A: MapAccess<'de>> Deserializer<'de> for Struct<'_, A> {
    type Error = A::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        declared: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        *self.declared = declared;
        visitor.visit_map(self)
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, A::Error> {
        visitor.visit_map(self.entries)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Struct<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        while let Some(name) = self.entries.next_key::<Spanned<String>>()? {
            let text = name.value.clone();
            self.names.push(name);
            if self.declared.contains(&text.as_str()) {
                let key: StringDeserializer<A::Error> = text.into_deserializer();
                return seed.deserialize(key).map(Some);
            }
            self.entries.next_value::<Any>()?;
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.entries.next_value_seed(seed)
    }
}
