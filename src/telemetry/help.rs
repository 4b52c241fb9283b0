//! What each metric of the process's own health means, in one place, so that none goes without.

const COUNTERS: &[(&str, &str)] = &[
    ("tracejoin_alert_notifications_total", "Changes of alerts told, and attempts that failed, by receiver and result"),
    ("tracejoin_alert_transitions_total", "Alerts that fired or were resolved"),
    ("tracejoin_archive_lines_total", "Event lines written to the archive or lost to it"),
    ("tracejoin_attributes_dropped_total", "Span attributes dropped, since they are not on the allow-list"),
    ("tracejoin_commits_failed_total", "Group commits that failed"),
    ("tracejoin_commits_total", "Group commits"),
    ("tracejoin_committed_rows_total", "Arrivals committed"),
    ("tracejoin_events_total", "Event lines, by what became of them"),
    ("tracejoin_join_failures_total", "Traces that could not be joined for a fault of this program"),
    ("tracejoin_receive_accepted_total", "Spans, client records or event lines acknowledged"),
    ("tracejoin_receive_bytes_total", "Bytes acknowledged, after decompression"),
    ("tracejoin_receive_refused_total", "Requests of which nothing was taken, by reason"),
    ("tracejoin_receive_rejected_total", "Spans, client records or event lines refused for good, one by one"),
    ("tracejoin_receive_requests_total", "Requests acknowledged, by transport"),
    ("tracejoin_records_total", "Client records, by what became of them"),
    ("tracejoin_requests_corrected_total", "Joined requests that late data changed"),
    ("tracejoin_requests_joined_total", "Requests joined for the first time, by state"),
    ("tracejoin_rollups_built_total", "Minutes whose rollup was built"),
    ("tracejoin_slo_evaluations_total", "Objectives judged, and those that could not be"),
    ("tracejoin_slo_rounds_failed_total", "Rounds in which no objective could be judged"),
    ("tracejoin_slo_slices_counted_total", "Slices of requests counted for the burn rates of objectives"),
    ("tracejoin_spans_folded_total", "Spans dropped after their time was used"),
    ("tracejoin_spans_rejected_total", "Spans refused, by reason"),
    ("tracejoin_submits_refused_total", "Batches refused before their commit, by reason"),
    ("tracejoin_traces_ignored_total", "Traces without a request, by reason"),
];

const GAUGES: &[(&str, &str)] = &[
    ("tracejoin_alerts_firing", "Alerts that fire"),
    ("tracejoin_ingest_queue_bytes", "Memory of batches that wait for their commit"),
    ("tracejoin_join_lag_seconds", "How long the oldest settled trace has waited to be joined"),
    ("tracejoin_receive_in_flight_bytes", "Memory reserved by requests being received"),
];

const HISTOGRAMS: &[(&str, &str)] = &[
    ("tracejoin_commit_seconds", "Time of a group commit"),
    ("tracejoin_http_answer_seconds", "Time of a REST answer, by route and status"),
    ("tracejoin_join_claim_seconds", "Time to join the traces of one claim"),
    ("tracejoin_slo_round_seconds", "Time to judge every objective once"),
];

/// The help text of a metric, by its whole name.
pub(super) fn of(name: &str) -> Option<&'static str> {
    let all = COUNTERS.iter().chain(GAUGES).chain(HISTOGRAMS);
    all.copied().find_map(|(known, help)| (known == name).then_some(help))
}
