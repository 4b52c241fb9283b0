//! The labels of request metrics, and the cap on how many sets of them there are.

use std::collections::HashSet;
use std::fmt;

use prometheus_client::encoding::{EncodeLabelSet, LabelSetEncoder};

use model::{Dimension, Dimensions, Request, ResultClass, TraceId};

/// The value of every label beyond the cap.
const OVERFLOW: &str = "overflow";

/// What a request's series are told apart by. An empty value is unknown, as Prometheus has it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, EncodeLabelSet)]
pub struct Combination {
    pub model: String,
    /// The provider or route.
    pub provider: String,
    /// The pool of accelerators.
    pub pool: String,
    pub region: String,
    /// Whether the answer was streamed.
    pub streaming: String,
    /// How the request ended.
    pub result: &'static str,
}

impl Combination {
    /// The labels that a request's dimensions tell, in the order of the fields.
    pub const DIMENSIONS: [Dimension; 5] =
        [Dimension::Model, Dimension::Provider, Dimension::Pool, Dimension::Region, Dimension::Streaming];

    pub fn of(request: &Request) -> Self {
        Self::with(|dimension| value(&request.dimensions, dimension), request.result)
    }

    /// Where requests are counted whose own labels are too many. Results are few, and are never mixed.
    fn overflow(result: &'static str) -> Self {
        Self { result, ..Self::with(|_| OVERFLOW.to_owned(), None) }
    }

    fn with(value: impl Fn(Dimension) -> String, result: Option<ResultClass>) -> Self {
        let [model, provider, pool, region, streaming] = Self::DIMENSIONS.map(value);
        Self { model, provider, pool, region, streaming, result: result.map_or("", ResultClass::name) }
    }
}

fn value(dimensions: &Dimensions, dimension: Dimension) -> String {
    dimensions.get(dimension).unwrap_or_default().to_owned()
}

/// Admits as many combinations as there are series for.
#[derive(Debug)]
pub struct Cap {
    admitted: HashSet<Combination>,
    most: usize,
}

impl Cap {
    /// A cap of `series`, of which each combination may take `each`. There is always room for one.
    pub fn new(series: usize, each: usize) -> Self {
        Self { admitted: HashSet::new(), most: (series / each).max(1) }
    }

    /// The combination to count under, and whether that is the overflow.
    pub fn admit(&mut self, combination: Combination) -> (Combination, bool) {
        if self.admitted.contains(&combination) {
            return (combination, false);
        }
        if self.admitted.len() >= self.most {
            return (Combination::overflow(combination.result), true);
        }
        self.admitted.insert(combination.clone());
        (combination, false)
    }
}

/// A combination and one label more.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct With {
    /// The name of the label.
    pub label: &'static str,
    pub value: &'static str,
    /// The others.
    pub combination: Combination,
}

impl EncodeLabelSet for With {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), fmt::Error> {
        [(self.label, self.value)].encode(encoder)?;
        self.combination.encode(encoder)
    }
}

/// What leads from a bucket to a trace: 40 of the 128 characters that OpenMetrics allows.
#[derive(Debug, Clone, Copy)]
pub struct Exemplar(pub TraceId);

impl EncodeLabelSet for Exemplar {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), fmt::Error> {
        [("trace_id", self.0.to_string())].encode(encoder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(model: &str, result: &'static str) -> Combination {
        Combination { model: model.to_owned(), result, ..Combination::with(|_| String::new(), None) }
    }

    #[test]
    fn beyond_the_cap_all_share_one_set_and_those_within_keep_theirs() {
        let mut cap = Cap::new(45, 20);
        assert_eq!(cap.admit(of("a", "ok")), (of("a", "ok"), false));
        assert_eq!(cap.admit(of("b", "ok")), (of("b", "ok"), false));
        let (shared, over) = cap.admit(of("c", "ok"));
        assert_eq!(
            (shared.model.as_str(), shared.streaming.as_str(), shared.result, over),
            ("overflow", "overflow", "ok", true)
        );
        assert_eq!(cap.admit(of("d", "ok")), (shared.clone(), true));
        assert_ne!(cap.admit(of("d", "error")).0, shared);
        assert_eq!(cap.admit(of("a", "ok")), (of("a", "ok"), false));
    }
}
