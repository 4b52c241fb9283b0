use serde::{Deserialize, Deserializer};

/// Reads a field that may be null but has to be there: by itself serde takes an absent `Option` for null.
pub fn nullable<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer)
}
