//! Client records over HTTP.
