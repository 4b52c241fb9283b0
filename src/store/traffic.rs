//! In which parts of a window there is traffic.

use std::collections::BTreeSet;

use super::error::StoreError;
use super::pool::Store;
use super::request::CLIENT;
use model::{Interval, Nanos, ResultClass, State};

/// The limits inside keep it at one index probe for each part and label, and end a part with its first record.
const BUSY_PARTS: &str = "
    select count(*) from unnest($1::timestamptz[], $2::timestamptz[]) as part (start_at, end_at)
    cross join lateral (
        select from unnest($3::int8[]) as wanted (dims)
        cross join lateral (
            select from request
            where dims = wanted.dims and window_at >= part.start_at and window_at < part.end_at
                and state = any($4) and sides & $5 <> 0 and result = any($6)
            limit 1
        ) as record
        limit 1
    ) as busy";

/// States of requests that are settled and have a client record.
const SETTLED: [State; 3] = [State::Excluded, State::Matched, State::ClientOnly];

impl Store {
    /// In how many of a window's equal parts there is a settled client record of one of these labels and classes.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn busy_parts(
        &self,
        window: Interval,
        parts: u32,
        labels: &[i64],
        results: &BTreeSet<ResultClass>,
    ) -> Result<u32, StoreError> {
        let length = window.end - window.start;
        let border = |part: u32| {
            let offset = i128::from(length.0) * i128::from(part) / i128::from(parts.max(1));
            (window.start + Nanos(i64::try_from(offset).unwrap_or(length.0))).to_datetime()
        };
        let busy: i64 = sqlx::query_scalar(BUSY_PARTS)
            .bind((0..parts).map(border).collect::<Vec<_>>())
            .bind((1..=parts).map(border).collect::<Vec<_>>())
            .bind(labels)
            .bind(SETTLED.map(|state| state as i16).to_vec())
            .bind(CLIENT)
            .bind(results.iter().map(|result| *result as i16).collect::<Vec<_>>())
            .fetch_one(&self.pool)
            .await?;
        Ok(u32::try_from(busy).unwrap_or(parts))
    }
}
