//! The description of the protocol, which `build.rs` compiles.

/// The protocol's description, an encoded `FileDescriptorSet`.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/client_record.bin"));
