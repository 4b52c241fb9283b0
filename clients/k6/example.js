// Loads an LLM gateway. Each request carries a traceparent of its own, and k6 writes its ids beside its measurements:
//
//   k6 run --vus 8 --duration 30s -e URL=http://127.0.0.1:8000/v1/chat/completions --out json=run.json clients/k6/example.js
//   tracejoin import k6 run.json
import { Tracejoin } from './tracejoin.js';

const request = JSON.parse(__ENV.BODY || '{"model":"m-7b","stream":true,"messages":[{"role":"user","content":"Hi"}]}');
const traced = new Tracejoin({ dimensions: { model: request.model, streaming: request.stream === true } });

export default function () {
  traced.post(__ENV.URL, JSON.stringify(request), { headers: { 'content-type': 'application/json' } });
  traced.flush(); // sends nothing unless TRACEJOIN_URL is set
}
