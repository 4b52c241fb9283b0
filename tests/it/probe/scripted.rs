//! A server of event streams that does what a script says, when it says it.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method};
use axum::response::Response;
use futures::{StreamExt, stream};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// What comes next in an answer.
#[derive(Debug, Clone)]
pub enum Step {
    /// Nothing for so long.
    Wait(Duration),
    /// These bytes.
    Send(Vec<u8>),
    /// The connection breaks.
    Break,
    /// Nothing, ever.
    Hang,
}

/// An answer.
#[derive(Debug, Clone, Default)]
pub struct Script {
    /// The status; 0 is 200.
    pub status: u16,
    /// Headers beside `content-type: text/event-stream`.
    pub headers: Vec<(&'static str, String)>,
    /// Before the head.
    pub delay: Duration,
    /// The body.
    pub steps: Vec<Step>,
}

pub fn wait(millis: u64) -> Step {
    Step::Wait(Duration::from_millis(millis))
}

pub fn send(text: impl AsRef<[u8]>) -> Step {
    Step::Send(text.as_ref().to_vec())
}

/// An event with one token of a chat.
pub fn token(text: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
}

pub const DONE: &str = "data: [DONE]\n\n";

/// A request that came.
#[derive(Debug, Clone)]
pub struct Received {
    pub method: Method,
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Received {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

#[derive(Debug, Default)]
struct Scripts {
    by_path: HashMap<&'static str, Script>,
    received: Mutex<Vec<Received>>,
}

/// A running server; it ends with the test.
pub struct Scripted {
    pub address: SocketAddr,
    scripts: Arc<Scripts>,
}

impl Scripted {
    /// Serves scripts by path, HTTP/1.1 and HTTP/2 without TLS.
    pub async fn start(scripts: impl IntoIterator<Item = (&'static str, Script)>) -> Self {
        Self::serve(scripts, None).await
    }

    /// The same behind TLS.
    pub async fn start_tls(scripts: impl IntoIterator<Item = (&'static str, Script)>, authority: &Authority) -> Self {
        Self::serve(scripts, Some(authority.acceptor())).await
    }

    async fn serve(scripts: impl IntoIterator<Item = (&'static str, Script)>, tls: Option<TlsAcceptor>) -> Self {
        let scripts = Arc::new(Scripts { by_path: scripts.into_iter().collect(), ..Scripts::default() });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&scripts));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                // So that each step is seen when it is taken.
                let _ = tcp.set_nodelay(true);
                let (service, tls) = (TowerToHyperService::new(router.clone()), tls.clone());
                tokio::spawn(async move {
                    let builder = auto::Builder::new(TokioExecutor::new());
                    let Some(tls) = tls else {
                        return drop(builder.serve_connection(TokioIo::new(tcp), service).await);
                    };
                    if let Ok(stream) = tls.accept(tcp).await {
                        drop(builder.serve_connection(TokioIo::new(stream), service).await);
                    }
                });
            }
        });
        Self { address, scripts }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn received(&self) -> Vec<Received> {
        self.scripts.received.lock().expect("not poisoned").clone()
    }
}

async fn answer(State(scripts): State<Arc<Scripts>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.expect("a body");
    let path = parts.uri.path().to_owned();
    let script = scripts.by_path.get(path.as_str()).cloned().unwrap_or(Script { status: 404, ..Script::default() });
    let received = Received { method: parts.method, path, headers: parts.headers, body };
    scripts.received.lock().expect("not poisoned").push(received);
    tokio::time::sleep(script.delay).await;
    let status = if script.status == 0 { 200 } else { script.status };
    let mut answer = Response::builder().status(status).header("content-type", "text/event-stream");
    for (name, value) in script.headers {
        answer = answer.header(name, value);
    }
    let steps = stream::iter(script.steps).filter_map(|step| async move {
        match step {
            Step::Wait(time) => {
                tokio::time::sleep(time).await;
                None
            }
            Step::Send(bytes) => Some(Ok(Bytes::from(bytes))),
            Step::Break => {
                // What was sent before is to arrive first.
                tokio::time::sleep(Duration::from_millis(50)).await;
                Some(Err(std::io::Error::other("scripted")))
            }
            Step::Hang => std::future::pending::<Option<Result<Bytes, std::io::Error>>>().await,
        }
    });
    answer.body(Body::from_stream(steps)).expect("an answer")
}

/// A certificate authority of the test's own, and a certificate for localhost that it signed.
pub struct Authority {
    /// The authority's certificate, in PEM form.
    pub pem: String,
    config: Arc<rustls::ServerConfig>,
}

impl Authority {
    pub fn new() -> Self {
        let key = || KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, key()).expect("an authority");
        let leaf_key = key();
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let leaf = CertificateParams::new(names).and_then(|params| params.signed_by(&leaf_key, &authority));
        let leaf = leaf.expect("a certificate");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.expect("versions").with_no_client_auth();
        let private = PrivateKeyDer::try_from(leaf_key.serialize_der()).expect("a key");
        let mut config = builder.with_single_cert(vec![leaf.der().clone()], private).expect("a certificate");
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Self { pem: authority.pem(), config: Arc::new(config) }
    }

    fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config))
    }
}

/// A proxy that tunnels, and says what it was asked. Requests that are no CONNECT it answers itself.
pub struct Proxy {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    pub async fn start() -> Self {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let heard = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                tokio::spawn(pass(tcp, Arc::clone(&heard)));
            }
        });
        Self { address, asked }
    }

    /// The heads of the requests.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("not poisoned").clone()
    }
}

async fn pass(tcp: tokio::net::TcpStream, asked: Arc<Mutex<Vec<String>>>) -> Result<Infallible, std::io::Error> {
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufStream};
    let mut tcp = BufStream::new(tcp);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if tcp.read_line(&mut head).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
    let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let tunnel = head.starts_with("CONNECT ");
    asked.lock().expect("not poisoned").push(head);
    if !tunnel {
        let body = format!("{}{DONE}", token("proxied"));
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        tcp.write_all(format!("{head}{body}").as_bytes()).await?;
        tcp.shutdown().await?;
        return Err(std::io::ErrorKind::ConnectionAborted.into());
    }
    let mut beyond = tokio::net::TcpStream::connect(target).await?;
    tcp.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
    tcp.flush().await?;
    tokio::io::copy_bidirectional(&mut tcp, &mut beyond).await?;
    Err(std::io::ErrorKind::ConnectionAborted.into())
}
