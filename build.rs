//! Describes the protocol of client records, and rebuilds when a migration changes, since those are compiled in.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use prost::Message;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=migrations");
    println!("cargo:rerun-if-changed=proto");
    // In Rust, so that nobody needs protoc. No code is generated: messages are read by their description, which also
    // answers gRPC reflection.
    let description = protox::compile(["tracejoin/v1/client_record.proto"], ["proto"])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("client_record.bin"), description.encode_to_vec())?;
    Ok(())
}
