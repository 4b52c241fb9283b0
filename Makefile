# Each target first installs what it needs and says so (scripts/setup).

.PHONY: demo release check test test-all lint bench

# Starts everything, plays a small LLM gateway against it and prints who owns the latency.
demo:
	@scripts/setup
	cargo run --release --quiet -- demo

# What is shipped: slower to build and faster to run than the demo's, with debug information in a file of its own.
release:
	@scripts/setup
	scripts/release

# The tests of the pure crates: no database, no network, under a minute after a change.
check:
	cargo test --quiet -p tracejoin-model -p tracejoin-normalise -p tracejoin-join -p tracejoin-stats -p tracejoin-slo -p tracejoin-api

# All tests that fit in 30 minutes on 2 cores, those with a real gateway, k6, Collector and PostgreSQL among them.
test:
	@scripts/setup tests
	cargo test --workspace
	cargo test --bench ingest --bench probe

# Those that take longer as well.
test-all:
	@scripts/setup tests
	cargo test --workspace -- --include-ignored

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- --deny warnings

# Ingest and joining beside a bare COPY (docs/performance.md), and how exact the probe is (docs/streaming.md).
bench:
	@scripts/setup
	cargo bench
