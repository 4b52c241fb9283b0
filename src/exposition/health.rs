//! The process's own health, from Prometheus' text format to OpenMetrics.

/// Adds a document of text format 0.0.4 to one of OpenMetrics, its end left to what follows. Values, labels and their
/// escapes are written alike in both. What differs: a counter's family goes without the `_total` of its samples, bounds
/// of buckets are floats, and there are no empty lines.
pub fn as_open_metrics(text: &str, document: &mut String) {
    let counters = || text.lines().filter_map(counter_family);
    for line in text.lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix("# ").and_then(Comment::read) {
            Some(comment) => comment.write(counters().any(|family| family == comment.family), document),
            None => write_sample(line, document),
        }
        document.push('\n');
    }
}

fn counter_family(line: &str) -> Option<&str> {
    line.strip_prefix("# TYPE ")?.strip_suffix(" counter")
}

/// A line that describes a family.
struct Comment<'a> {
    keyword: &'a str,
    family: &'a str,
    rest: &'a str,
}

impl<'a> Comment<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let mut words = line.splitn(3, ' ');
        Some(Self { keyword: words.next()?, family: words.next()?, rest: words.next().unwrap_or_default() })
    }

    fn write(&self, is_counter: bool, document: &mut String) {
        let Self { keyword, family, rest } = self;
        let (family, rest) = match family.strip_suffix("_total") {
            Some(stem) if is_counter => (stem, *rest),
            // Counters must end so; one that does not is still a number.
            None if is_counter && *keyword == "TYPE" => (*family, "unknown"),
            _ => (*family, *rest),
        };
        for word in ["# ", keyword, " ", family, " ", rest] {
            document.push_str(word);
        }
    }
}

fn write_sample(line: &str, document: &mut String) {
    const BOUND: &str = "le=\"";
    let bound = line.rfind(BOUND).map(|at| at + BOUND.len());
    let whole = bound.and_then(|start| Some((start, start + line[start..].find('"')?)));
    match whole {
        Some((start, end)) if line[start..end].bytes().all(|byte| byte.is_ascii_digit()) => {
            document.push_str(&line[..end]);
            document.push_str(".0");
            document.push_str(&line[end..]);
        }
        _ => document.push_str(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_counters_bounds_and_empty_lines_change() {
        let text = "# HELP a_total What a is\n# TYPE a_total counter\na_total{x=\"le=\\\"\"} 2\n\n\
                    # TYPE b counter\nb 1\n\n# TYPE c_total gauge\nc_total 3\n\n\
                    # TYPE d_seconds histogram\nd_seconds_bucket{r=\"/x\",le=\"0.5\"} 1\n\
                    d_seconds_bucket{r=\"/x\",le=\"15\"} 1\nd_seconds_bucket{r=\"/x\",le=\"+Inf\"} 1\n\
                    d_seconds_sum{r=\"/x\"} 0.25\nd_seconds_count{r=\"/x\"} 1\n\n";
        let mut document = String::new();
        as_open_metrics(text, &mut document);
        let expected = "# HELP a What a is\n# TYPE a counter\na_total{x=\"le=\\\"\"} 2\n\
                        # TYPE b unknown\nb 1\n# TYPE c_total gauge\nc_total 3\n\
                        # TYPE d_seconds histogram\nd_seconds_bucket{r=\"/x\",le=\"0.5\"} 1\n\
                        d_seconds_bucket{r=\"/x\",le=\"15.0\"} 1\nd_seconds_bucket{r=\"/x\",le=\"+Inf\"} 1\n\
                        d_seconds_sum{r=\"/x\"} 0.25\nd_seconds_count{r=\"/x\"} 1\n";
        assert_eq!(document, expected);
    }
}
