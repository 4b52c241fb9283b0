"""Reads a document of /metrics from the standard input with Prometheus' own client: exposition.py openmetrics|text.

Prints one JSON object: the families by their types, and the samples of requests with what stands beside them.
"""

import json
import sys

from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics_parser

PARSERS = {
    "openmetrics": openmetrics_parser.text_string_to_metric_families,
    "text": parser.text_string_to_metric_families,
}

families = list(PARSERS[sys.argv[1]](sys.stdin.read()))
exemplars = [
    {"labels": sample.labels, "trace_id": sample.exemplar.labels["trace_id"], "value": sample.exemplar.value}
    for family in families
    for sample in family.samples
    if getattr(sample, "exemplar", None)
]
counts = [
    {"labels": sample.labels, "value": sample.value}
    for family in families
    for sample in family.samples
    if sample.name == "tracejoin_phase_seconds_count"
]
print(json.dumps({
    "families": {family.name: family.type for family in families},
    "exemplars": exemplars,
    "counts": counts,
}))
