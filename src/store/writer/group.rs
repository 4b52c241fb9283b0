//! One group as rows: the arrivals themselves and the joiner's work.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::Connection;
use sqlx::postgres::PgConnection;

use super::super::arrival::{self, Arrival, COPY_ARRIVALS, bucket_of};
use model::Key;
use model::UnixNanos;

const DAY: i64 = 86_400_000_000_000;

/// Bounds the work that a joiner takes in one bite.
const MAX_KEYS_PER_QUEUE_ROW: usize = 512;

/// The two sides of a request may arrive a day apart whatever their clocks say.
const LOOK_BACK: i64 = DAY;

const INSERT_WORK: &str = "insert into join_queue (due_at, since, records, bucket, keys)
    select $1, work.* from unnest($2::timestamptz[], $3::int4[], $4::int2[], $5::bytea[]) as work";

/// Commits arrivals and the work they make. On an error the connection must be closed, or rolled back where the server
/// itself told the error.
pub(super) async fn commit(
    connection: &mut PgConnection,
    arrivals: &[&Arrival],
    received_at: UnixNanos,
    settle: Duration,
) -> Result<(), sqlx::Error> {
    let rows = arrival::encode(arrivals, received_at);
    let work = Work::of(arrivals, received_at);
    let due_at = received_at.to_datetime() + settle;
    let mut transaction = connection.begin().await?;
    rows.send(&mut transaction, COPY_ARRIVALS).await?;
    sqlx::query(INSERT_WORK)
        .bind(due_at)
        .bind(&work.since)
        .bind(&work.records)
        .bind(&work.buckets)
        .bind(&work.keys)
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await
}

/// Rows of `join_queue`, as columns.
#[derive(Debug, Default, PartialEq)]
struct Work {
    since: Vec<DateTime<Utc>>,
    records: Vec<i32>,
    buckets: Vec<i16>,
    keys: Vec<Vec<u8>>,
}

impl Work {
    fn of(arrivals: &[&Arrival], received_at: UnixNanos) -> Self {
        let mut wanted: Vec<(i16, i64, Key, u32)> = arrivals
            .iter()
            .map(|arrival| (bucket_of(&arrival.key), since(arrival, received_at), arrival.key, arrival.records))
            .collect();
        wanted.sort_unstable();
        let mut work = Self::default();
        let mut last: Option<(i16, i64, Key)> = None;
        for (bucket, since, key, records) in wanted {
            let same_row = last.is_some_and(|last| (last.0, last.1) == (bucket, since)) && !work.last_is_full();
            if !same_row {
                work.start(bucket, since);
            }
            work.add((last != Some((bucket, since, key))).then_some(key), records);
            last = Some((bucket, since, key));
        }
        work
    }

    fn last_is_full(&self) -> bool {
        self.keys.last().is_none_or(|keys| keys.len() >= MAX_KEYS_PER_QUEUE_ROW * size_of::<Key>())
    }

    fn start(&mut self, bucket: i16, since: i64) {
        self.since.push(UnixNanos(since).to_datetime());
        self.records.push(0);
        self.buckets.push(bucket);
        self.keys.push(Vec::new());
    }

    fn add(&mut self, key: Option<Key>, records: u32) {
        if let (Some(keys), Some(key)) = (self.keys.last_mut(), key) {
            keys.extend_from_slice(&key);
        }
        if let Some(sum) = self.records.last_mut() {
            *sum = sum.saturating_add_unsigned(records);
        }
    }
}

/// From when on the arrivals of this trace are looked for; whole days, so that most traces of a group share a row.
fn since(arrival: &Arrival, received_at: UnixNanos) -> i64 {
    let told = arrival.since.map_or(received_at, |since| since.min(received_at));
    told.0.saturating_sub(LOOK_BACK).div_euclid(DAY).saturating_mul(DAY)
}

#[cfg(test)]
mod tests {
    use super::super::super::arrival::ArrivalKind;
    use super::*;

    fn arrival(key: [u8; 2], since: Option<i64>, records: u32) -> Arrival {
        let mut whole = [0; 16];
        whole[..2].copy_from_slice(&key);
        let since = since.map(UnixNanos);
        Arrival { key: whole, kind: ArrivalKind::Spans, identity: 0, since, body: Default::default(), records }
    }

    #[test]
    fn a_group_is_one_row_a_bucket_with_each_key_once() {
        let now = UnixNanos(20_000 * DAY + 5);
        let arrivals =
            [arrival([3, 1], None, 0), arrival([19, 2], None, 1), arrival([3, 1], None, 2), arrival([4, 0], None, 0)];
        let work = Work::of(&arrivals.iter().collect::<Vec<_>>(), now);
        assert_eq!(work.buckets, [3, 4]);
        assert_eq!(work.records, [3, 0]);
        assert_eq!(work.keys.iter().map(Vec::len).collect::<Vec<_>>(), [32, 16]);
        assert_eq!(work.since[0], UnixNanos(19_999 * DAY).to_datetime());
    }

    #[test]
    fn old_content_is_looked_for_further_back_and_a_future_clock_changes_nothing() {
        let now = UnixNanos(20_000 * DAY + 5);
        assert_eq!(since(&arrival([0, 0], Some(19_000 * DAY), 0), now), 18_999 * DAY);
        assert_eq!(since(&arrival([0, 0], Some(i64::MAX), 0), now), 19_999 * DAY);
        assert!(since(&arrival([0, 0], Some(i64::MIN), 0), now) < 0);
    }

    #[test]
    fn a_row_holds_a_bounded_number_of_keys() {
        let arrivals: Vec<Arrival> =
            (0..1000_u16).map(|n| arrival([16 * (n % 16) as u8, (n / 16) as u8], None, 1)).collect();
        let work = Work::of(&arrivals.iter().collect::<Vec<_>>(), UnixNanos(0));
        assert_eq!(work.keys.iter().map(Vec::len).collect::<Vec<_>>(), [512 * 16, 488 * 16]);
        assert_eq!(work.records, [512, 488]);
    }
}
