//! A client for the HTTP endpoints.

use std::net::SocketAddr;

use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};
use reqwest::{Client, Method, StatusCode};

/// An answer, read whole.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("plain text"))
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("the body is JSON")
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Sends `body` with what the headers should say of it; an empty header is left out.
pub async fn post(addr: SocketAddr, path: &str, content_type: &str, encoding: &str, body: Vec<u8>) -> Answer {
    send(Method::POST, addr, path, content_type, encoding, body).await
}

pub async fn send(
    method: Method,
    addr: SocketAddr,
    path: &str,
    content_type: &str,
    encoding: &str,
    body: Vec<u8>,
) -> Answer {
    let mut request = client().request(method, format!("http://{addr}{path}")).body(body);
    if !content_type.is_empty() {
        request = request.header(CONTENT_TYPE, content_type);
    }
    if !encoding.is_empty() {
        request = request.header(CONTENT_ENCODING, encoding);
    }
    let response = request.send().await.expect("the request is answered");
    let (status, headers) = (response.status(), response.headers().clone());
    let body = response.bytes().await.expect("the answer is whole").to_vec();
    Answer { status, headers, body }
}

fn client() -> Client {
    // The client wants a TLS provider even where it speaks plain HTTP; a second installation changes nothing.
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
    Client::new()
}
