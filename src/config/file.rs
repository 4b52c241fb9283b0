//! The configuration file: a flat TOML table of flags, beside which [`super::dialects`] has tables of its own.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Arg, Command};
use thiserror::Error;
use toml::{Table, Value};

/// The key under which a configuration file holds dialects; every other key is a setting.
pub(super) const DIALECTS: &str = "dialects";

/// Why a configuration file cannot be used.
#[derive(Debug, Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("cannot read the configuration file {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// It is not TOML.
    #[error("{} is not TOML", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where, and what is wrong.
        source: Box<toml::de::Error>,
    },
    /// A key that no setting has.
    #[error("{}: there is no setting {key:?}; {hint}", path.display())]
    UnknownKey {
        /// The file.
        path: PathBuf,
        key: String,
        /// The nearest key, or where all are listed.
        hint: String,
    },
    /// A value that no setting takes.
    #[error("{}: {key} is {found}; give a string, a number or a boolean", path.display())]
    Kind {
        /// The file.
        path: PathBuf,
        key: String,
        /// The kind of value found.
        found: &'static str,
    },
    /// A value that its setting refuses.
    #[error("{}: {detail}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
}

/// Reads a file and turns it into flags of `command`, to stand before those of the command line. A setting whose
/// environment variable is set is left out, since the environment goes before the file.
///
/// # Errors
/// [`FileError`], also for a value that would be overridden.
pub fn flags(path: &Path, command: &Command, is_set: impl Fn(&str) -> bool) -> Result<Vec<OsString>, FileError> {
    let mut table = table(path)?;
    table.remove(DIALECTS);
    let mut all = Vec::new();
    let mut kept = Vec::new();
    for (key, value) in &table {
        let argument = setting(command, key).ok_or_else(|| unknown(path, command, key))?;
        let Some(flag) = as_flag(path, key, value, argument)? else { continue };
        if !argument.get_env().and_then(|name| name.to_str()).is_some_and(&is_set) {
            kept.push(flag.clone());
        }
        all.push(flag);
    }
    check_values(path, command, all)?;
    Ok(kept)
}

/// The file as TOML.
///
/// # Errors
/// [`FileError::Read`] and [`FileError::Syntax`].
pub(super) fn table(path: &Path) -> Result<Table, FileError> {
    let text = std::fs::read_to_string(path).map_err(|source| FileError::Read { path: path.to_owned(), source })?;
    text.parse().map_err(|source| FileError::Syntax { path: path.to_owned(), source: Box::new(source) })
}

/// The argument that a key sets; `--config` itself is none.
fn setting<'a>(command: &'a Command, key: &str) -> Option<&'a Arg> {
    settings(command).find(|argument| argument.get_long() == Some(key))
}

fn settings(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|argument| argument.get_env().is_some() && argument.get_id() != "config")
}

fn unknown(path: &Path, command: &Command, key: &str) -> FileError {
    let likeness = |name: &str| strsim::jaro_winkler(key, name);
    let nearest = settings(command)
        .filter_map(Arg::get_long)
        .max_by(|a, b| likeness(a).total_cmp(&likeness(b)))
        .filter(|name| likeness(name) > 0.75);
    let hint = match nearest {
        Some(name) => format!("did you mean {name:?}?"),
        None => "`tracejoin serve --help` lists them, without their dashes".to_owned(),
    };
    FileError::UnknownKey { path: path.to_owned(), key: key.to_owned(), hint }
}

/// A key and its value as a flag; `None` for a switch that is off.
fn as_flag(path: &Path, key: &str, value: &Value, argument: &Arg) -> Result<Option<OsString>, FileError> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(on) if !argument.get_action().takes_values() => {
            return Ok(on.then(|| OsString::from(format!("--{key}"))));
        }
        Value::Boolean(on) => on.to_string(),
        Value::Datetime(_) | Value::Array(_) | Value::Table(_) => {
            return Err(FileError::Kind { path: path.to_owned(), key: key.to_owned(), found: value.type_str() });
        }
    };
    Ok(Some(OsString::from(format!("--{key}={text}"))))
}

/// Parses the file's flags alone, so that a bad value is blamed on the file.
fn check_values(path: &Path, command: &Command, flags: Vec<OsString>) -> Result<(), FileError> {
    let name = OsString::from(command.get_name());
    match command.clone().try_get_matches_from(std::iter::once(name).chain(flags)) {
        Ok(_) => Ok(()),
        Err(error) => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            let detail = first.trim_start_matches("error: ").replace("--", "").to_owned();
            Err(FileError::Value { path: path.to_owned(), detail })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use clap::{Args, FromArgMatches};

    use super::*;
    use crate::config::Settings;

    fn command() -> Command {
        Settings::augment_args(Command::new("serve")).args_override_self(true)
    }

    fn read(text: &str, is_set: impl Fn(&str) -> bool) -> Result<Vec<OsString>, FileError> {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(text.as_bytes()).expect("written");
        flags(file.path(), &command(), is_set)
    }

    #[test]
    fn a_flag_of_the_command_line_goes_before_the_file() {
        let mut line = vec![OsString::from("serve")];
        line.extend(read("settle = \"3s\"\nretention = \"2d\"\nallow-fsync-off = true", |_| false).expect("flags"));
        line.push("--settle=5s".into());
        let settings = Settings::from_arg_matches(&command().get_matches_from(line)).expect("settings");
        assert_eq!(settings.join.settle.as_secs(), 5);
        assert_eq!(settings.storage.retention.as_secs(), 2 * 86_400);
        assert!(settings.storage.allow_fsync_off);
        assert_eq!(settings.join.join_deadline.as_secs(), 60, "what nobody says is the default");
    }

    #[test]
    fn the_environment_goes_before_the_file() {
        let kept = read("settle = \"3s\"\nretention = \"2d\"", |name| name == "TRACEJOIN_SETTLE").expect("flags");
        assert_eq!(kept, [OsString::from("--retention=2d")]);
    }

    #[test]
    fn unknown_keys_and_bad_values_are_named() {
        let told = |text| read(text, |_| false).expect_err("refused").to_string();
        assert!(told("setle = \"1s\"").ends_with("there is no setting \"setle\"; did you mean \"settle\"?"));
        assert!(told("otlp_grpc_addr = \"x\"").ends_with("did you mean \"otlp-grpc-addr\"?"));
        assert!(told("config = \"other.toml\"").contains("there is no setting \"config\""));
        assert!(told("settle = [1]").ends_with("settle is array; give a string, a number or a boolean"));
        assert!(
            told("settle = \"soon\"").contains("invalid value 'soon' for 'settle"),
            "{}",
            told("settle = \"soon\"")
        );
        assert!(told("max-spans-per-trace = 0").contains("max-spans-per-trace"));
        assert!(told("settle = ").contains("is not TOML"));
    }
}
