//! All integration tests, linked once: they run against a real PostgreSQL and real sockets.

mod common;

mod deployment;
mod docs;
mod private_postgres;
mod windows;
