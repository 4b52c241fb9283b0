//! An HTTP server that writes down what it is told, and answers as it is told to.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;

/// The signing key of every webhook here: 32 bytes.
pub const SECRET: &str = "whsec_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=";

/// One call.
#[derive(Debug)]
pub struct Call {
    pub path: String,
    headers: BTreeMap<String, String>,
    body: String,
}

impl Call {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }

    /// Checks the signature as a receiver that shares no code with the sender would.
    pub fn check_signature(&self) {
        let key = STANDARD.decode(&SECRET["whsec_".len()..]).expect("base64");
        let signed = format!("{}.{}.{}", self.header("webhook-id"), self.header("webhook-timestamp"), self.body);
        let expected = format!("v1,{}", STANDARD.encode(hmac(&key, signed.as_bytes())));
        assert_eq!(self.header("webhook-signature"), expected);
    }
}

/// HMAC as RFC 2104 defines it, written out.
fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    let padded = |pad: u8| -> Vec<u8> { (0..64).map(|at| key.get(at).copied().unwrap_or(0) ^ pad).collect() };
    let inner = Sha256::digest([&padded(0x36), message].concat());
    Sha256::digest([padded(0x5c), inner.to_vec()].concat()).to_vec()
}

#[derive(Default)]
struct Inner {
    calls: Vec<Call>,
    answer: Option<(u16, Option<String>)>,
}

/// The server; it ends with the test.
pub struct Receiver {
    address: String,
    inner: Arc<Mutex<Inner>>,
}

impl Receiver {
    pub async fn start() -> Self {
        let inner = Arc::new(Mutex::new(Inner::default()));
        let router = Router::new().fallback(take).with_state(inner.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, inner }
    }

    /// Its address: `scheme`, perhaps with a user, and a path.
    pub fn url(&self, scheme: &str, path: &str) -> String {
        format!("{scheme}{}{path}", self.address)
    }

    /// From now on it answers so.
    pub fn answer_with(&self, status: u16, retry_after: Option<&str>) {
        self.lock().answer = Some((status, retry_after.map(str::to_owned)));
    }

    /// What it was told since it was last asked.
    pub fn take(&self) -> Vec<Call> {
        std::mem::take(&mut self.lock().calls)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn take(State(inner): State<Arc<Mutex<Inner>>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let text = |value: &axum::http::HeaderValue| value.to_str().unwrap_or_default().to_owned();
    let headers = headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect();
    let body = String::from_utf8(body.to_vec()).unwrap_or_default();
    let mut inner = inner.lock().unwrap_or_else(PoisonError::into_inner);
    inner.calls.push(Call { path: uri.path().to_owned(), headers, body });
    let (status, retry_after) = inner.answer.clone().unwrap_or((200, None));
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    match retry_after {
        Some(wait) => (status, [("retry-after", wait)]).into_response(),
        None => status.into_response(),
    }
}
