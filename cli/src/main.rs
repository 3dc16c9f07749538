//! The `tau` binary.

fn main() -> std::process::ExitCode {
    tau::main()
}
