//! Labels on the command line: `--dimension region=eu`.

use anyhow::{Context, bail};

use model::Dimension;

/// Reads one.
///
/// # Errors
/// A text of another form, or a label that no record has.
pub fn parse(text: &str) -> anyhow::Result<(Dimension, String)> {
    let (key, value) = text.split_once('=').context("write it as KEY=VALUE")?;
    let Some(dimension) = Dimension::from_name(key) else {
        let names: Vec<&str> = Dimension::ALL.iter().map(|dimension| dimension.name()).collect();
        bail!("{key} is none of {}", names.join(", "));
    };
    Ok((dimension, value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_labels_of_records_are_taken() {
        assert_eq!(parse("region=eu=1").expect("a label"), (Dimension::Region, "eu=1".to_owned()));
        for text in ["region", "planet=earth", "=x"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
