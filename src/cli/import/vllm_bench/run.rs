//! One run; names are those of vLLM. Generated texts are passed over as they are read.

use anyhow::bail;
use serde::Deserialize;

use model::Nanos;

/// Times are seconds; index i of every list is request i.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Run {
    /// The model asked for.
    pub model_id: Option<String>,
    /// Most requests under way.
    pub max_concurrency: Option<u64>,
    /// Requests that succeeded.
    pub completed: Option<u64>,
    /// Requests that did not; older versions do not tell.
    pub failed: Option<u64>,
    /// Tokens of the prompts.
    pub input_lens: Option<Vec<Option<i64>>>,
    /// Tokens of the answers.
    pub output_lens: Option<Vec<Option<i64>>>,
    /// Start to the first chunk with a choice.
    pub ttfts: Option<Vec<f64>>,
    /// Gaps between chunks.
    pub itls: Option<Vec<Vec<f64>>>,
    /// Start to the last chunk with a token; older versions do not tell.
    pub latencies: Option<Vec<f64>>,
    /// Starts by a monotonic clock: only their differences mean anything.
    pub start_times: Option<Vec<f64>>,
    /// Waiting for the bench's own limit of concurrency.
    pub queue_times: Option<Vec<f64>>,
    /// Empty where a request succeeded.
    pub errors: Option<Vec<String>>,
}

impl Run {
    /// How many requests the lists hold.
    ///
    /// # Errors
    /// Lists that are missing, of different lengths, or at odds with the run's own counts.
    pub fn requests(&self) -> anyhow::Result<usize> {
        let Some(requests) = self.ttfts.as_ref().map(Vec::len) else {
            bail!("it has no times of single requests; run the bench with --save-detailed");
        };
        for (name, length) in self.lengths() {
            if length.is_some_and(|length| length != requests) {
                bail!(
                    "{name} does not have {requests} members as ttfts does, so members cannot be told apart by index"
                );
            }
        }
        let told = self.completed.unwrap_or_default() + self.failed.unwrap_or_default();
        let is_told = self.completed.is_some() && self.failed.is_some();
        if is_told && told != requests as u64 {
            bail!("it counts {told} requests but lists {requests}, so ids cannot be rebuilt from the index");
        }
        Ok(requests)
    }

    fn lengths(&self) -> [(&'static str, Option<usize>); 7] {
        [
            ("input_lens", self.input_lens.as_ref().map(Vec::len)),
            ("output_lens", self.output_lens.as_ref().map(Vec::len)),
            ("itls", self.itls.as_ref().map(Vec::len)),
            ("latencies", self.latencies.as_ref().map(Vec::len)),
            ("start_times", self.start_times.as_ref().map(Vec::len)),
            ("queue_times", self.queue_times.as_ref().map(Vec::len)),
            ("errors", self.errors.as_ref().map(Vec::len)),
        ]
    }

    /// How long after the run's first request one started.
    pub fn offset(&self, index: usize) -> Nanos {
        let Some(starts) = &self.start_times else { return Nanos(0) };
        // A request that failed before its start was noted has 0.
        let first = starts.iter().copied().filter(|start| *start > 0.0).fold(f64::INFINITY, f64::min);
        Nanos::from_secs(starts[index] - first).filter(|offset| offset.0 >= 0).unwrap_or_default()
    }

    /// Start to the last token from the gaps; `None` where no token came.
    pub fn last_token(&self, index: usize) -> Option<Nanos> {
        let ttft = self.ttfts.as_ref()?[index];
        let gaps: f64 = self.itls.as_ref()?[index].iter().sum();
        Nanos::from_secs(ttft + gaps).filter(|_| ttft > 0.0)
    }

    /// The text of a failure; empty where there was none.
    pub fn error(&self, index: usize) -> &str {
        self.errors.as_ref().map_or("", |errors| &errors[index])
    }
}
