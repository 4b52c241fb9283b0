//! Getting a connection, each part timed: the name, the connection, TLS.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use hyper::header::{HOST, HeaderValue, PROXY_AUTHORIZATION};
use hyper::{Method, StatusCode, Uri};
use hyper_util::client::proxy::matcher::Intercept;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_util::task::AbortOnDropHandle;
use url::{Host, Url};

use super::client::Client;
use super::failure::Failure;
use super::tls::HttpVersion;
use model::{Nanos, Setup};

/// How long one address may take before the next is tried beside it (RFC 8305).
const NEXT_ADDRESS: Duration = Duration::from_millis(250);

/// A connection of any kind.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// A connection to speak HTTP on.
pub struct Dialed {
    /// The connection.
    pub stream: Box<dyn Stream>,
    /// Whether to speak HTTP/2.
    pub http2: bool,
    /// The proxy that the request itself is addressed to, where there is no tunnel through it.
    pub via: Option<Intercept>,
}

pub fn since(start: Instant) -> Nanos {
    Nanos::from(start.elapsed())
}

/// Connects to a URL's host, through a proxy where the environment names one. The parts that are done are in `setup`
/// even where a later one fails.
pub async fn dial(client: &Client, url: &Url, setup: &mut Setup) -> Result<Dialed, Failure> {
    let secure = url.scheme() == "https";
    let prior_knowledge = !secure && client.version == HttpVersion::Http2;
    let uri: Uri = url.as_str().parse().map_err(|_| Failure::Redirect("leads to an address that is none"))?;
    let proxy = client.proxies.intercept(&uri);
    let addresses = match &proxy {
        Some(proxy) => resolve(&proxy_url(proxy)?, setup).await?,
        None => resolve(url, setup).await?,
    };
    let start = Instant::now();
    let tcp = connect(addresses).await.map_err(|error| Failure::Connect(error.kind()))?;
    // Where this fails, small writes wait a little longer; they are measured as they are.
    let _ = tcp.set_nodelay(true);
    let stream = match &proxy {
        // Proxies pass on requests of HTTP/1.1 only.
        Some(proxy) if secure || prior_knowledge => tunnel(tcp, url, proxy).await?,
        _ => Box::new(tcp),
    };
    setup.connect = Some(since(start));
    if !secure {
        setup.tls = Some(Nanos::ZERO);
        let via = proxy.filter(|_| !prior_knowledge);
        return Ok(Dialed { stream, http2: prior_knowledge, via });
    }
    let start = Instant::now();
    let stream = handshake(client, stream, url).await?;
    setup.tls = Some(since(start));
    let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2") || client.version == HttpVersion::Http2;
    Ok(Dialed { stream: Box::new(stream), http2, via: None })
}

/// A proxy's own address; only plain HTTP proxies are spoken to.
fn proxy_url(proxy: &Intercept) -> Result<Url, Failure> {
    if proxy.uri().scheme_str() != Some("http") {
        return Err(Failure::Proxy("that the environment names is no http:// one, and others are not supported"));
    }
    proxy.uri().to_string().parse().map_err(|_| Failure::Proxy("that the environment names has no valid address"))
}

async fn resolve(url: &Url, setup: &mut Setup) -> Result<Vec<SocketAddr>, Failure> {
    let unknown = Failure::Dns(io::ErrorKind::NotFound);
    let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else { return Err(unknown) };
    let name = match host {
        Host::Domain(name) => name,
        // Nothing to look up, which is known to take no time.
        Host::Ipv4(address) => {
            setup.dns = Some(Nanos::ZERO);
            return Ok(vec![(address, port).into()]);
        }
        Host::Ipv6(address) => {
            setup.dns = Some(Nanos::ZERO);
            return Ok(vec![(address, port).into()]);
        }
    };
    let start = Instant::now();
    let found = tokio::net::lookup_host((name, port)).await.map_err(|error| Failure::Dns(error.kind()))?;
    let addresses: Vec<SocketAddr> = found.collect();
    setup.dns = Some(since(start));
    if addresses.is_empty() { Err(unknown) } else { Ok(addresses) }
}

/// The first address that answers; each is given a head start over the next.
async fn connect(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let mut waiting = addresses.into_iter();
    let mut attempts = FuturesUnordered::new();
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    loop {
        let more = match waiting.next() {
            Some(address) => {
                attempts.push(TcpStream::connect(address));
                true
            }
            None => false,
        };
        tokio::select! {
            Some(attempt) = attempts.next() => match attempt {
                Ok(stream) => return Ok(stream),
                Err(error) => failure = error,
            },
            () = tokio::time::sleep(NEXT_ADDRESS), if more => {}
            else => return Err(failure),
        }
    }
}

/// Has a proxy connect to the host behind it.
async fn tunnel(tcp: TcpStream, url: &Url, proxy: &Intercept) -> Result<Box<dyn Stream>, Failure> {
    const BROKEN: Failure = Failure::Proxy("broke the connection");
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(tcp)).await.map_err(|_| BROKEN)?;
    let driver = AbortOnDropHandle::new(tokio::spawn(connection.with_upgrades()));
    let authority = format!("{}:{}", url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or(443));
    let mut request = hyper::Request::builder().method(Method::CONNECT).uri(&authority).header(HOST, &authority);
    if let Some(login) = proxy.basic_auth() {
        request = request.header(PROXY_AUTHORIZATION, login);
    }
    let request = request.body(String::new()).map_err(|_| Failure::Proxy("cannot be asked for this host"))?;
    let answer = sender.send_request(request).await.map_err(|_| BROKEN)?;
    match answer.status() {
        status if status.is_success() => {}
        StatusCode::PROXY_AUTHENTICATION_REQUIRED => return Err(Failure::Proxy("wants a login: put it in its URL")),
        _ => return Err(Failure::Proxy("refused to connect")),
    }
    let upgraded = hyper::upgrade::on(answer).await.map_err(|_| BROKEN)?;
    // It has handed the connection over and is about to end.
    driver.detach();
    Ok(Box::new(TokioIo::new(upgraded)))
}

async fn handshake(
    client: &Client,
    stream: Box<dyn Stream>,
    url: &Url,
) -> Result<tokio_rustls::client::TlsStream<Box<dyn Stream>>, Failure> {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let name = ServerName::try_from(host.to_owned()).map_err(|error| Failure::Tls(error.to_string()))?;
    let connector = TlsConnector::from(client.tls.clone());
    connector.connect(name, stream).await.map_err(|error| Failure::Tls(error.to_string()))
}

/// What a request through a proxy without a tunnel has to carry.
pub fn proxy_login(via: Option<&Intercept>) -> Option<HeaderValue> {
    via.and_then(Intercept::basic_auth).cloned()
}
