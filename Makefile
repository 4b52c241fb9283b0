# Each target first installs what it needs and says so (scripts/setup).

.PHONY: demo test test-all lint bench

# Starts everything, plays a small LLM gateway against it and prints who owns the latency.
demo:
	@scripts/setup
	cargo run --release --quiet -- demo

# All tests that fit in 30 minutes on 2 cores, those with a real gateway, k6, Collector and PostgreSQL among them.
test:
	@scripts/setup tests
	cargo test
	cargo test --bench ingest --bench probe

# Those that take longer as well.
test-all:
	@scripts/setup tests
	cargo test -- --include-ignored

lint:
	cargo fmt --check
	cargo clippy --all-targets --quiet -- --deny warnings

# Ingest and joining beside a bare COPY (docs/performance.md), and how exact the probe is (docs/streaming.md).
bench:
	@scripts/setup
	cargo bench
