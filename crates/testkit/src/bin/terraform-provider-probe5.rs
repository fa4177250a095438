//! The provider that can do everything, in protocol 5. See `landform_testkit::probe`.

fn main() -> std::process::ExitCode {
    landform_testkit::probe::main(landform_protocol::wire::Version::V5)
}
