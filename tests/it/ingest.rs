//! Taking in while the database is in the way.

use std::sync::Arc;

use normalise::Limits;
use serde_json::value::RawValue;
use sqlx::raw_sql;
use tracejoin::ingest::Ingest;
use tracejoin::receive::intake::{RecordIntake, Refusal};

use crate::store_support::{beside, store};

#[tokio::test]
async fn records_are_refused_for_now_while_the_database_hangs() {
    let (database, store) = store().await;
    let ingest = Ingest::new(store, Limits { spans_per_trace: 100 }, Arc::default());
    let text = r#"{"trace_id": "0000000000000007000000000000012f", "duration_ms": 5}"#;
    let record = RawValue::from_string(text.to_owned()).expect("JSON");

    let mut holder = beside(&database).await;
    raw_sql("begin; lock table arrival in access exclusive mode").execute(&mut holder).await.expect("locked");
    let refused = RecordIntake::accept(&ingest, vec![Ok(record.clone().into())]).await;
    assert!(matches!(refused, Err(Refusal::Unavailable { .. })), "{refused:?}");

    raw_sql("rollback").execute(&mut holder).await.expect("unlocked");
    let taken = RecordIntake::accept(&ingest, vec![Ok(record.clone().into())]).await.expect("taken");
    assert_eq!((taken.accepted, taken.duplicates), (1, 0));
}
