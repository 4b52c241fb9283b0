//! A whole server, composed: database, listeners, joining, upkeep.

mod alerting;
mod upkeep;
mod waiting;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use utoipa_axum::router::OpenApiRouter;

use self::upkeep::StoreReadiness;
use crate::archive::{self, Archive};
use crate::config::{ArchiveSettings, IngestSettings, ListenSettings, Settings, StorageSettings};
use crate::exposition::{Exposition, ObjectiveMetrics, RequestMetrics};
use crate::ingest::Ingest;
use crate::objectives::catalogue::Catalogue;
use crate::objectives::dry_runs::DryRuns;
use crate::objectives::gates::Gates;
use crate::objectives::latest::LatestVerdicts;
use crate::objectives::notify::Receivers;
use crate::private_postgres::{self, PrivatePostgres};
use crate::reader::Reader;
use crate::receive::budget::Budget;
use crate::receive::events::{self, EventEndpoint};
use crate::receive::limits::Limits;
use crate::receive::otlp::SpanEndpoint;
use crate::receive::records::{self, RecordEndpoint};
use crate::receive::{http_server, otlp_grpc, otlp_http};
use crate::serve::stored_statuses::StoredStatuses;
use crate::serve::stored_traces::StoredTraces;
use crate::serve::{self, Sources};
use crate::store::{Store, StoreOptions};
use crate::telemetry;
use crate::workers::join as join_worker;
use crate::workers::rollup::Rollups;
use join::JoinRules;
use model::Span;
use normalise::{self, Dialects, ExtraKeys};

const DEFAULT_DATA_DIR: &str = "./tracejoin-data";

/// Tasks of this process that join. More of them help while one waits for the database.
const JOINERS: usize = 2;

/// Where a server listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// OTLP over gRPC.
    pub otlp_grpc: SocketAddr,
    /// OTLP over HTTP.
    pub otlp_http: SocketAddr,
    /// REST.
    pub http: SocketAddr,
}

/// What a server is started from, parsed: a mistake in the settings is found before a port is bound or a database is
/// started.
pub struct Plan {
    settings: Settings,
    dialects: Arc<Dialects>,
    receivers: Receivers,
}

impl Plan {
    /// Parses what the settings leave as text. Receiving, joining and answering read spans by the same dialects.
    ///
    /// # Errors
    /// Where a setting cannot be used; the message says what to change.
    pub fn read(settings: Settings, dialects: Arc<Dialects>) -> anyhow::Result<Self> {
        let receivers = alerting::receivers(&settings.slo)?;
        if let Some(url) = &settings.storage.database_url {
            Store::address(url).context("cannot use the database of --database-url")?;
        }
        Ok(Self { settings, dialects, receivers })
    }
}

/// A running server.
pub struct Server {
    addresses: Addresses,
    store: Store,
    database: Option<PrivatePostgres>,
    archive: Option<Archive>,
    stop: CancellationToken,
    listeners: JoinSet<anyhow::Result<()>>,
    workers: JoinSet<()>,
}

