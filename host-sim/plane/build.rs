//! Owns one instruction to Cargo; Cargo drives it. It must not know what the migrations say.

fn main() {
    // `sqlx::migrate!` embeds the folder, and the compiler does not notice a file that is new in it.
    println!("cargo:rerun-if-changed=migrations");
}
