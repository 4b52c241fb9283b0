//! Generates the messages of the protocol of client records, and rebuilds when a migration changes, since those are
//! compiled in.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use prost::Message;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=migrations");
    println!("cargo:rerun-if-changed=proto");
    // In Rust, so that the build needs no protoc.
    let description = protox::compile(["tracejoin/v1/client_record.proto"], ["proto"])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    // Answers gRPC reflection, and names the known fields.
    fs::write(out.join("client_record.bin"), description.encode_to_vec())?;
    // No service: the generated one decodes a message whole, so that one broken record would refuse all.
    prost_build::Config::new().btree_map(["."]).compile_fds(description)?;
    Ok(())
}
