use std::net::SocketAddr;

/// Where a server listens. Port 0 takes a free port, which the ready lines name.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Listeners")]
pub struct ListenSettings {
    /// Address of OTLP and client records over gRPC, with gRPC health and reflection
    #[arg(long, env = "TRACEJOIN_OTLP_GRPC_ADDR", value_name = "ADDR", default_value = "127.0.0.1:4317")]
    pub otlp_grpc_addr: SocketAddr,

    /// Address of OTLP over HTTP (POST /v1/traces, protobuf and JSON)
    #[arg(long, env = "TRACEJOIN_OTLP_HTTP_ADDR", value_name = "ADDR", default_value = "127.0.0.1:4318")]
    pub otlp_http_addr: SocketAddr,

    /// Address of the REST API, the page and /metrics
    #[arg(long, env = "TRACEJOIN_HTTP_ADDR", value_name = "ADDR", default_value = "127.0.0.1:8080")]
    pub http_addr: SocketAddr,
}
