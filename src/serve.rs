//! REST: router, errors, one file a resource, OpenAPI.

pub mod error;
pub mod query;
pub mod trace;