impl Server {
    /// Starts everything, and returns once it takes and answers.
    ///
    /// # Errors
    /// Where a part cannot be started; each says what to change.
    pub async fn start(plan: Plan) -> anyhow::Result<Self> {
        let Plan { settings, dialects, receivers } = plan;
        let settings = &settings;
        let health = telemetry::init_metrics()?;
        let bound = BoundListeners::bind(&settings.listen).await?;
        let addresses = bound.addresses()?;
        let archive = open_archive(&settings.archive)?;
        let (store, database) = open_store(settings, &bound).await?;

        let limits = normalise::Limits { spans_per_trace: settings.ingest.max_spans_per_trace as usize };
        let reader = Arc::clone(&dialects);
        let rules = JoinRules {
            settle: settings.join.settle,
            deadline: settings.join.join_deadline,
            stream_quiet: settings.join.stream_quiet,
            stream_hang: settings.join.stream_hang,
            span_limit: limits.spans_per_trace,
            read: Arc::new(move |span: &Span| reader.read(span)),
        };
        let stop = CancellationToken::new();
        let catalogue = Arc::new(Catalogue::new(store.clone()));
        catalogue.refresh().await.context("cannot read the objectives")?;
        let verdicts = Arc::new(LatestVerdicts::default());
        let requests = request_metrics(settings, Arc::clone(&catalogue), Arc::clone(&verdicts));
        let requests = Arc::new(requests.with_health(health));
        let sources = Sources {
            traces: Arc::new(StoredTraces::new(store.clone(), rules.clone())),
            windows: Arc::new(Reader::new(store.clone())),
            objectives: catalogue.clone(),
            gates: Arc::new(Gates::new(store.clone())),
            statuses: Arc::new(StoredStatuses::new(store.clone())),
            runs: Arc::new(store.clone()),
            alerts: Arc::new(store.clone()),
            readiness: Arc::new(StoreReadiness::new(store.clone(), archive.clone(), catalogue.clone(), stop.clone())),
            replays: Arc::new(DryRuns::new(store.clone())),
            exposition: Exposition::new(Arc::clone(&requests)),
        };
        let mut intake = Ingest::new(store.clone(), limits, dialects);
        if let Some(archive) = &archive {
            intake = intake.archived(archive.clone(), ExtraKeys::new(settings.archive.archive_extra.clone()));
        }
        let listeners = bound.serve(Arc::new(intake), receive_limits(&settings.ingest), sources, &stop);

        let mut workers = JoinSet::new();
        for _ in 0..JOINERS {
            workers.spawn(join_worker::run(store.clone(), rules.clone(), requests.clone(), stop.clone()));
        }
        let (rollups, stopping) = (Rollups::new(store.clone()), stop.clone());
        workers.spawn(async move { rollups.run(stopping).await });
        alerting::start(&settings.slo, receivers, &store, &catalogue, verdicts, &mut workers, &stop);
        let stopping = stop.clone();
        workers.spawn(async move { catalogue.run(stopping).await });
        workers.spawn(upkeep::maintain(store.clone(), archive.clone(), stop.clone()));
        Ok(Self { addresses, store, database, archive, stop, listeners, workers })
    }

    /// Where it listens, with real ports.
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Waits until a listener ends, which none does by itself, and says why it did.
    pub async fn failed(&mut self) -> anyhow::Error {
        match self.listeners.join_next().await {
            Some(Ok(Err(error))) => error,
            Some(Err(error)) => anyhow::Error::new(error).context("a listener panicked"),
            Some(Ok(Ok(()))) | None => anyhow::anyhow!("a listener ended though nobody asked it to"),
        }
    }

    /// Stops taking, lets open calls finish, then stops joining and the private database.
    pub async fn stop(mut self) {
        self.stop.cancel();
        while let Some(ended) = self.listeners.join_next().await {
            if let Err(error) = ended.map_err(anyhow::Error::from).and_then(|ended| ended) {
                tracing::warn!(error = format!("{error:#}"), "a listener failed while it stopped");
            }
        }
        if let Some(archive) = self.archive {
            archive.close().await;
        }
        while let Some(ended) = self.workers.join_next().await {
            if let Err(error) = ended {
                tracing::warn!(%error, "a worker failed while it stopped");
            }
        }
        self.store.close().await;
        if let Some(database) = self.database {
            database.stop().await;
        }
    }
}

/// The sockets of a server, bound before anything else is started, so that a port that is taken is told at once.
struct BoundListeners {
    otlp_grpc: TcpListener,
    otlp_http: TcpListener,
    http: TcpListener,
}

impl BoundListeners {
    async fn bind(listen: &ListenSettings) -> anyhow::Result<Self> {
        Ok(Self {
            otlp_grpc: bind(listen.otlp_grpc_addr, "--otlp-grpc-addr").await?,
            otlp_http: bind(listen.otlp_http_addr, "--otlp-http-addr").await?,
            http: bind(listen.http_addr, "--http-addr").await?,
        })
    }

    fn addresses(&self) -> anyhow::Result<Addresses> {
        let of = |listener: &TcpListener| listener.local_addr().context("cannot tell the port of a listener");
        Ok(Addresses { otlp_grpc: of(&self.otlp_grpc)?, otlp_http: of(&self.otlp_http)?, http: of(&self.http)? })
    }

