//! The demo's gateway in real time, whose faults a test switches.

use std::io::Write;
use std::process::{ChildStdin, Command};
use std::time::{Duration, Instant};

use crate::process::Process;
use crate::scratch::Scratch;
use crate::tracejoin::Tracejoin;

const PATIENCE: Duration = Duration::from_secs(30);

pub struct LiveDemo {
    process: Process,
    stdin: ChildStdin,
    /// How many faults have been set.
    set: usize,
}

impl LiveDemo {
    /// Plays against a server.
    pub async fn start(scratch: &Scratch, tracejoin: &Tracejoin) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tracejoin"));
        command.args(["demo", "--live", "--steer", "--server", &tracejoin.url("")]);
        command.args(["--otlp", &tracejoin.addresses.otlp_grpc.to_string()]);
        let (mut process, stdin) = Process::spawn_steered(scratch, "live", &mut command);
        process.wait_for_output(PATIENCE, |output| output.contains("requests/s").then_some(())).await;
        Self { process, stdin, set: 0 }
    }

    /// From the instant that it returns these are wrong and nothing else.
    pub async fn fault(&mut self, names: &str) -> Instant {
        writeln!(self.stdin, "fault {names}").expect("it reads");
        self.set += 1;
        let set = self.set;
        let said = |output: &str| (output.matches(" fault ").count() == set).then_some(());
        self.process.wait_for_output(PATIENCE, said).await;
        Instant::now()
    }
}
