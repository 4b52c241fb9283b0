//! A network of known length between k6 and the gateway.
//!
//! Over bare loopback the client may have the last byte before the gateway's handler has returned and its entry span has
//! ended: an envelope below zero, which tracejoin rightly excludes. No real client is that near.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

/// How long each byte travels, one way.
pub const ONE_WAY: Duration = Duration::from_millis(10);

/// Relays connections until dropped.
pub struct Network {
    /// The near end.
    pub address: SocketAddr,
    relay: JoinHandle<()>,
}

impl Network {
    pub async fn to(far_end: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let relay = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let Ok(far) = TcpStream::connect(far_end).await else { continue };
                for stream in [&near, &far] {
                    stream.set_nodelay(true).expect("a connected socket takes options");
                }
                let (near_read, near_write) = near.into_split();
                let (far_read, far_write) = far.into_split();
                carry(near_read, far_write);
                carry(far_read, near_write);
            }
        });
        Self { address, relay }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.relay.abort();
    }
}

/// Copies one direction, each piece `ONE_WAY` after it came.
fn carry(mut from: impl AsyncRead + Unpin + Send + 'static, mut to: impl AsyncWrite + Unpin + Send + 'static) {
    let (sender, mut pieces) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(length @ 1..) = from.read(&mut buffer).await {
            if sender.send((Instant::now() + ONE_WAY, buffer[..length].to_vec())).is_err() {
                return;
            }
        }
    });
    tokio::spawn(async move {
        while let Some((due, piece)) = pieces.recv().await {
            sleep_until(due).await;
            if to.write_all(&piece).await.is_err() {
                return;
            }
        }
        // The other end sees the close when the last piece has arrived; it may have closed first.
        let _ = to.shutdown().await;
    });
}