    /// Serves every endpoint until `stop`.
    fn serve(
        self,
        intake: Arc<Ingest>,
        limits: Limits,
        sources: Sources,
        stop: &CancellationToken,
    ) -> JoinSet<anyhow::Result<()>> {
        let budget = Budget::new(&limits);
        let limits = Arc::new(limits);
        let spans = SpanEndpoint::new(intake.clone(), limits.clone(), budget.clone());
        let records = RecordEndpoint::new(intake.clone(), limits.clone(), budget.clone());
        let events = EventEndpoint::new(intake, limits.clone(), budget);
        let uploads: OpenApiRouter = records::router(records.clone()).merge(events::router(events));
        let (router, _) = serve::router(sources, uploads);

        let mut listeners = JoinSet::new();
        listeners.spawn(otlp_grpc::serve(self.otlp_grpc, spans.clone(), records, stop.clone()));
        let otlp_http = otlp_http::serve(self.otlp_http, spans, stop.clone());
        listeners.spawn(async {
            otlp_http.await;
            Ok(())
        });
        let stop = stop.clone();
        listeners.spawn(async move {
            http_server::serve(self.http, router, stop, &limits).await;
            Ok(())
        });
        listeners
    }
}

/// Counts of requests, and of what they are to the objectives in force.
fn request_metrics(settings: &Settings, catalogue: Arc<Catalogue>, verdicts: Arc<LatestVerdicts>) -> RequestMetrics {
    let current = move || catalogue.current().iter().map(|one| Arc::clone(&one.objective)).collect();
    let series = settings.slo.metric_series as usize;
    RequestMetrics::new(series, ObjectiveMetrics::new(Box::new(current), verdicts))
}

async fn bind(address: SocketAddr, setting: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| {
        format!("cannot listen on {address}; stop what listens there, or choose another with {setting}")
    })
}

/// Opens the archive of event lines, where one is wanted.
fn open_archive(settings: &ArchiveSettings) -> anyhow::Result<Option<Archive>> {
    let Some(dir) = settings.archive_dir.clone() else { return Ok(None) };
    Ok(Some(Archive::open(archive::Options { dir, retention: settings.archive_retention })?))
}

/// Opens the database that the settings name, or starts a private one.
async fn open_store(
    settings: &Settings,
    listeners: &BoundListeners,
) -> anyhow::Result<(Store, Option<PrivatePostgres>)> {
    let options = store_options(settings);
    if let Some(url) = &settings.storage.database_url {
        let listeners = [&listeners.otlp_grpc, &listeners.otlp_http, &listeners.http];
        let store = waiting::connect(url, options, listeners).await?;
        return Ok((store, None));
    }
    let database = start_private(&settings.storage).await?;
    match Store::connect(&database.url(), options).await {
        Ok(store) => Ok((store, Some(database))),
        Err(error) => {
            database.stop().await;
            Err(error).context("cannot use the private PostgreSQL")
        }
    }
}

async fn start_private(storage: &StorageSettings) -> anyhow::Result<PrivatePostgres> {
    let folder = storage.data_dir.clone().unwrap_or_else(|| PathBuf::from(DEFAULT_DATA_DIR));
    let options = private_postgres::Options {
        postgres_bin: storage.postgres_bin.clone(),
        default_data_dir: storage.data_dir.is_none(),
    };
    Ok(PrivatePostgres::start(&folder, options).await?)
}

fn store_options(settings: &Settings) -> StoreOptions {
    StoreOptions {
        settle: settings.join.settle,
        allow_fsync_off: settings.storage.allow_fsync_off,
        retention: settings.storage.retention,
        rollup_retention: settings.storage.rollup_retention,
        queue_bytes: bytes(settings.ingest.ingest_queue_bytes),
        ..StoreOptions::default()
    }
}

fn receive_limits(ingest: &IngestSettings) -> Limits {
    let defaults = Limits::default();
    Limits {
        grpc_message: defaults.grpc_message.with_bytes(bytes(ingest.otlp_max_message_bytes)),
        http_body: defaults.http_body.with_bytes(bytes(ingest.otlp_max_body_bytes)),
        records_body: defaults.records_body.with_bytes(bytes(ingest.records_max_body_bytes)),
        in_flight: defaults.in_flight.with_bytes(bytes(ingest.max_in_flight_bytes)),
        ..defaults
    }
}

/// A size in this machine's own width.
fn bytes(size: bytesize::ByteSize) -> usize {
    usize::try_from(size.as_u64()).unwrap_or(usize::MAX)
}
