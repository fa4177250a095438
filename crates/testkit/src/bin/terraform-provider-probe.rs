//! The provider that can do everything, in protocol 6. See `landform_testkit::probe`.

fn main() -> std::process::ExitCode {
    landform_testkit::probe::main(landform_protocol::wire::Version::V6)
}
