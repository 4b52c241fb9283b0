//! Requests that share their ids: a chain of redirects is one request; anything else cannot be told apart, since the
//! server saw other ids or saw them several times.

use std::collections::{HashMap, VecDeque};

use super::identity::Identity;
use super::request::Request;
use crate::model::Nanos;

/// Requests that are held back to see whether others share their ids. One that comes later is uploaded as well: the join
/// leaves out both then (`trace_id_collision`).
const HELD: usize = 20_000;

/// Clock readings of two hops may disagree by so much.
const TOLERANCE: Nanos = Nanos(1_000_000);

/// What is left out by a filter.
pub const FILTERED: &str = "a request that --name or --url leaves out";
/// What tracejoin.js and others upload while the load runs.
pub const OWN_UPLOAD: &str = "an upload of records to tracejoin itself";
/// A hop before the last.
pub const REDIRECT: &str = "a redirect that k6 followed: the request that it led to is the one imported";
/// What cannot be told apart.
pub const SEVERAL: &str = "several requests under one trace id and span id, as http.batch and metadata that is not deleted \
                           leave behind: give each its own with clients/k6/tracejoin.js, or name one with --name or --url";

/// Which requests to import.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Values of the tag `name`; none is any.
    pub names: Vec<String>,
    /// Starts of the tag `url`; none is any.
    pub urls: Vec<String>,
}

impl Filter {
    /// Why a request is left out; `None` where it is wanted.
    pub fn leaves_out(&self, request: &super::point::Labels) -> Option<&'static str> {
        let (name, url) = (request.any("name").unwrap_or_default(), request.any("url").unwrap_or_default());
        let named = self.names.is_empty() || self.names.iter().any(|wanted| wanted == name);
        let at = self.urls.is_empty() || self.urls.iter().any(|wanted| url.starts_with(wanted.as_str()));
        if !named || !at {
            return Some(FILTERED);
        }
        let own = |label: &str| label == "tracejoin-records" || path(label).ends_with("/api/v1/records");
        (own(name) || own(url)).then_some(OWN_UPLOAD)
    }
}

fn path(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/')
}

/// What becomes of a request.
#[derive(Debug, PartialEq)]
pub enum Fate {
    /// It is a record.
    Import(Box<Request>),
    /// It is none, as it should be.
    LeaveOut(&'static str),
    /// It cannot be one.
    Refuse(&'static str),
}

/// Says what becomes of all requests of one identity.
pub fn resolve(mut requests: Vec<Request>, filter: &Filter) -> Vec<Fate> {
    requests.sort_by_key(|request| (request.end, request.start));
    let chain = is_chain(&requests);
    let left_out: Vec<_> = requests.iter().map(|request| filter.leaves_out(&request.labels)).collect();
    let whole = chain && left_out.iter().any(Option::is_none);
    let mut wanted = Vec::new();
    let mut fates = Vec::new();
    for (request, left_out) in requests.into_iter().zip(left_out) {
        match left_out.filter(|_| !whole) {
            Some(reason) => fates.push(Fate::LeaveOut(reason)),
            None => wanted.push(request),
        }
    }
    fates.extend(told_apart(wanted));
    fates
}

fn told_apart(mut wanted: Vec<Request>) -> Vec<Fate> {
    if wanted.len() > 1 && is_chain(&wanted) {
        let last = wanted.pop();
        let hops = wanted.iter().map(|_| Fate::LeaveOut(REDIRECT));
        return hops.chain(last.map(|last| Fate::Import(Box::new(last)))).collect();
    }
    // Copies of one request, as in a file that holds a run twice: the server counts them as duplicates.
    let several = wanted.windows(2).any(|pair| pair[0] != pair[1]);
    let fate = |request| if several { Fate::Refuse(SEVERAL) } else { Fate::Import(Box::new(request)) };
    wanted.into_iter().map(fate).collect()
}

/// Whether each but the last is a redirect, and the next began after it.
fn is_chain(requests: &[Request]) -> bool {
    let redirects = |request: &Request| matches!(request.status, Some(301 | 302 | 303 | 307 | 308));
    requests.windows(2).all(|pair| redirects(&pair[0]) && pair[1].start + TOLERANCE >= pair[0].end)
}

/// Requests that are held back, by their ids.
#[derive(Debug, Default)]
pub struct Held {
    requests: HashMap<Identity, Vec<Request>>,
    order: VecDeque<Identity>,
    count: usize,
}

impl Held {
    /// Holds a request back; gives those of an identity that has been held for long enough.
    pub fn add(&mut self, identity: Identity, request: Request) -> Option<Vec<Request>> {
        self.count += 1;
        let same = self.requests.entry(identity).or_default();
        if same.is_empty() {
            self.order.push_back(identity);
        }
        same.push(request);
        if self.count > HELD { self.next() } else { None }
    }

    /// Those of the identity that has been held the longest.
    pub fn next(&mut self) -> Option<Vec<Request>> {
        let requests = self.requests.remove(&self.order.pop_front()?)?;
        self.count -= requests.len();
        Some(requests)
    }
}
