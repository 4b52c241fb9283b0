//! HTTP on a connection, either version.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio_util::task::AbortOnDropHandle;

use super::dial::Stream;
use super::failure::Failure;
use super::stamps::{Outgoing, Stamped, Stamps};

/// A connection that takes one request. Dropping it closes it.
pub struct Connection {
    sender: Sender,
    _driver: AbortOnDropHandle<()>,
}

enum Sender {
    Http1(http1::SendRequest<Outgoing>),
    Http2(http2::SendRequest<Outgoing>),
}

impl Connection {
    /// Opens it. A failure is that of the connection.
    pub async fn open(stream: Box<dyn Stream>, http2: bool, stamps: Arc<Stamps>) -> Result<Self, Failure> {
        let io = TokioIo::new(Stamped::new(stream, stamps));
        if http2 {
            let opened = http2::handshake(TokioExecutor::new(), io).await;
            let (mut sender, connection) = opened.map_err(|_| Failure::NoAnswer)?;
            // How a connection ends shows in the answer.
            let driver = tokio::spawn(async move { drop(connection.await) });
            sender.ready().await.map_err(|_| Failure::NoAnswer)?;
            return Ok(Self { sender: Sender::Http2(sender), _driver: AbortOnDropHandle::new(driver) });
        }
        let (mut sender, connection) = http1::handshake(io).await.map_err(|_| Failure::NoAnswer)?;
        let driver = tokio::spawn(async move { drop(connection.await) });
        sender.ready().await.map_err(|_| Failure::NoAnswer)?;
        Ok(Self { sender: Sender::Http1(sender), _driver: AbortOnDropHandle::new(driver) })
    }

    /// Sends the request and waits for the answer's head.
    pub async fn send(&mut self, request: Request<Outgoing>) -> Result<Response<Incoming>, Failure> {
        let answer = match &mut self.sender {
            Sender::Http1(sender) => sender.send_request(request).await,
            Sender::Http2(sender) => sender.send_request(request).await,
        };
        answer.map_err(|_| Failure::NoAnswer)
    }
}
