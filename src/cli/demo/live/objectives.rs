//! What the demo's gateway promises, told to the demo's own server.

use serde_json::Value;

use crate::cli::api::Api;
use slo::document;

const OBJECTIVES: &str = include_str!("objectives.yaml");

/// Puts them all, and says how many there are.
///
/// # Errors
/// Where the server refuses one.
pub async fn apply(api: &Api) -> anyhow::Result<usize> {
    let objectives = document::read(OBJECTIVES).map_err(|errors| anyhow::anyhow!("{errors:?}"))?;
    for objective in &objectives {
        let url = api.url(&["api", "v1", "slos", objective.id.as_str()])?;
        api.put_document::<Value>(url, document::to_json(objective).to_string()).await?;
    }
    Ok(objectives.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_objectives_are_valid_and_judge_half_a_minute() {
        let objectives = document::read(OBJECTIVES).expect("valid");
        assert_eq!(objectives.len(), 6);
        assert!(objectives.iter().all(|objective| objective.window.as_secs() == 30.0), "as the demo's faults need it");
    }
}
