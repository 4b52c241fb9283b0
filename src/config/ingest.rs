use bytesize::ByteSize;

/// What a server takes in at most. Sizes are in bytes, or with a unit such as 16MiB.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Ingest limits")]
pub struct IngestSettings {
    /// Largest message over gRPC, of spans or client records, also after decompression
    #[arg(long, env = "TRACEJOIN_OTLP_MAX_MESSAGE_BYTES", value_name = "BYTES", default_value = "16MiB")]
    pub otlp_max_message_bytes: ByteSize,

    /// Largest OTLP body over HTTP, also after decompression
    #[arg(long, env = "TRACEJOIN_OTLP_MAX_BODY_BYTES", value_name = "BYTES", default_value = "20MiB")]
    pub otlp_max_body_bytes: ByteSize,

    /// Largest upload of client records or event lines, also after decompression
    #[arg(long, env = "TRACEJOIN_RECORDS_MAX_BODY_BYTES", value_name = "BYTES", default_value = "64MiB")]
    pub records_max_body_bytes: ByteSize,

    /// Most memory for data that is being received at one time; over it senders are told to come back later
    #[arg(long, env = "TRACEJOIN_MAX_IN_FLIGHT_BYTES", value_name = "BYTES", default_value = "512MiB")]
    pub max_in_flight_bytes: ByteSize,

    /// Most bytes that wait for their commit; over it senders are told to come back later
    #[arg(long, env = "TRACEJOIN_INGEST_QUEUE_BYTES", value_name = "BYTES", default_value = "64MiB")]
    pub ingest_queue_bytes: ByteSize,

    /// Most spans that are kept of one trace; the rest is counted and the trace flagged trace_too_large
    #[arg(long, env = "TRACEJOIN_MAX_SPANS_PER_TRACE", value_name = "SPANS", default_value = "10000",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub max_spans_per_trace: u32,
}
