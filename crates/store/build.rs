//! The migrations are part of the binary, and cargo does not notice by itself when one is added.

fn main() {
    println!("cargo:rerun-if-changed=migrations");
}
