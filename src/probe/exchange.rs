//! One request, from its start to the answer's end.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{
    ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, LOCATION, PROXY_AUTHORIZATION, USER_AGENT,
};
use hyper::{Method, Response, StatusCode, Version};
use tokio::time::{Instant, timeout};
use url::{Position, Url};

use super::client::Client;
use super::connection::Connection;
use super::dial::{Dialed, dial, proxy_login, since};
use super::failure::Failure;
use super::observation::Observation;
use super::stamps::{Outgoing, Stamps};
use super::watch::{Seen, Watch};
use model::{Nanos, Setup, SpanId, TraceId, UnixNanos};

/// How long a server may keep the stream open after its end marker before it is taken as ended.
const CLOSE_GRACE: Duration = Duration::from_secs(5);

/// What HTTP/2 sends before the server allows more; of longer bodies it cannot be seen when they were on their way.
const HTTP2_WINDOW: usize = 65_535;

const USER_AGENT_VALUE: &str = concat!("tracejoin/", env!("CARGO_PKG_VERSION"));

/// What to send.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: Method,
    pub url: Url,
    /// Headers beside those that every request has, in whose place they come. They go to the URL's own host only.
    pub headers: HeaderMap,
    /// The body, JSON unless a header says otherwise; empty for none.
    pub body: Bytes,
}

/// A request under way: what is known when it is given up stays.
struct Progress<'a> {
    start: Instant,
    started_at: UnixNanos,
    trace_id: TraceId,
    span_id: SpanId,
    setup: Setup,
    redirects: u32,
    redirected: Nanos,
    stamps: Option<Arc<Stamps>>,
    /// Where it cannot be told when the request was on its way.
    sending_unknown: bool,
    status: u16,
    protocol: Option<&'static str>,
    headers: Option<Nanos>,
    watch: Option<Watch<'a>>,
    streaming: Option<bool>,
    last_byte: Option<Nanos>,
    closed: Option<Nanos>,
}

impl Client {
    /// Sends a request and watches the answer to its end. A request that fails is an observation too.
    pub async fn measure(&self, request: &Request) -> Observation {
        let mut progress = Progress::new();
        let ended = timeout(self.limits.total, self.follow(request, &mut progress)).await;
        let failure = ended.unwrap_or(Err(Failure::Timeout)).err();
        progress.finish(failure, self.rules.expect_done())
    }

    /// Follows redirects to an answer, each with a connection and a span id of its own.
    async fn follow<'a>(&'a self, request: &Request, progress: &mut Progress<'a>) -> Result<(), Failure> {
        let mut request = request.clone();
        loop {
            let dialed = dial(self, &request.url, &mut progress.setup).await?;
            let (answer, _connection) = progress.send(dialed, &request).await?;
            let Some(next) = redirected(&request, &answer)? else {
                return self.watch(answer, progress).await;
            };
            if progress.redirects == self.limits.redirects {
                return Err(Failure::Redirect("is one too many: raise --max-redirects, or give the last address"));
            }
            progress.redirect();
            request = next;
        }
    }

    /// Reads the answer to its end.
    async fn watch<'a>(&'a self, answer: Response<Incoming>, progress: &mut Progress<'a>) -> Result<(), Failure> {
        let encoded = answer.headers().get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity");
        let form = answer.headers().get(CONTENT_TYPE).and_then(|form| form.to_str().ok()).unwrap_or_default();
        let streaming = form.trim_start().to_ascii_lowercase().starts_with("text/event-stream");
        progress.streaming = Some(streaming);
        if streaming && encoded {
            return Err(Failure::Encoded);
        }
        if streaming {
            progress.watch = Some(Watch::new(&self.rules));
        }
        let mut body = answer.into_body();
        loop {
            let over = progress.is_over();
            let patience = if over { self.limits.stall.min(CLOSE_GRACE) } else { self.limits.stall };
            match timeout(patience, body.frame()).await {
                Err(_) if over => break,
                Err(_) => return Err(Failure::Stalled),
                Ok(Some(Ok(frame))) => progress.take(frame.data_ref())?,
                Ok(Some(Err(_))) if !over => return Err(Failure::Reset),
                Ok(Some(Err(_)) | None) => {
                    progress.close();
                    break;
                }
            }
        }
        progress.failed()
    }
}

