use std::process::ExitCode;

use tracejoin::cli;

// Several large batches decoded at once make glibc's allocator the bottleneck; this one does not collapse.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let command = match cli::parse(std::env::args_os()) {
        Ok(command) => command,
        Err(error) => return cli::usage_error(&error),
    };
    match cli::run(command) {
        Ok(code) => code,
        Err(error) if cli::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tracejoin: {error:#}");
            ExitCode::FAILURE
        }
    }
}
