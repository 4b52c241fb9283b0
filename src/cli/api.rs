//! A server's REST API, as the commands use it.

use std::time::Duration;

use anyhow::{Context, bail};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use url::Url;

use api::TraceAnswer;
use model::{State, TraceId};

/// How often a request that is being joined is looked for.
const POLL: Duration = Duration::from_millis(500);

/// Which server to talk to.
#[derive(Debug, Clone, clap::Args)]
pub struct ServerArgs {
    /// The server's REST address
    #[arg(long, env = "TRACEJOIN_SERVER", value_name = "URL", default_value = "http://127.0.0.1:8080")]
    pub server: Url,
}

/// A server's REST API.
#[derive(Debug, Clone)]
pub struct Api {
    base: Url,
    http: Client,
}

/// The part of a problem document that people read.
#[derive(Debug, Deserialize)]
struct Problem {
    detail: String,
}

impl Api {
    /// The API at an address.
    ///
    /// # Errors
    /// Where no HTTP client can be made.
    pub fn new(server: &ServerArgs) -> anyhow::Result<Self> {
        Self::at(server.server.clone())
    }

    /// The same, at an address of our own.
    ///
    /// # Errors
    /// Where no HTTP client can be made.
    pub fn at(base: Url) -> anyhow::Result<Self> {
        Ok(Self { base, http: http_client()? })
    }

    /// The address of a resource; `segments` are escaped where they need it.
    pub fn url(&self, segments: &[&str]) -> anyhow::Result<Url> {
        let mut url = self.base.clone();
        match url.path_segments_mut() {
            Ok(mut path) => path.pop_if_empty().extend(segments),
            Err(()) => bail!("{} cannot be a server's address; give one such as http://127.0.0.1:8080", self.base),
        };
        Ok(url)
    }

    /// Asks for a resource in a form; `None` where there is no such thing.
    ///
    /// # Errors
    /// Where the server cannot be reached, or refuses.
    pub async fn get(&self, url: Url, form: &str) -> anyhow::Result<Option<Response>> {
        let address = url.to_string();
        let response = self.http.get(url).header(ACCEPT, form).send().await;
        let response = response.with_context(|| self.unreachable())?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        if !response.status().is_success() {
            bail!("{address}: {}", refusal(response).await);
        }
        Ok(Some(response))
    }

    /// Asks for a resource as JSON.
    ///
    /// # Errors
    /// As [`Api::get`], and where there is no such thing or the answer has another form.
    pub async fn get_json<T: DeserializeOwned>(&self, url: Url) -> anyhow::Result<T> {
        let address = url.to_string();
        let found = self.get(url, "application/json").await?;
        let response = found.with_context(|| format!("{address} is not there; is that server of the same version?"))?;
        response.json().await.with_context(|| format!("{address} did not answer as expected"))
    }

    /// Puts a document, written as YAML or JSON, in the place of a resource.
    ///
    /// # Errors
    /// Where the server cannot be reached, refuses, or answers in another form.
    pub async fn put_document<T: DeserializeOwned>(&self, url: Url, document: String) -> anyhow::Result<T> {
        let request = self.http.put(url).header(CONTENT_TYPE, "application/yaml").body(document);
        self.answered(request).await
    }

    /// Deletes a resource.
    ///
    /// # Errors
    /// Where the server cannot be reached, refuses, or answers in another form.
    pub async fn delete<T: DeserializeOwned>(&self, url: Url) -> anyhow::Result<T> {
        self.answered(self.http.delete(url)).await
    }

    /// Asks for a resource as JSON, and passes on what the server says where there is none.
    ///
    /// # Errors
    /// Where the server cannot be reached, refuses, or answers in another form.
    pub async fn get_known<T: DeserializeOwned>(&self, url: Url) -> anyhow::Result<T> {
        self.answered(self.http.get(url)).await
    }

    async fn answered<T: DeserializeOwned>(&self, request: RequestBuilder) -> anyhow::Result<T> {
        let response = request.send().await.with_context(|| self.unreachable())?;
        if !response.status().is_success() {
            bail!("{}", refusal(response).await);
        }
        response.json().await.context("the server did not answer as expected; is it of the same version?")
    }

    /// Posts a question as JSON and reads the answer as JSON.
    ///
    /// # Errors
    /// Where the server cannot be reached, refuses, or answers in another form.
    pub async fn post_json<T: DeserializeOwned>(&self, url: Url, body: &impl Serialize) -> anyhow::Result<T> {
        let address = url.to_string();
        let response = self.http.post(url).json(body).send().await.with_context(|| self.unreachable())?;
        if !response.status().is_success() {
            bail!("{address}: {}", refusal(response).await);
        }
        response.json().await.with_context(|| format!("{address} did not answer as expected"))
    }

    /// What the server says of a trace once it is joined, or as it stands when the time is over.
    ///
    /// # Errors
    /// As [`Api::get_json`], and where the server knows no request of the trace.
    pub async fn wait_until_joined(&self, trace: &TraceId, patience: Duration) -> anyhow::Result<TraceAnswer> {
        let url = self.url(&["api", "v1", "traces", &trace.to_string()])?;
        let deadline = Instant::now() + patience;
        loop {
            let answer: TraceAnswer = self.get_json(url.clone()).await?;
            if answer.requests().is_empty() {
                bail!("the server explains no request of this trace");
            }
            let pending = answer.requests().iter().any(|request| request.state == State::Pending);
            if !pending || Instant::now() > deadline {
                return Ok(answer);
            }
            tokio::time::sleep(POLL).await;
        }
    }

    fn unreachable(&self) -> String {
        format!("cannot reach {}; start `tracejoin serve` there, or name another server with --server", self.base)
    }
}

/// An HTTP client that can speak TLS.
///
/// # Errors
/// Where the system's certificates cannot be used.
pub fn http_client() -> anyhow::Result<Client> {
    // Fails only where a provider is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().build().context("cannot make an HTTP client")
}

/// What a server says of a refusal: the problem's detail, else the status.
pub async fn refusal(response: Response) -> String {
    let status = response.status();
    match response.json::<Problem>().await {
        Ok(problem) => problem.detail,
        Err(_) => format!("the server answered {status}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_keep_the_servers_path_and_escape_their_parts() {
        let url = |base: &str| {
            let api = Api::at(base.parse().expect("a URL")).expect("a client");
            api.url(&["api", "v1", "traces", "a/b"]).expect("an address").to_string()
        };
        assert_eq!(url("http://127.0.0.1:8080"), "http://127.0.0.1:8080/api/v1/traces/a%2Fb");
        assert_eq!(url("https://example.org/tj/"), "https://example.org/tj/api/v1/traces/a%2Fb");
    }
}
