use proptest::prelude::*;

use super::*;
use model::{Completeness, Flag, Flags, JoinMethod, Metric, Readings, ResultClass, State, UnixNanos};

type Row = (i64, usize, usize, i64, f64);

fn observation((labels, state, result, minute, value): &Row) -> Observation {
    let mut readings = Readings::NONE;
    readings.set(Metric::Duration, Some(*value));
    readings.set(Metric::Ttft, (value % 2.0 > 1.0).then_some(value / 4.0));
    readings.set(Metric::RateStream, Some(value.fract()));
    let mut flags = Flags::NONE;
    flags.set_if(value % 3.0 > 2.0, Flag::NegativeEnvelope);
    flags.set_if(value % 5.0 > 4.0, Flag::ClientFromSpan);
    flags.set_if(value % 4.0 > 3.0, Flag::SuspectedBuffering);
    let window_at = UnixNanos(minute * Slice::MINUTE.0 + *value as i64 % 1000);
    Observation {
        labels: *labels,
        slice: Slice::of(UnixNanos(minute % 2 * Slice::DAY.0), window_at),
        state: State::ALL[*state],
        result: Some(ResultClass::ALL[*result]),
        flags,
        has_client: true,
        has_server: *state != 3,
        join_method: if value % 5.0 > 4.0 { JoinMethod::RequestId } else { JoinMethod::TraceId },
        completeness: Completeness::from_number((*value as i64 % 7) as i16),
        tells_rhythm: value % 4.0 > 1.0,
        output_tokens: (value % 6.0 > 1.0).then_some(*value as i64 % 900),
        readings,
    }
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    prop::collection::vec((0_i64..3, 0_usize..5, 0_usize..5, -2_i64..3, 0.0_f64..1e10), 1..400)
}

proptest! {
    #[test]
    fn what_is_stored_comes_back_and_does_not_depend_on_the_order(rows in rows()) {
        let mut observations: Vec<Observation> = rows.iter().map(observation).collect();
        let straight: Vec<_> = digested(&observations).collect();
        observations.reverse();
        let reversed: Vec<_> = digested(&observations).collect();
        prop_assert_eq!(&straight, &reversed);
        for (_, _, cell) in straight {
            let (counts, digests) = encode(&cell);
            prop_assert_eq!(decode_counts(&counts), Ok(cell.counts.clone()));
            prop_assert_eq!(decode(&counts, &digests), Ok(cell));
        }
    }

    #[test]
    fn corrupt_bytes_never_panic(rows in rows(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let observations: Vec<Observation> = rows.iter().map(observation).collect();
        let (_, _, cell) = digested(&observations).next().expect("at least one row");
        let (mut counts, mut digests) = encode(&cell);
        let position = at.index(counts.len() + digests.len());
        match position.checked_sub(counts.len()) {
            Some(position) => digests[position] = byte,
            None => counts[position] = byte,
        }
        if let Ok(cell) = decode(&counts, &digests) {
            prop_assert!(cell.series.len() <= Metric::ALL.len() + 1);
        }
    }
}

#[test]
fn other_versions_and_lengths_are_refused() {
    let observations = [observation(&(1, 2, 0, 0, 5.5))];
    let (_, _, cell) = digested(&observations).next().expect("one cell");
    let (counts, digests) = encode(&cell);
    assert_eq!(decode_counts(&[]), Err(DecodeError::Length));
    assert_eq!(decode_counts(&counts[..counts.len() - 1]), Err(DecodeError::Length));
    assert_eq!(decode(&counts, &[9]), Err(DecodeError::Version(9)));
    assert_eq!(decode(&counts, &[1, 77]), Err(DecodeError::Unknown("a metric")));
    assert!(matches!(decode(&counts, &digests[..digests.len() - 1]), Err(DecodeError::Digest(_))));
}

#[test]
fn the_form_without_callers_spans_is_read() {
    let mut older = vec![1];
    for count in [9_u64, 8, 7, 2] {
        older.extend(count.to_le_bytes());
    }
    older.push(Flag::NegativeEnvelope as u8);
    older.extend(3_u64.to_le_bytes());
    let counts = decode_counts(&older).expect("it is still known");
    assert_eq!((counts.requests, counts.client, counts.server, counts.sampled_out), (9, 8, 7, 2));
    assert_eq!((counts.from_spans, counts.excluded[&Flag::NegativeEnvelope]), (0, 3));
}
