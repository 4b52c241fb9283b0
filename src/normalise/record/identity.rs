//! The digest by which a record that was sent again is recognised.

use sha2::{Digest, Sha256};

use crate::model::{ClientRecord, Nanos, ResponseMetrics, StreamSummary};

/// Of the byte form: a new one would make every stored record a new one.
const VERSION: u8 = 1;

/// A digest over a record's identity and its measured fields: equal for a record sent again, whatever its labels.
///
/// It is the first 8 bytes, in network order, of a SHA-256 over: the version, one byte; the trace id, 16 bytes; then a
/// sequence of optional integers in the order below. An absent one is the byte 0, a present one the byte 1 and 8 bytes
/// in network order. Durations are nanoseconds, booleans 0 and 1, and an absent object is all of its fields absent.
pub fn identity(record: &ClientRecord) -> i64 {
    let mut form = Form(Sha256::new_with_prefix([VERSION]));
    form.0.update(record.trace_id.as_bytes());
    form.put(record.span_id.map(|id| i64::from_be_bytes(*id.as_bytes())));
    times(record, &mut form);
    form.put(record.streaming.map(i64::from));
    form.put(record.status);
    form.put(Some(record.result as i64));
    form.put(record.input_tokens);
    form.put(record.output_tokens);
    stream(&record.stream.unwrap_or_default(), &mut form);
    let metrics: ResponseMetrics = record.response_metrics.unwrap_or_default();
    form.durations(&[metrics.queue, metrics.prefill, metrics.decode]);
    form.put(Some(i64::from(record.headers_only)));
    form.put(record.cold_start.map(i64::from));
    form.finish()
}

fn times(record: &ClientRecord, form: &mut Form) {
    let setup = record.setup;
    form.durations(&[record.duration, record.wall]);
    form.durations(&[setup.blocked, setup.dns, setup.connect, setup.tls]);
    form.durations(&[record.client_queue, record.headers, record.sending, record.waiting, record.receiving]);
    form.durations(&[record.ttft, record.ttft_visible]);
}

fn stream(stream: &StreamSummary, form: &mut Form) {
    form.put(stream.business_events);
    form.put(stream.batched_events);
    form.durations(&[stream.p50_gap, stream.p95_gap, stream.p99_gap, stream.max_gap]);
    form.put(stream.gaps_over_1s);
    form.put(stream.done_received.map(i64::from));
    form.put(stream.last_seq);
    form.put(stream.missing_seq);
    form.durations(&[stream.last_event]);
    form.put(stream.tokens_after_first);
}

struct Form(Sha256);

impl Form {
    fn put(&mut self, value: Option<i64>) {
        self.0.update([u8::from(value.is_some())]);
        if let Some(value) = value {
            self.0.update(value.to_be_bytes());
        }
    }

    fn durations(&mut self, durations: &[Option<Nanos>]) {
        for duration in durations {
            self.put(duration.map(|duration| duration.0));
        }
    }

    fn finish(self) -> i64 {
        let mut first = [0; 8];
        first.copy_from_slice(&self.0.finalize()[..8]);
        i64::from_be_bytes(first)
    }
}
