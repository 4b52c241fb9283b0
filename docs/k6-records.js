// Loads an LLM gateway and writes one client record a request for tracejoin.
//
//   k6 run --vus 8 --duration 30s -e URL=http://127.0.0.1:8000/v1/chat/completions \
//     --log-format raw --console-output records.ndjson k6-records.js
//   tracejoin import records records.ndjson
//
// Records go to the console's file, not to the server: k6 has no hook at a virtual user's end, so
// records batched in memory would be lost with it, and an upload could fail while the load runs.
import http from 'k6/http';
import exec from 'k6/execution';
import { randomBytes } from 'k6/crypto';

const request = JSON.parse(__ENV.BODY || '{"model":"m-7b","stream":true,"messages":[{"role":"user","content":"Hi"}]}');
const hex = (bytes) => Array.from(new Uint8Array(randomBytes(bytes)), (b) => b.toString(16).padStart(2, '0')).join('');

export default function () {
  const trace_id = hex(16);
  const span_id = hex(8);
  const started_at = new Date().toISOString();
  const res = http.post(__ENV.URL, JSON.stringify(request), {
    headers: { 'content-type': 'application/json', traceparent: `00-${trace_id}-${span_id}-01` },
  });
  const t = res.timings;
  console.log(JSON.stringify({
    trace_id, span_id, started_at,
    run: __ENV.RUN,
    scenario: exec.scenario.name,
    streaming: request.stream === true,
    status: res.status,
    error: res.status === 0 ? (res.error_code === 1050 ? 'timeout' : `k6_${res.error_code}`) : undefined,
    duration_ms: t.duration, // start of sending to the last byte, without setup
    setup: { // k6's own `blocked` contains connecting and the TLS handshake
      blocked_ms: Math.max(0, t.blocked - t.connecting - t.tls_handshaking),
      connect_ms: t.connecting,
      tls_ms: t.tls_handshaking,
    },
    headers_ms: t.sending + t.waiting, // first response byte: not the first token
    sending_ms: t.sending,
    waiting_ms: t.waiting,
    receiving_ms: t.receiving,
  }));
}
