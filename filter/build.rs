//! Owns what the linker is asked for; Cargo drives it. It must not know what the filter does.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // The compiler leaves five bytes for each number that the linker fills in: for the callee of each call, among others. Most
    // need one or two; cut to that, the module is a twelfth smaller. The linker does so only where no debug information, which
    // holds offsets, is written.
    let is_module = std::env::var_os("CARGO_CFG_TARGET_OS").is_some_and(|system| system == "wasi");
    let is_release = std::env::var_os("PROFILE").is_some_and(|profile| profile == "release");
    if is_module && is_release {
        println!("cargo::rustc-link-arg-cdylib=--compress-relocations");
        println!("cargo::rustc-link-arg-cdylib=--strip-debug");
    }
}
