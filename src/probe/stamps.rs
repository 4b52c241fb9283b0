//! When bytes really came and went. The parts of an HTTP client hand them to each other across tasks, which takes time on
//! a busy machine; the connection itself knows better.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use model::Nanos;

/// What has happened on a connection. Readings are nanoseconds since its origin; 0 has not happened.
#[derive(Debug)]
pub struct Stamps {
    origin: Instant,
    begun: AtomicI64,
    last_read: AtomicI64,
    sent: AtomicI64,
    handed_over: AtomicBool,
    written: AtomicBool,
}

impl Stamps {
    /// From now on.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            origin: Instant::now(),
            begun: AtomicI64::new(0),
            last_read: AtomicI64::new(0),
            sent: AtomicI64::new(0),
            handed_over: AtomicBool::new(false),
            written: AtomicBool::new(false),
        })
    }

    fn reading(&self) -> i64 {
        i64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(i64::MAX)
    }

    fn since_begun(&self, reading: i64) -> Nanos {
        Nanos(reading - self.begun.load(Ordering::Acquire))
    }

    /// The request begins: what was written before, such as HTTP/2's preface, is none of it.
    pub fn begin(&self, has_body: bool) {
        self.written.store(false, Ordering::Release);
        self.handed_over.store(!has_body, Ordering::Release);
        self.begun.store(self.reading(), Ordering::Release);
    }

    /// Since the request began.
    pub fn now(&self) -> Nanos {
        self.since_begun(self.reading())
    }

    /// From the request's beginning to the last time that bytes, or the connection's end, were read.
    pub fn last_read(&self) -> Nanos {
        self.since_begun(self.last_read.load(Ordering::Acquire)).max(Nanos::ZERO)
    }

    /// From the request's beginning until all of it was on its way.
    pub fn sent(&self) -> Option<Nanos> {
        let reading = self.sent.load(Ordering::Acquire);
        (reading > 0).then(|| self.since_begun(reading))
    }

    fn flushed(&self) {
        let whole = self.handed_over.load(Ordering::Acquire) && self.written.load(Ordering::Acquire);
        if whole && self.sent.load(Ordering::Acquire) == 0 {
            self.sent.store(self.reading(), Ordering::Release);
        }
    }
}

/// A connection that stamps what passes.
#[derive(Debug)]
pub struct Stamped<T> {
    inner: T,
    stamps: Arc<Stamps>,
}

impl<T> Stamped<T> {
    /// Around a connection; TLS lies inside, so that only what HTTP reads and writes is stamped.
    pub fn new(inner: T, stamps: Arc<Stamps>) -> Self {
        Self { inner, stamps }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Stamped<T> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.inner).poll_read(context, into);
        if read.is_ready() {
            self.stamps.last_read.store(self.stamps.reading(), Ordering::Release);
        }
        read
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Stamped<T> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.inner).poll_write(context, from);
        if wrote.is_ready() {
            self.stamps.written.store(true, Ordering::Release);
        }
        wrote
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(context);
        if flushed.is_ready() {
            self.stamps.flushed();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

/// A request's body, which says when HTTP has taken it.
#[derive(Debug)]
pub struct Outgoing {
    data: Option<Bytes>,
    stamps: Arc<Stamps>,
}

impl Outgoing {
    /// Of these bytes; none where there are none.
    pub fn new(data: Bytes, stamps: Arc<Stamps>) -> Self {
        Self { data: Some(data).filter(|data| !data.is_empty()), stamps }
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.stamps.handed_over.store(true, Ordering::Release);
        Poll::Ready(self.data.take().map(|data| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.data.as_ref().map_or(0, |data| data.len() as u64))
    }
}
