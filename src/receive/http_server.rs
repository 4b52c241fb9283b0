//! Serves a router over HTTP/1 and HTTP/2. A client that never finishes its headers does not keep its connection, which
//! `axum::serve` would let it.

use std::io;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::limits::Limits;

/// Pause after the system refused a connection, as when all file descriptors are in use.
const ACCEPT_PAUSE: Duration = Duration::from_millis(500);

/// Serves `router` on `listener` until `stop`, then lets open calls finish for `limits.drain_grace` at most.
pub async fn serve(listener: TcpListener, router: Router, stop: CancellationToken, limits: &Limits) {
    let grace = limits.drain_grace;
    let mut server = Builder::new(TokioExecutor::new());
    server.http1().timer(TokioTimer::new()).header_read_timeout(limits.head_timeout);
    server.http2().timer(TokioTimer::new()).keep_alive_interval(limits.head_timeout);
    let open = GracefulShutdown::new();
    while let Some(socket) = accept(&listener, &stop).await {
        let service = TowerToHyperService::new(router.clone());
        let connection = server.serve_connection(TokioIo::new(socket), service).into_owned();
        let connection = open.watch(connection);
        tokio::spawn(async move {
            if let Err(cause) = connection.await {
                tracing::debug!(cause, "a connection ended early");
            }
        });
    }
    drop(listener);
    tokio::select! {
        () = open.shutdown() => {}
        () = tokio::time::sleep(grace) => tracing::warn!(?grace, "http calls were still open when the program stopped"),
    }
}

/// The next connection; `None` once it is time to stop.
async fn accept(listener: &TcpListener, stop: &CancellationToken) -> Option<TcpStream> {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => return None,
        };
        match accepted {
            Ok((socket, _)) => {
                if let Err(cause) = socket.set_nodelay(true) {
                    tracing::debug!(%cause, "a socket keeps its send delay");
                }
                return Some(socket);
            }
            Err(cause) => refused(&cause).await,
        }
    }
}

/// A peer that left before it was accepted is nobody's fault; anything else needs a pause, or it would spin.
async fn refused(cause: &io::Error) {
    if !matches!(cause.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset) {
        tracing::warn!(%cause, "a connection could not be accepted");
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }
}
