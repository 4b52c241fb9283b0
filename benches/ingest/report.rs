//! Figures as Markdown tables: medians over the rounds, with the least and the greatest in brackets.

use std::time::Duration;

use super::run::Measured;

/// The table of runs, one line for the rounds of each plan.
pub fn table(groups: &[Vec<Measured>]) -> String {
    let mut lines = vec![
        "| exporters | acknowledged spans/s | requests/s | of COPY | acknowledgement p50, p99 ms | joined requests/s | of \
         COPY | B a request | CPU µs a request: server, PostgreSQL, sender | by id p50, p99 ms | refused | load |"
            .to_owned(),
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |".to_owned(),
    ];
    lines.extend(groups.iter().map(|rounds| line(rounds)));
    lines.join("\n")
}

/// The line of one plan's rounds.
pub fn line(rounds: &[Measured]) -> String {
    let show = |decimals, figure: &dyn Fn(&Measured) -> f64| spread(rounds.iter().map(figure).collect(), decimals);
    let plan = rounds[0].plan;
    let name = match plan.rate {
        Some(rate) => format!("{} at {rate:.0} requests/s", plan.exporters),
        None => plan.exporters.to_string(),
    };
    let columns = [
        name,
        show(0, &|run| run.sent.spans as f64 / run.acknowledging.as_secs_f64()),
        show(0, &Measured::acknowledged_rate),
        show(2, &|run| run.acknowledged_rate() * run.bare.arrivals.as_secs_f64()),
        format!(
            "{}, {}",
            show(1, &|run| quantile(&run.sent.waits, 0.5)),
            show(1, &|run| quantile(&run.sent.waits, 0.99))
        ),
        show(0, &Measured::joined_rate),
        show(2, &|run| run.joined_rate() * (run.bare.arrivals + run.bare.requests).as_secs_f64()),
        show(0, &|run| run.stored.bytes as f64 / run.stored.rows as f64),
        format!(
            "{}, {}, {}",
            show(1, &|run| run.micros_a_request(run.used.server)),
            show(1, &|run| run.micros_a_request(run.used.postgres)),
            show(1, &|run| run.micros_a_request(run.used.generator)),
        ),
        format!("{}, {}", show(1, &|run| quantile(&run.lookups, 0.5)), show(1, &|run| quantile(&run.lookups, 0.99))),
        show(0, &|run| run.sent.refused as f64),
        show(1, &|run| run.load_average),
    ];
    format!("| {} |", columns.join(" | "))
}

impl Measured {
    fn acknowledged_rate(&self) -> f64 {
        self.sent.requests as f64 / self.acknowledging.as_secs_f64()
    }

    /// Requests joined a second.
    pub fn joined_rate(&self) -> f64 {
        self.stored.rows as f64 / self.joining.as_secs_f64()
    }

    fn micros_a_request(&self, used: Duration) -> f64 {
        used.as_secs_f64() * 1e6 / self.stored.rows as f64
    }
}

/// The median, with least and greatest where there are several.
fn spread(mut values: Vec<f64>, decimals: usize) -> String {
    values.sort_by(f64::total_cmp);
    let middle = median(&values);
    match values.as_slice() {
        [least, .., greatest] => format!("{middle:.decimals$} ({least:.decimals$}–{greatest:.decimals$})"),
        _ => format!("{middle:.decimals$}"),
    }
}

/// The middle one of sorted values; of two, the lower.
pub fn median(sorted: &[f64]) -> f64 {
    sorted[(sorted.len() - 1) / 2]
}

/// The ⌈q·n⌉-th smallest, in milliseconds.
fn quantile(times: &[Duration], q: f64) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1].as_secs_f64() * 1e3
}
