//! Fields of a document with their paths, and what can be read from one.

use serde_saphyr::Location;

use super::error::{DocumentError, Faults, nearest};
use super::node::{Node, Value};
use crate::objective::ObjectiveId;
use model::Nanos;

/// A field that is there.
#[derive(Debug)]
pub(super) struct Field<'a> {
    path: String,
    node: &'a Node,
}

/// A field that holds named fields.
#[derive(Debug)]
pub(super) struct Mapping<'a> {
    path: String,
    place: Location,
    entries: Vec<(&'a str, Location, &'a Node)>,
}

impl<'a> Mapping<'a> {
    /// A whole document.
    pub(super) fn root(document: &'a Node) -> Result<Self, DocumentError> {
        Field { path: String::new(), node: document }.mapping()
    }

    /// A refusal of the mapping as a whole.
    pub(super) fn refuse(&self, reason: impl Into<String>) -> DocumentError {
        DocumentError::at(self.place, self.path.as_str(), reason)
    }

    /// Notes every field of a name that is none of these.
    pub(super) fn only(&self, known: &[&str], faults: &mut Faults) {
        for (name, place, _) in &self.entries {
            if !known.contains(name) {
                let reason = match nearest(name, known) {
                    Some(near) => format!("there is no such field here; did you mean {near}?"),
                    None => format!("there is no such field here; give any of {}", known.join(", ")),
                };
                faults.add(DocumentError::at(*place, self.path_of(name), reason));
            }
        }
    }

    /// A field, where it is there.
    pub(super) fn get(&self, name: &str) -> Option<Field<'a>> {
        let (_, _, node) = self.entries.iter().find(|(known, _, _)| *known == name)?;
        Some(Field { path: self.path_of(name), node })
    }

    /// A field that must be there. `otherwise` says what to do where it is not.
    pub(super) fn need(&self, name: &str, otherwise: impl AsRef<str>) -> Result<Field<'a>, DocumentError> {
        let missing =
            || DocumentError::at(self.place, self.path_of(name), format!("is missing; {}", otherwise.as_ref()));
        self.get(name).ok_or_else(missing)
    }

    /// What a field that may be left out says; `None` also where that is noted as wrong.
    pub(super) fn optional<T>(
        &self,
        name: &str,
        faults: &mut Faults,
        read: impl FnOnce(&Field<'a>) -> Result<T, DocumentError>,
    ) -> Option<T> {
        faults.keep(read(&self.get(name)?))
    }

    /// All of its fields with their names.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&'a str, Field<'a>)> {
        self.entries.iter().map(|(name, _, node)| (*name, Field { path: self.path_of(name), node }))
    }

    fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }
}

impl<'a> Field<'a> {
    /// A refusal of the field.
    pub(super) fn refuse(&self, reason: impl Into<String>) -> DocumentError {
        DocumentError::at(self.node.defined, self.path.as_str(), reason)
    }

    fn is_not(&self, advice: &str) -> DocumentError {
        self.refuse(format!("is {}; {advice}", self.node.value.kind()))
    }

