//! Compiles the protocol's messages with protox, so that no `protoc` has to be installed.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let files = protox::compile(["tfplugin.proto", "tfplugin5.proto", "tfplugin6.proto"], ["proto"])?;
    // Clients and servers go by the method table in `src/wire/method.rs`: generated ones would come in two copies.
    tonic_prost_build::configure().build_client(false).build_server(false).compile_fds(files)?;
    Ok(())
}