impl Progress<'_> {
    fn new() -> Self {
        let (trace_id, span_id) = identity();
        Self {
            start: Instant::now(),
            started_at: UnixNanos::now(),
            trace_id,
            span_id,
            setup: Setup::default(),
            redirects: 0,
            redirected: Nanos::ZERO,
            stamps: None,
            sending_unknown: false,
            status: 0,
            protocol: None,
            headers: None,
            watch: None,
            streaming: None,
            last_byte: None,
            closed: None,
        }
    }

    /// Sends a request on a new connection. The connection has to be kept for as long as the answer is read.
    async fn send(&mut self, dialed: Dialed, request: &Request) -> Result<(Response<Incoming>, Connection), Failure> {
        let stamps = Stamps::new();
        let mut connection = Connection::open(dialed.stream, dialed.http2, Arc::clone(&stamps)).await?;
        let traceparent = format!("00-{}-{}-01", self.trace_id, self.span_id);
        let body = Outgoing::new(request.body.clone(), Arc::clone(&stamps));
        let form = match (dialed.http2, &dialed.via) {
            (true, _) => Form::Http2,
            (false, Some(_)) => Form::Proxied,
            (false, None) => Form::Direct,
        };
        let mut sent = http_request(request, form, &traceparent, body)?;
        if let Some(login) = proxy_login(dialed.via.as_ref()) {
            sent.headers_mut().insert(PROXY_AUTHORIZATION, login);
        }
        let parts = [self.setup.dns, self.setup.connect, self.setup.tls];
        stamps.begin(!request.body.is_empty());
        self.setup.blocked = Some(since(self.start) - parts.into_iter().flatten().sum());
        self.sending_unknown = dialed.http2 && request.body.len() > HTTP2_WINDOW;
        self.stamps = Some(Arc::clone(&stamps));
        let answer = connection.send(sent).await?;
        self.headers = Some(stamps.last_read());
        self.status = answer.status().as_u16();
        self.protocol = Some(if answer.version() == Version::HTTP_2 { "HTTP/2" } else { "HTTP/1.1" });
        Ok((answer, connection))
    }

    /// What was measured so far is of a redirect; the request starts again.
    fn redirect(&mut self) {
        *self = Self {
            start: self.start,
            started_at: self.started_at,
            trace_id: self.trace_id,
            redirects: self.redirects + 1,
            redirected: since(self.start),
            ..Self::new()
        };
    }

    fn take(&mut self, data: Option<&Bytes>) -> Result<(), Failure> {
        let (Some(data), Some(stamps)) = (data, &self.stamps) else { return Ok(()) };
        let at = stamps.last_read();
        self.last_byte = Some(at);
        let Some(watch) = &mut self.watch else { return Ok(()) };
        watch.push(at, data);
        if watch.is_full() { Err(Failure::TooMany) } else { Ok(()) }
    }

    fn seen(&self) -> Option<&Seen> {
        self.watch.as_ref().map(Watch::seen)
    }

    /// Whether the stream has said that nothing will follow.
    fn is_over(&self) -> bool {
        self.seen().is_some_and(|seen| seen.done.is_some() || seen.failed.is_some())
    }

    fn failed(&self) -> Result<(), Failure> {
        match self.seen().and_then(|seen| seen.failed) {
            Some(_) => Err(Failure::StreamError),
            None => Ok(()),
        }
    }

    fn close(&mut self) {
        self.closed = self.stamps.as_ref().map(|stamps| stamps.last_read());
    }

    fn finish(self, failure: Option<Failure>, expect_done: bool) -> Observation {
        let now = self.stamps.as_ref().map(|stamps| stamps.now());
        // An answer that ended did so at its last byte; any other lasted until now.
        let duration = match failure {
            None | Some(Failure::StreamError) => self.closed.or(self.last_byte).or(now),
            Some(_) => now,
        };
        let setup = self.setup.total().unwrap_or_default();
        let wall = duration.map_or_else(|| since(self.start), |duration| duration + setup);
        Observation {
            trace_id: self.trace_id,
            span_id: self.span_id,
            started_at: self.started_at,
            setup: self.setup,
            redirects: self.redirects,
            redirected: self.redirected,
            status: self.status,
            protocol: self.protocol,
            sending: self.stamps.and_then(|stamps| stamps.sent()).filter(|_| !self.sending_unknown),
            headers: self.headers,
            streaming: self.streaming,
            seen: self.watch.map(|watch| watch.finish(duration.unwrap_or_default())).unwrap_or_default(),
            expect_done,
            closed: self.closed,
            duration,
            wall,
            failure,
        }
    }
}

