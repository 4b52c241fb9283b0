//! What is answered while the database of `--database-url` cannot be reached: the process lives and is not ready, and
//! every sender is refused in a way that makes it try again.

use std::os::fd::AsFd;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::receive::http_server;
use crate::receive::limits::Limits;
use crate::store::{Store, StoreOptions};

/// Pause between two attempts to connect, which senders are asked to keep too.
const RETRY: Duration = Duration::from_secs(2);

/// gRPC's UNAVAILABLE, which exporters retry.
const GRPC_UNAVAILABLE: u8 = 14;

type Reason = Arc<RwLock<String>>;

/// Connects to the database at `url`, and as long as it is absent answers on `listeners` and tries again. Nothing is
/// acknowledged meanwhile.
///
/// # Errors
/// A failure that waiting cannot end, such as a wrong password or a database that does not exist.
pub async fn connect(url: &str, options: StoreOptions, listeners: [&TcpListener; 3]) -> anyhow::Result<Store> {
    let address = Store::address(url)?;
    let mut waiting = None;
    loop {
        let error = match Store::connect(url, options.clone()).await {
            Ok(store) => {
                if let Some(waiting) = waiting {
                    Waiting::end(waiting).await;
                    tracing::info!(address, "the database is there");
                }
                return Ok(store);
            }
            Err(error) if error.is_absent() => error,
            Err(error) => return Err(error).context("cannot use the database of --database-url"),
        };
        let reason = format!("database unavailable: {} ({address}); retry in {} s", error.cause(), RETRY.as_secs());
        tracing::warn!("{reason}");
        match &waiting {
            None => waiting = Some(Waiting::start(listeners, reason)?),
            Some(waiting) => waiting.set_reason(reason),
        }
        tokio::time::sleep(RETRY).await;
    }
}

struct Waiting {
    reason: Reason,
    stop: CancellationToken,
    listeners: JoinSet<()>,
}

impl Waiting {
    /// Answers on copies of the listeners, so that their ports stay bound when the server takes over.
    fn start(listeners: [&TcpListener; 3], reason: String) -> anyhow::Result<Self> {
        let reason = Arc::new(RwLock::new(reason));
        let stop = CancellationToken::new();
        let mut serving = JoinSet::new();
        for listener in listeners {
            let copy = copy(listener).context("cannot share a listener")?;
            let (router, stop) = (router(Arc::clone(&reason)), stop.clone());
            serving.spawn(async move { http_server::serve(copy, router, stop, &Limits::default()).await });
        }
        Ok(Self { reason, stop, listeners: serving })
    }

    fn set_reason(&self, reason: String) {
        *self.reason.write().unwrap_or_else(PoisonError::into_inner) = reason;
    }

    async fn end(self) {
        self.stop.cancel();
        self.listeners.join_all().await;
    }
}

fn copy(listener: &TcpListener) -> std::io::Result<TcpListener> {
    let copy = std::net::TcpListener::from(listener.as_fd().try_clone_to_owned()?);
    copy.set_nonblocking(true)?;
    TcpListener::from_std(copy)
}

fn router(reason: Reason) -> Router {
    let alive = || async { axum::Json(json!({"status": "alive"})) };
    Router::new().route("/healthz", get(alive)).fallback(unavailable).with_state(reason)
}

async fn unavailable(State(reason): State<Reason>, headers: HeaderMap) -> Response {
    let reason = reason.read().unwrap_or_else(PoisonError::into_inner).clone();
    let is_grpc = headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"));
    if is_grpc {
        let status = [("content-type", "application/grpc".to_owned()), ("grpc-status", GRPC_UNAVAILABLE.to_string())];
        // Header values hold no line breaks, and a cause may hold one.
        let message = reason.replace(|c: char| !c.is_ascii_graphic() && c != ' ', " ");
        return (status, [("grpc-message", message)]).into_response();
    }
    let problem = json!({
        "type": "about:blank", "title": "Service Unavailable", "status": 503, "detail": reason, "reasons": [reason],
    });
    let headers = [(CONTENT_TYPE, "application/problem+json".to_owned()), (RETRY_AFTER, RETRY.as_secs().to_string())];
    (StatusCode::SERVICE_UNAVAILABLE, headers, problem.to_string()).into_response()
}
