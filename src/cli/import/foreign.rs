//! Files that were handed to the wrong importer, or that none can read, and what to do instead.

use anyhow::{Context, bail};

use super::input::{self, Input};

/// A format, known by words that all stand in the beginning of its files.
struct Sign {
    /// The importers that read it.
    importers: &'static [&'static str],
    words: &'static [&'static str],
    what: &'static str,
    way_out: &'static str,
}

const NO_IDS: &str = "it holds no id of a request and no wall clock, so nothing can be joined with a server's spans";

/// The more particular before the more general.
const SIGNS: &[Sign] = &[
    Sign {
        importers: &["k6"],
        words: &["\"metric\"", "\"type\"", "\"data\""],
        what: "k6's JSON output",
        way_out: "use `tracejoin import k6`",
    },
    Sign {
        importers: &[],
        words: &["metric_name,timestamp,metric_value"],
        what: "k6's CSV output",
        way_out: "its times are whole seconds; run k6 with `--out json=FILE` and use `tracejoin import k6`",
    },
    Sign {
        importers: &[],
        words: &["\"metrics\"", "\"avg\"", "\"med\""],
        what: "k6's summary",
        way_out: "it holds no single request; run k6 with `--out json=FILE` and use `tracejoin import k6`",
    },
    Sign {
        importers: &["aiperf"],
        words: &["\"metadata\"", "\"request_start_ns\""],
        what: "AIPerf's profile_export.jsonl",
        way_out: "use `tracejoin import aiperf`",
    },
    Sign {
        importers: &[],
        words: &["\"request_throughput\"", "\"unit\"", "\"avg\""],
        what: "AIPerf's or GenAI-Perf's summary",
        way_out: "it holds no single request; use `tracejoin import aiperf` with the profile_export.jsonl beside it",
    },
    Sign {
        importers: &[],
        words: &["\"experiments\"", "\"requests\""],
        what: "perf_analyzer's profile export, as GenAI-Perf keeps it",
        way_out: "it holds no id of a request; run AIPerf, its successor, and use `tracejoin import aiperf`",
    },
    Sign {
        importers: &["vllm-bench"],
        words: &["\"tokenizer_id\"", "\"num_prompts\""],
        what: "a result of `vllm bench serve`",
        way_out: "use `tracejoin import vllm-bench`",
    },
    Sign {
        importers: &["guidellm"],
        words: &["guidellm_version"],
        what: "a GuideLLM report",
        way_out: "use `tracejoin import guidellm`",
    },
    // YAML sorts its keys, so that a report's version stands at its end.
    Sign {
        importers: &["guidellm"],
        words: &["benchmarks:", "config:", "scheduler"],
        what: "a GuideLLM report",
        way_out: "use `tracejoin import guidellm`",
    },
    Sign { importers: &[], words: &["\"successRate\"", "\"requestsPerSec\""], what: "an oha result", way_out: NO_IDS },
    Sign {
        importers: &[],
        words: &["end_to_end_latency_s", "inter_token_latency_s"],
        what: "an llmperf result",
        way_out: NO_IDS,
    },
    Sign {
        importers: &[],
        words: &["Type,Name,Request Count"],
        what: "Locust's statistics",
        way_out: "they hold no single request; log the request event and use `tracejoin import locust`",
    },
    Sign {
        importers: &["locust"],
        words: &["response_time", "status_code", ","],
        what: "a log of Locust's request event",
        way_out: "use `tracejoin import locust`",
    },
    Sign {
        importers: &["otlp"],
        words: &["\"resourceSpans\""],
        what: "OTLP traces",
        way_out: "use `tracejoin import otlp`",
    },
    Sign {
        importers: &["records", "k6"],
        words: &["\"trace", "\"duration_ms\""],
        what: "client records",
        way_out: "use `tracejoin import records`",
    },
];

/// Refuses a file whose beginning is known to be of another format than `importer` reads.
///
/// # Errors
/// What the file is instead, and what to do; or a failure of the input.
pub fn refuse(input: &mut Input, importer: &str) -> anyhow::Result<()> {
    let head = input::peek(input).context("cannot read the file")?;
    let head = String::from_utf8_lossy(head);
    let Some(sign) = recognise(&head) else { return Ok(()) };
    if sign.importers.contains(&importer) {
        return Ok(());
    }
    bail!("the file is {}, not what `tracejoin import {importer}` reads: {}", sign.what, sign.way_out)
}

fn recognise(head: &str) -> Option<&'static Sign> {
    SIGNS.iter().find(|sign| sign.words.iter().all(|word| head.contains(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(importer: &str, text: &str) -> Option<String> {
        let mut input = input::of_bytes(text.as_bytes().to_vec()).expect("opened");
        refuse(&mut input, importer).err().map(|error| error.to_string())
    }

    #[test]
    fn each_format_is_told_from_the_others() {
        for (importer, text) in [
            ("k6", r#"{"metric":"http_reqs","type":"Point","data":{"time":"2026-01-02T03:04:05Z","value":1}}"#),
            ("aiperf", r#"{"metadata":{"session_num":0,"request_start_ns":1,"request_end_ns":2},"metrics":{}}"#),
            ("vllm-bench", r#"{"date":"20260102-030405","tokenizer_id":"m","num_prompts":2,"completed":2}"#),
            ("guidellm", "{\"metadata\": {\"version\": 2, \"guidellm_version\": \"0.8.1\"}}"),
            ("guidellm", "benchmarks:\n- config:\n    constraints: {}\n  scheduler_metrics:\n"),
            ("locust", "timestamp,request_type,name,response_time_ms,response_length,status_code,exception\r\n"),
            ("otlp", r#"{"resourceSpans":[]}"#),
            ("records", r#"{"trace_id":"0af7651916cd43dd8448eb211c80319c","duration_ms":1}"#),
        ] {
            for other in ["k6", "aiperf", "vllm-bench", "guidellm", "locust", "otlp", "records"] {
                let refusal = refusal(other, text);
                // A k6 script may write whole records to its console.
                let reads = other == importer || (other, importer) == ("k6", "records");
                assert_eq!(refusal.is_none(), reads, "{other} of {text}: {refusal:?}");
                let names_it =
                    refusal.is_none_or(|refusal| refusal.contains(&format!("`tracejoin import {importer}`")));
                assert!(names_it, "{other} of {text}");
            }
        }
    }

    #[test]
    fn what_cannot_be_joined_is_refused_with_the_reason() {
        for (text, reason) in [
            ("metric_name,timestamp,metric_value,check\nhttp_reqs,1795980792,1.0,", "whole seconds"),
            ("{\n  \"metrics\": {\n    \"iterations\": {\"avg\": 1, \"med\": 1}}}", "no single request"),
            ("{\"summary\": {\"successRate\": 1.0, \"total\": 2.0, \"requestsPerSec\": 5.0}}", "no id"),
            ("[{\"error_code\": null, \"inter_token_latency_s\": 1, \"end_to_end_latency_s\": 2}]", "no id"),
            ("{\"experiments\": [{\"experiment\": {}, \"requests\": []}]}", "AIPerf"),
            ("{\"request_throughput\": {\"unit\": \"requests/sec\", \"avg\": 3.1}}", "profile_export.jsonl"),
            ("Type,Name,Request Count,Failure Count\nGET,/,1,0", "request event"),
        ] {
            let refusal = refusal("aiperf", text).expect(text);
            assert!(refusal.contains(reason), "{refusal}");
        }
    }

    #[test]
    fn what_is_not_known_is_left_to_the_importer() {
        for text in ["", "{}", "no format at all"] {
            assert_eq!(refusal("aiperf", text), None);
        }
    }
}
