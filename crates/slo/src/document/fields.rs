//! Parts of a document with their paths, so that a mistake can be named.

use serde_saphyr::{Location, Spanned};

use super::error::{DocumentError, Faults, nearest};
use super::mapping::{Entries, Known};
use super::node::{Checked, Given, Node};

/// A part of a document that is given, and where.
#[derive(Debug)]
pub(super) struct At<'a, T> {
    path: String,
    place: Location,
    pub(super) value: &'a T,
}

/// A field of a mapping, given or not.
#[derive(Debug)]
pub(super) struct Field<'a, T> {
    path: String,
    parent: Location,
    given: Option<&'a Spanned<T>>,
}

/// The field of a struct, by the name that both the struct and the document use.
macro_rules! field {
    ($mapping:ident.$name:ident) => {
        $mapping.field(stringify!($name), &$mapping.value.fields.$name)
    };
}
pub(super) use field;

impl<'a, T> At<'a, T> {
    pub(super) fn root(document: &'a Spanned<T>) -> Self {
        Self { path: String::new(), place: document.defined, value: &document.value }
    }

    pub(super) fn refuse(&self, reason: impl Into<String>) -> DocumentError {
        DocumentError::at(self.place, self.path.as_str(), reason)
    }

    fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// Notes each name that is not known.
    fn refuse_unknown(&self, names: impl Iterator<Item = &'a Spanned<String>>, known: &[&str], faults: &mut Faults) {
        for name in names.filter(|name| !known.contains(&name.value.as_str())) {
            let reason = match nearest(&name.value, known) {
                Some(near) => format!("there is no such field here; did you mean {near}?"),
                None => format!("there is no such field here; give any of {}", known.join(", ")),
            };
            faults.add(DocumentError::at(name.defined, self.path_of(&name.value), reason));
        }
    }
}

impl<'a, F, I> At<'a, Node<F, I>> {
    pub(super) fn mapping(&self) -> Result<At<'a, F>, DocumentError> {
        match self.value {
            Node::Mapping(value) => Ok(At { path: self.path.clone(), place: self.place, value }),
            other => Err(self.refuse(format!("is {}; give a mapping of fields", other.kind()))),
        }
    }

    pub(super) fn list(&self) -> Result<Vec<At<'a, I>>, DocumentError> {
        let Node::List(items) = self.value else {
            return Err(self.refuse(format!("is {}; give a list", self.value.kind())));
        };
        let items = items.iter().enumerate();
        let at = |(i, item): (usize, &'a Spanned<I>)| At {
            path: format!("{}[{i}]", self.path),
            place: item.defined,
            value: &item.value,
        };
        Ok(items.map(at).collect())
    }
}

impl<'a, F> At<'a, Known<F>> {
    /// Notes every field that the struct does not declare, or that does not belong here all the same.
    pub(super) fn only_declared(&self, but: &[&str], faults: &mut Faults) {
        let known: Vec<&str> = self.value.declared.iter().copied().filter(|name| !but.contains(name)).collect();
        self.refuse_unknown(self.value.names.iter(), &known, faults);
    }

    /// A field by its name in the document; [`field!`] where the struct has the same name.
    pub(super) fn field<T>(&self, name: &str, given: &'a Given<T>) -> Field<'a, T> {
        Field { path: self.path_of(name), parent: self.place, given: given.get() }
    }
}

impl<'a, T> At<'a, Entries<T>> {
    /// Notes every name that is none of these.
    pub(super) fn only(&self, known: &[&str], faults: &mut Faults) {
        self.refuse_unknown(self.value.0.iter().map(|(name, _)| name), known, faults);
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (&'a str, At<'a, T>)> {
        self.value.0.iter().map(|(name, value)| {
            let at = At { path: self.path_of(&name.value), place: value.defined, value: &value.value };
            (name.value.as_str(), at)
        })
    }
}

impl<'a, T> At<'a, Checked<T>> {
    /// # Errors
    /// Why the value cannot be used.
    pub(super) fn get(&self) -> Result<&'a T, DocumentError> {
        self.value.0.as_ref().map_err(|reason| self.refuse(reason.as_str()))
    }
}

impl<'a, T> Field<'a, T> {
    pub(super) fn given(&self) -> Option<At<'a, T>> {
        let given = self.given?;
        Some(At { path: self.path.clone(), place: given.defined, value: &given.value })
    }

    /// # Errors
    /// That it is missing, and `otherwise`: what to do then.
    pub(super) fn need(&self, otherwise: impl AsRef<str>) -> Result<At<'a, T>, DocumentError> {
        self.given().ok_or_else(|| self.missing(otherwise.as_ref()))
    }

    pub(super) fn missing(&self, otherwise: &str) -> DocumentError {
        DocumentError::at(self.parent, self.path.as_str(), format!("is missing; {otherwise}"))
    }
}

impl<'a, T> Field<'a, Checked<T>> {
    /// The value of a field that may be left out; `None` also where the value is noted as wrong.
    pub(super) fn optional(&self, faults: &mut Faults) -> Option<&'a T> {
        faults.keep(self.given()?.get())
    }

    /// The value of a field that must be given; `None` where it is noted as missing or wrong.
    pub(super) fn required(&self, otherwise: &str, faults: &mut Faults) -> Option<&'a T> {
        faults.keep(self.need(otherwise).and_then(|field| field.get()))
    }
}

impl<'a, F, I> Field<'a, Node<F, I>> {
    /// The mapping of a field that must be given; `None` where it is noted as missing or no mapping.
    pub(super) fn required_mapping(&self, otherwise: &str, faults: &mut Faults) -> Option<At<'a, F>> {
        faults.keep(self.need(otherwise).and_then(|field| field.mapping()))
    }

    /// The mapping of a field that may be left out; `None` also where it is noted as no mapping.
    pub(super) fn optional_mapping(&self, faults: &mut Faults) -> Option<At<'a, F>> {
        faults.keep(self.given()?.mapping())
    }
}
