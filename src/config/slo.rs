use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use url::Url;

/// When objectives are judged, and who is told.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Objectives and alerts")]
pub struct SloSettings {
    /// How often objectives are judged
    #[arg(long, env = "TRACEJOIN_SLO_EVALUATION", value_name = "DURATION", default_value = "30s",
          value_parser = at_least_a_second)]
    pub slo_evaluation: Duration,

    /// Alertmanager to tell of alerts, as http://user:password@host:9093; give it again, or separate by commas, for more
    #[arg(long, env = "TRACEJOIN_ALERTMANAGER", value_name = "URL", value_delimiter = ',', hide_env_values = true)]
    pub alertmanager: Vec<Hidden>,

    /// Webhook to tell of each alert that fires or is resolved; give it again, or separate by commas, for more
    #[arg(
        long,
        env = "TRACEJOIN_WEBHOOK",
        value_name = "URL",
        value_delimiter = ',',
        hide_env_values = true,
        requires = "webhook_secret"
    )]
    pub webhook: Vec<Hidden>,

    /// Key that signs what webhooks are sent: whsec_ and 24 to 64 bytes in base64
    #[arg(long, env = "TRACEJOIN_WEBHOOK_SECRET", value_name = "KEY", hide_env_values = true)]
    pub webhook_secret: Option<Hidden>,

    /// How often an Alertmanager is told again of alerts that fire
    #[arg(long, env = "TRACEJOIN_ALERT_RESEND", value_name = "DURATION", default_value = "30s",
          value_parser = at_least_a_second)]
    pub alert_resend: Duration,

    /// Where people reach this server, such as https://tracejoin.example.org; alerts link to it
    #[arg(long, env = "TRACEJOIN_PUBLIC_URL", value_name = "URL", value_parser = public_url)]
    pub public_url: Option<Url>,

    /// How many series of label values the metrics of requests have at most; what comes beyond shares one
    #[arg(long, env = "TRACEJOIN_METRIC_SERIES", value_name = "COUNT", default_value_t = 2000,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub metric_series: u32,
}

/// A text that may hold a password, and so is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Hidden(String);

impl Hidden {
    /// The text itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

impl FromStr for Hidden {
    type Err = std::convert::Infallible;

    /// Takes any text: whoever uses it refuses it without showing it.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.trim().to_owned()))
    }
}

fn at_least_a_second(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if duration < Duration::from_secs(1) { Err("give a second or more".to_owned()) } else { Ok(duration) }
}

fn public_url(text: &str) -> Result<Url, String> {
    let url: Url = text.parse().map_err(|error: url::ParseError| error.to_string())?;
    if matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none() {
        return Ok(url);
    }
    Err("give an address that begins with http:// or https://, without a user name".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_hold_a_password_is_not_printed() {
        let hidden: Hidden = " http://me:hunter2@host/ ".parse().expect("any text");
        assert_eq!(hidden.reveal(), "http://me:hunter2@host/");
        assert!(!format!("{hidden:?}").contains("hunter2"));
    }

    #[test]
    fn a_public_address_is_one_that_people_can_open() {
        assert!(public_url("https://tracejoin.example/base").is_ok());
        for text in ["tracejoin.example", "ftp://tracejoin.example", "https://me:hunter2@tracejoin.example"] {
            assert!(public_url(text).is_err(), "{text}");
        }
    }

    #[test]
    fn nobody_is_told_many_times_a_second() {
        assert_eq!(at_least_a_second("2s"), Ok(Duration::from_secs(2)));
        assert!(at_least_a_second("10ms").is_err());
    }
}
