//! Documents as people write them, right and wrong.

use super::*;

const QUEUE: &str = "\
apiVersion: tracejoin/v1
kind: SLO
metadata: {name: queue-p95, description: \"the queue\", owner: inference}
spec:
  phase: gpu_queue
  quantile: 0.95
  threshold_ms: 250
  where: {model: m-7b, pool: a100, streaming: true, input_range: input_0_512}
  window: 10m
  min_n: 100
  min_coverage: 0.95
";

#[test]
fn the_reference_example_is_read() {
    let objectives = read(QUEUE).expect("an objective");
    println!("{}", to_json(&objectives[0]));
    assert_eq!(objectives.len(), 1);
    let again = read(&to_json(&objectives[0]).to_string()).expect("its own form");
    assert_eq!(again, objectives);
}
