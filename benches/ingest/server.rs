//! The built server as a process of its own.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Where it listens.
#[derive(Clone, Copy)]
pub struct Addresses {
    pub otlp_grpc: SocketAddr,
    pub http: SocketAddr,
}

pub struct Server {
    pub addresses: Addresses,
    child: Child,
    /// Kept open, so that the server may go on writing.
    _output: BufReader<ChildStdout>,
}

impl Server {
    /// Starts it on a database and waits until it is ready.
    pub fn start(database_url: &str, settle: Duration) -> anyhow::Result<Self> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tracejoin"));
        command.args(["serve", "--database-url", database_url]);
        command.args(["--settle", &humantime::format_duration(settle).to_string()]);
        for endpoint in ["--otlp-grpc-addr", "--otlp-http-addr", "--http-addr"] {
            command.args([endpoint, "127.0.0.1:0"]);
        }
        let mut child = command.stdout(Stdio::piped()).spawn().context("cannot start the server")?;
        let mut output = BufReader::new(child.stdout.take().context("its output is piped")?);
        match read_addresses(&mut output) {
            Ok(addresses) => Ok(Self { addresses, child, _output: output }),
            Err(error) => {
                child.kill()?;
                Err(error)
            }
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Stops it in good order.
    pub fn stop(mut self) -> anyhow::Result<()> {
        kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM)?;
        let status = self.child.wait()?;
        if !status.success() {
            bail!("the server ended with {status}");
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Fails where it has ended, as it should have.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// From the lines that it prints when it is ready.
fn read_addresses(output: &mut impl BufRead) -> anyhow::Result<Addresses> {
    let mut otlp_grpc = None;
    for line in output.lines() {
        let line = line?.to_lowercase();
        let address = line.rsplit([' ', '/']).find_map(|word| word.parse().ok());
        if line.contains("grpc") {
            otlp_grpc = address;
        } else if !line.contains("otlp")
            && let (Some(otlp_grpc), Some(http)) = (otlp_grpc, address)
        {
            return Ok(Addresses { otlp_grpc, http });
        }
    }
    bail!("the server ended before it was ready")
}
