//! A real OpenTelemetry Collector between the SDK and tracejoin.

use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::time::{Duration, Instant};

use tokio::net::TcpStream;

use crate::process::Process;
use crate::scratch::Scratch;
use crate::setup::{prepared, source};
use crate::tracejoin::Tracejoin;

pub struct Collector {
    /// Where it takes OTLP/gRPC.
    pub address: SocketAddr,
    _process: Process,
}

impl Collector {
    /// Starts it with one of the configurations in `tests/collector`, named by the protocol it exports with.
    pub async fn start(scratch: &Scratch, protocol: &str, tracejoin: &Tracejoin) -> Self {
        let address = free_address();
        let mut command = Command::new(prepared("collector"));
        command
            .arg("--config")
            .arg(source(&format!("tests/collector/{protocol}.yaml")))
            .env("COLLECTOR_ADDR", address.to_string())
            .env("TRACEJOIN_OTLP_GRPC", tracejoin.addresses.otlp_grpc.to_string())
            .env("TRACEJOIN_OTLP_HTTP", format!("http://{}", tracejoin.addresses.otlp_http));
        let process = Process::spawn(scratch, &format!("collector-{protocol}"), &mut command);
        let deadline = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect(address).await.is_err() {
            assert!(Instant::now() < deadline, "the Collector does not listen:\n{}", process.log_tail());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Self { address, _process: process }
    }
}

/// An address that nobody listens on now.
pub fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address")
}
