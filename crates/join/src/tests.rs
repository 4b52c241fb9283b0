//! The rules of painting and matching, by hand and by property.

mod across;
pub mod build;
mod event_log;
mod identity;
mod painting;
mod properties;
mod streaming;
