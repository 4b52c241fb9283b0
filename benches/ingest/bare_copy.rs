//! The limit beside which figures are put: the same rows into the same tables by COPY alone, over one connection.

use std::time::{Duration, Instant};

use anyhow::Context;
use futures::TryStreamExt;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::database::Database;

/// Rows of one COPY and commit.
const ROWS_PER_COPY: usize = 10_000;
/// As many rows tell the rate.
const MAX_ROWS: usize = 200_000;

/// Signature, flags and length of the header's extension (PostgreSQL's manual, "COPY", "Binary Format").
const HEADER: usize = 19;
const TRAILER: [u8; 2] = (-1_i16).to_be_bytes();

/// Copies what a run has left in `table` into an empty table of the same columns and indexes. Returns the time a row.
pub async fn time_per_row(database: &mut Database, table: &str) -> anyhow::Result<Duration> {
    let source = rows_of(&mut database.connection, table).await?;
    let rows = row_ends(&source).context("rows in binary")?;
    let statement = format!("create table bare_{table} (like {table} including all)");
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut database.connection).await?;
    sqlx::query("checkpoint").execute(&mut database.connection).await?;
    let copy = format!("copy bare_{table} from stdin (format binary)");
    let begun = Instant::now();
    let mut start = HEADER;
    for chunk in rows.chunks(ROWS_PER_COPY) {
        let end = *chunk.last().context("a chunk has rows")?;
        let body = [&source[..HEADER], &source[start..end], &TRAILER].concat();
        let mut transaction = database.connection.begin().await?;
        let mut sink = transaction.copy_in_raw(&copy).await?;
        sink.send(body).await?;
        sink.finish().await?;
        transaction.commit().await?;
        start = end;
    }
    Ok(begun.elapsed() / u32::try_from(rows.len())?)
}

async fn rows_of(connection: &mut PgConnection, table: &str) -> anyhow::Result<Vec<u8>> {
    let statement = format!("copy (select * from {table} limit {MAX_ROWS}) to stdout (format binary)");
    let mut rows = connection.copy_out_raw(&statement).await?;
    let mut bytes = Vec::new();
    while let Some(part) = rows.try_next().await? {
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}

/// Where each row ends.
fn row_ends(bytes: &[u8]) -> Option<Vec<usize>> {
    let mut ends = Vec::new();
    let mut place = HEADER;
    loop {
        let fields = i16::from_be_bytes(bytes.get(place..place + 2)?.try_into().ok()?);
        place += 2;
        if fields < 0 {
            return Some(ends);
        }
        for _ in 0..fields {
            let length = i32::from_be_bytes(bytes.get(place..place + 4)?.try_into().ok()?);
            place += 4 + usize::try_from(length).unwrap_or(0);
        }
        ends.push(place);
    }
}
