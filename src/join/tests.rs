//! The rules of painting and matching, by hand and by property.

pub mod build;
mod identity;
mod painting;
mod properties;
mod streaming;
