//! From the wire to the model: what is refused is counted, what is kept is trimmed to the allow-list.

pub mod dialect;