    /// A mapping.
    pub(super) fn mapping(&self) -> Result<Mapping<'a>, DocumentError> {
        let Value::Mapping(entries) = &self.node.value else { return Err(self.is_not("give a mapping of fields")) };
        let entries = entries.iter().map(|(name, node)| (name.value.as_str(), name.defined, node)).collect();
        Ok(Mapping { path: self.path.clone(), place: self.node.defined, entries })
    }

    /// A list.
    pub(super) fn list(&self) -> Result<Vec<Self>, DocumentError> {
        let Value::List(items) = &self.node.value else { return Err(self.is_not("give a list")) };
        let fields = items.iter().enumerate().map(|(i, node)| Self { path: format!("{}[{i}]", self.path), node });
        Ok(fields.collect())
    }

    /// A text for people: some of it, on one line, of at most so many bytes.
    pub(super) fn text(&self, longest: usize) -> Result<&'a str, DocumentError> {
        let Value::Text(text) = &self.node.value else { return Err(self.is_not("give a text; quotes make it one")) };
        let fits = !text.trim().is_empty() && text.len() <= longest && !text.chars().any(char::is_control);
        fits.then_some(text.as_str()).ok_or_else(|| {
            self.refuse(format!("has {} bytes; give a text of 1 to {longest} bytes, on one line", text.len()))
        })
    }

    /// The name of an objective.
    pub(super) fn id(&self) -> Result<ObjectiveId, DocumentError> {
        let name = self.text(ObjectiveId::MAX_LENGTH)?;
        ObjectiveId::new(name).map_err(|error| self.refuse(error.to_string()))
    }

    /// One of several names.
    pub(super) fn one_of<T: Copy>(&self, known: &[(&str, T)]) -> Result<T, DocumentError> {
        let named = match &self.node.value {
            Value::Text(text) => Some(text.as_str()),
            Value::Flag(true) => Some("true"),
            Value::Flag(false) => Some("false"),
            _ => None,
        };
        let found = named.and_then(|named| known.iter().find(|(name, _)| *name == named));
        found.map(|(_, value)| *value).ok_or_else(|| {
            let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            let near = named.and_then(|named| nearest(named, &names));
            match near {
                Some(near) if names.len() > 1 => self.refuse(format!("is none of its values; did you mean {near}?")),
                _ if names.len() <= 3 => self.refuse(format!("is none of its values; give {}", names.join(" or "))),
                _ => self.refuse(format!("is none of its values; give one of {}", names.join(", "))),
            }
        })
    }

    /// True or false.
    pub(super) fn flag(&self) -> Result<bool, DocumentError> {
        match self.node.value {
            Value::Flag(flag) => Ok(flag),
            _ => Err(self.is_not("give true or false")),
        }
    }

    /// Whether it says no, so that its parts are not to be read.
    pub(super) fn is_false(&self) -> bool {
        matches!(self.node.value, Value::Flag(false))
    }

    /// A finite number.
    pub(super) fn number(&self) -> Result<f64, DocumentError> {
        match self.node.value {
            Value::Whole(number) => Ok(number as f64),
            Value::Number(number) if number.is_finite() => Ok(number),
            Value::Number(_) => Err(self.refuse("is not finite; give a number")),
            _ => Err(self.is_not("give a number, without quotes or unit")),
        }
    }

    /// A whole number of at least one, and small enough to be kept everywhere.
    pub(super) fn count(&self) -> Result<u64, DocumentError> {
        match self.node.value {
            Value::Whole(number @ 1..=1_000_000_000) => Ok(number),
            _ => Err(self.refuse("is no count; give a whole number from 1 to 1000000000")),
        }
    }

    /// A part of a whole.
    pub(super) fn share(&self) -> Result<f64, DocumentError> {
        let number = self.number()?;
        if (0.0..=1.0).contains(&number) {
            return Ok(number);
        }
        Err(self.refuse(format!("is {number}; give a share from 0 to 1, such as 0.05 for 5 %")))
    }

    /// A duration within bounds, as in `10m` or `1h 30m`.
    pub(super) fn duration(&self, least: Nanos, most: Nanos) -> Result<Nanos, DocumentError> {
        let bounds = || format!("give a duration from {} to {}, such as 10m", least.in_words(), most.in_words());
        let refuse = || self.refuse(bounds());
        let Value::Text(text) = &self.node.value else { return Err(refuse()) };
        let duration = humantime::parse_duration(text).map_err(|_| refuse())?;
        let nanos = Nanos(i64::try_from(duration.as_nanos()).map_err(|_| refuse())?);
        if (least..=most).contains(&nanos) { Ok(nanos) } else { Err(refuse()) }
    }

    /// The values of a label: one, or a list of them.
    pub(super) fn labels(&self, longest: usize) -> Result<Vec<String>, DocumentError> {
        match &self.node.value {
            Value::List(items) if items.is_empty() => Err(self.refuse("is empty; give a value or leave it out")),
            Value::List(_) => self.list()?.iter().map(|item| item.label(longest)).collect(),
            _ => Ok(vec![self.label(longest)?]),
        }
    }

    fn label(&self, longest: usize) -> Result<String, DocumentError> {
        match &self.node.value {
            Value::Flag(flag) => Ok(flag.to_string()),
            Value::Whole(number) => Ok(number.to_string()),
            Value::Number(_) => Err(self.is_not("write it in quotes, so that it stays as it is")),
            Value::Text(_) => self.text(longest).map(str::to_owned),
            _ => Err(self.is_not("give a value, or a list of them")),
        }
    }
}
