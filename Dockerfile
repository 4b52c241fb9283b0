FROM rust:1.95-slim-bookworm AS build
WORKDIR /build
COPY . .
RUN cargo build --profile dist --locked && strip target/dist/tracejoin

FROM debian:bookworm-slim
# PostgreSQL for those who give no DATABASE_URL; Debian's own cluster is not wanted.
RUN mkdir -p /etc/postgresql-common \
    && echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf \
    && apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates postgresql \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --create-home --home-dir /var/lib/tracejoin --user-group tracejoin
COPY --from=build /build/target/dist/tracejoin /usr/local/bin/tracejoin
USER tracejoin
ENV TRACEJOIN_DATA_DIR=/var/lib/tracejoin \
    TRACEJOIN_OTLP_GRPC_ADDR=0.0.0.0:4317 \
    TRACEJOIN_OTLP_HTTP_ADDR=0.0.0.0:4318 \
    TRACEJOIN_HTTP_ADDR=0.0.0.0:8080
VOLUME /var/lib/tracejoin
EXPOSE 4317 4318 8080
# SIGINT or SIGTERM stop it in order, its PostgreSQL included.
ENTRYPOINT ["tracejoin"]
CMD ["serve"]
