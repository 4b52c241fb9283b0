//! Which of two forms a scrape is answered in.

/// A form of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Prometheus' text format 0.0.4.
    Text,
    /// OpenMetrics 1.0.0, which has exemplars.
    OpenMetrics,
}

impl Form {
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// What the values of `Accept` prefer. Only who names OpenMetrics gets it, since a wildcard comes from readers that
    /// never heard of it.
    pub fn accepted<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let (mut open_metrics, mut text) = (0.0_f64, 0.0_f64);
        for range in values.into_iter().flat_map(|value| value.split(',')) {
            let Range { media, version, quality } = Range::read(range);
            match media.as_str() {
                "application/openmetrics-text" if matches!(version, None | Some("1.0.0")) => {
                    open_metrics = open_metrics.max(quality);
                }
                "text/plain" | "text/*" | "*/*" => text = text.max(quality),
                _ => {}
            }
        }
        if open_metrics > 0.0 && open_metrics >= text { Self::OpenMetrics } else { Self::Text }
    }
}

/// One media range of `Accept`.
struct Range<'a> {
    media: String,
    version: Option<&'a str>,
    quality: f64,
}

impl<'a> Range<'a> {
    fn read(range: &'a str) -> Self {
        let mut parts = range.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default().to_ascii_lowercase();
        let mut read = Self { media, version: None, quality: 1.0 };
        for (name, value) in parts.filter_map(|parameter| parameter.split_once('=')) {
            let value = value.trim().trim_matches('"');
            match name.trim().to_ascii_lowercase().as_str() {
                "version" => read.version = Some(value),
                // A weight that is none asks for nothing.
                "q" => read.quality = value.parse().unwrap_or(0.0),
                _ => {}
            }
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prometheus_gets_open_metrics_and_a_browser_text() {
        let second = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                      text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        let third = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
                     application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;q=0.3,*/*;q=0.1";
        for accept in [second, third, "Application/OpenMetrics-Text; version=\"1.0.0\""] {
            assert_eq!(Form::accepted([accept]), Form::OpenMetrics, "{accept}");
        }
        let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        for accept in [browser, "*/*", "", "text/plain"] {
            assert_eq!(Form::accepted([accept]), Form::Text, "{accept}");
        }
        assert_eq!(Form::accepted([]), Form::Text);
    }

    #[test]
    fn the_weights_decide_over_several_lines_too() {
        let open_metrics = |weight: &str| format!("application/openmetrics-text;version=1.0.0;q={weight}");
        assert_eq!(Form::accepted(["text/plain;q=0.5", &open_metrics("0.4")]), Form::Text);
        assert_eq!(Form::accepted(["text/plain;q=0.5", &open_metrics("0.6")]), Form::OpenMetrics);
        assert_eq!(Form::accepted([open_metrics("0").as_str()]), Form::Text);
        assert_eq!(Form::accepted([open_metrics("much").as_str()]), Form::Text);
        assert_eq!(Form::accepted(["application/openmetrics-text;version=0.0.1"]), Form::Text);
    }
}
