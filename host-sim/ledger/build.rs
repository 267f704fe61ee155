//! Owns the way from `ledger.proto` to Rust and to the descriptors; Cargo drives it. It must not need a `protoc` on the machine.

use std::{env, error::Error, fs, path::PathBuf};

use prost::Message;
use protox::Compiler;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let mut compiler = Compiler::new(["proto"])?;
    compiler
        .include_imports(true)
        .include_source_info(true)
        .open_file("ledger/v1/ledger.proto")?;
    let commented = compiler.file_descriptor_set();

    // Without the comments, as `protoc --include_imports --descriptor_set_out` writes it.
    let mut bare = commented.clone();
    for file in &mut bare.file {
        file.source_code_info = None;
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("Cargo sets OUT_DIR")?);
    fs::write(out.join("ledger.v1.binpb"), bare.encode_to_vec())?;

    tonic_prost_build::configure()
        // In the order of their keys, so that an answer has the same bytes each time.
        .btree_map(".")
        .emit_rerun_if_changed(false)
        .compile_fds(commented)?;
    Ok(())
}
