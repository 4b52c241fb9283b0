//! Requests that share their ids: a chain of redirects is one request; anything else cannot be told apart, since the
//! server saw other ids or saw them several times.

use std::collections::{HashMap, VecDeque};

use super::identity::Identity;
use super::point::Labels;
use super::request::Request;
use model::Nanos;

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
    pub fn leaves_out(&self, labels: &Labels) -> Option<&'static str> {
        let (name, url) = (labels.any("name").unwrap_or_default(), labels.any("url").unwrap_or_default());
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
pub fn resolve(mut requests: Vec<Request>) -> Vec<Fate> {
    requests.sort_by_key(|request| (request.end, request.start));
    // A filter that names one hop means the chain.
    let whole = is_chain(&requests) && requests.iter().any(|request| request.left_out.is_none());
    let mut wanted = Vec::new();
    let mut fates = Vec::new();
    for request in requests {
        match request.left_out.filter(|_| !whole) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::record_line::RecordLine;
    use model::{TraceId, UnixNanos};

    fn request(status: i64, start: i64, end: i64) -> Request {
        let (start, end) = (UnixNanos(start * 1_000_000), UnixNanos(end * 1_000_000));
        let line = RecordLine { status: Some(status), started_at: Some(start), ..RecordLine::default() };
        Request { start, end, status: Some(status), left_out: None, line }
    }

    fn fates(requests: &[Request]) -> Vec<String> {
        let told = |fate| match fate {
            Fate::Import(request) => request.status.unwrap_or_default().to_string(),
            Fate::LeaveOut(reason) | Fate::Refuse(reason) => reason.to_owned(),
        };
        resolve(requests.to_vec()).into_iter().map(told).collect()
    }

    #[test]
    fn only_redirects_one_after_another_are_a_chain() {
        let first = request(302, 0, 10);
        let last = request(503, 10, 90);
        assert_eq!(fates(&[last.clone(), first.clone()]), [REDIRECT, "503"]);
        assert_eq!(fates(&[first.clone(), request(200, 5, 90)]), [SEVERAL; 2], "they overlap");
        assert_eq!(fates(&[request(503, 0, 10), request(200, 20, 30)]), [SEVERAL; 2], "no redirect");
        assert_eq!(fates(&[first.clone(), first.clone()]), ["302"; 2], "copies");
        let filtered = Request { left_out: Some(FILTERED), ..last };
        assert_eq!(fates(&[first, filtered.clone()]), [REDIRECT, "503"], "a filter finds a chain by any hop");
        assert_eq!(fates(&[filtered]), [FILTERED]);
    }

    #[test]
    fn uploads_are_known_by_their_path() {
        for (url, own) in [
            ("http://t:8080/api/v1/records", true),
            ("http://t/base/api/v1/records/?x=1", true),
            ("tracejoin-records", true),
            ("http://t/api/v1/records/7", false),
            ("", false),
        ] {
            let labels = Labels { tags: [("url".to_owned(), url.to_owned())].into(), ..Labels::default() };
            let told = Filter::default().leaves_out(&labels);
            assert_eq!(told, own.then_some(OWN_UPLOAD), "{url}");
        }
    }

    #[test]
    fn no_more_than_a_bounded_number_is_held() {
        let mut held = Held::default();
        let id = |n: usize| {
            let trace_id = TraceId::from_bytes((n as u128 + 1).to_be_bytes()).expect("an id");
            Identity { trace_id, span_id: None, sampled: None }
        };
        for n in 0..HELD {
            assert_eq!(held.add(id(n), request(200, 0, n as i64)), None);
        }
        let oldest = held.add(id(0), request(200, 0, 1)).expect("over the bound");
        assert_eq!((oldest.len(), held.count), (2, HELD - 1), "all of the oldest identity");
    }
}