/// Random identifiers. All zeros, which none may be, is as likely as nothing; it is drawn again all the same.
pub fn identity() -> (TraceId, SpanId) {
    loop {
        if let (Ok(trace), Ok(span)) = (TraceId::from_bytes(rand::random()), SpanId::from_bytes(rand::random())) {
            return (trace, span);
        }
    }
}

/// Where a request names its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// In a header.
    Direct,
    /// In a header and in the target.
    Proxied,
    /// In the target.
    Http2,
}

/// The request as HTTP sends it.
fn http_request(
    request: &Request,
    form: Form,
    traceparent: &str,
    body: Outgoing,
) -> Result<hyper::Request<Outgoing>, Failure> {
    const INVALID: Failure = Failure::Redirect("leads to an address that is none");
    let url = &request.url;
    let from = if form == Form::Direct { Position::BeforePath } else { Position::BeforeScheme };
    let target = &url[from..Position::AfterQuery];
    let mut sent = hyper::Request::new(body);
    *sent.method_mut() = request.method.clone();
    *sent.uri_mut() = target.parse().map_err(|_| INVALID)?;
    let headers = sent.headers_mut();
    headers.insert(USER_AGENT, HeaderValue::from_static(USER_AGENT_VALUE));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
    if !request.body.is_empty() {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    if form != Form::Http2 {
        let host = HeaderValue::from_str(&url[Position::BeforeHost..Position::AfterPort]).map_err(|_| INVALID)?;
        headers.insert(HOST, host);
    }
    for name in request.headers.keys() {
        headers.remove(name);
    }
    headers.extend(request.headers.iter().map(|(name, value)| (name.clone(), value.clone())));
    headers.insert("traceparent", HeaderValue::from_str(traceparent).map_err(|_| INVALID)?);
    Ok(sent)
}

/// The request that a redirect asks for; `None` where the answer is none.
fn redirected(request: &Request, answer: &Response<Incoming>) -> Result<Option<Request>, Failure> {
    const NOWHERE: Failure = Failure::Redirect("leads nowhere");
    let status = answer.status();
    let keeps_method = match status {
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => true,
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => request.method != Method::POST,
        StatusCode::SEE_OTHER => false,
        _ => return Ok(None),
    };
    let location = answer.headers().get(LOCATION).and_then(|location| location.to_str().ok()).ok_or(NOWHERE)?;
    let url = request.url.join(location).map_err(|_| NOWHERE)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(NOWHERE);
    }
    let mut next = request.clone();
    if url.origin() != request.url.origin() {
        // Keys are for the host that they were given for.
        next.headers.clear();
    }
    if !keeps_method {
        (next.method, next.body) = (Method::GET, Bytes::new());
    }
    next.url = url;
    Ok(Some(next))
}
