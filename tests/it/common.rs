//! What every integration test needs: folders that vanish with the test process and fresh databases.

mod database;
mod folder;
mod server;

pub use database::{TestDatabase, test_database};
pub use folder::Folder;
pub use server::{PATIENCE, Server};
