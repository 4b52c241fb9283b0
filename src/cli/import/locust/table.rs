//! CSV row by row, by the names of its columns; a file that is still being written ends within a row.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read};

use anyhow::Context;
use csv::{Reader, ReaderBuilder, StringRecord};

use crate::cli::import::input::Input;

/// A table and its current row.
pub struct Table {
    rows: Reader<Whole>,
    columns: HashMap<String, usize>,
    row: StringRecord,
}

/// What the next row is.
#[derive(Debug, PartialEq, Eq)]
pub enum Row {
    /// There, all of it.
    Whole,
    /// Without its last columns.
    Short,
}

/// A compressed stream that breaks off ends there.
struct Whole(Input);

impl Read for Whole {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(0),
            read => read,
        }
    }
}

impl Table {
    /// Reads the names of the columns.
    ///
    /// # Errors
    /// A failure of the input, or names that are no text.
    pub fn open(input: Input) -> anyhow::Result<Self> {
        let mut rows = ReaderBuilder::new().flexible(true).from_reader(Whole(input));
        let names = rows.headers().context("cannot read the names of the columns")?;
        let columns = names.iter().enumerate().map(|(at, name)| (name.trim().to_ascii_lowercase(), at)).collect();
        Ok(Self { rows, columns, row: StringRecord::new() })
    }

    /// Whether there is such a column.
    pub fn has(&self, name: &str) -> bool {
        self.columns.contains_key(name)
    }

    /// Goes to the next row.
    ///
    /// # Errors
    /// A failure of the input, or a row that is no text.
    pub fn next(&mut self) -> anyhow::Result<Option<Row>> {
        if !self.rows.read_record(&mut self.row).context("cannot read the file as CSV")? {
            return Ok(None);
        }
        Ok(Some(if self.row.len() < self.columns.len() { Row::Short } else { Row::Whole }))
    }

    /// A column of the current row; `None` where it is empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        let value = self.row.get(*self.columns.get(name)?)?.trim();
        (!value.is_empty()).then_some(value)
    }
}
