// Ids for the requests of a k6 script, so that tracejoin can find each one on the server's side.
//
// Each call gets a trace id and a span id of its own, sends them as `traceparent`, and has k6 write them beside its
// measurements (`--out json=FILE`), which `tracejoin import k6 FILE` reads. This file imports nothing from the network.
// README.md, beside it, shows how to use it.
import http from 'k6/http';
import exec from 'k6/execution';
import { randomBytes } from 'k6/crypto';

// Records of one virtual user that wait for their upload; over it the oldest are dropped, and the log says so.
const MAX_WAITING = 1000;
// The importer knows uploads by this tag and leaves them out.
const UPLOAD_NAME = 'tracejoin-records';

const hex = (bytes) => Array.from(new Uint8Array(randomBytes(bytes)), (b) => b.toString(16).padStart(2, '0')).join('');

/** A new trace id and span id from the system's random source, and the header that carries them. */
export function newIds() {
  const traceId = hex(16);
  const spanId = hex(8);
  return { traceId, spanId, traceparent: `00-${traceId}-${spanId}-01` };
}

/** The value of a new `traceparent` header. */
export function traceparent() {
  return newIds().traceparent;
}

export class Tracejoin {
  /**
   * @param {object} [options]
   * @param {string} [options.run] the test run; RUN of the environment where it is left out
   * @param {object} [options.dimensions] labels of every request: model, provider, region, pool, priority, concurrency
   * @param {string} [options.records] 'console' writes a client record a request to the console, 'upload' keeps them
   *   for flush(); TRACEJOIN_RECORDS where it is left out; neither is needed with `--out json`
   * @param {string} [options.url] the server that flush() uploads to; TRACEJOIN_URL where it is left out
   */
  constructor(options = {}) {
    this.run = options.run || __ENV.RUN || undefined;
    this.dimensions = options.dimensions || {};
    this.url = (options.url || __ENV.TRACEJOIN_URL || '').replace(/\/+$/, '');
    this.records = options.records || __ENV.TRACEJOIN_RECORDS || (this.url ? 'upload' : '');
    this.waiting = [];
    this.dropped = 0;
    if (this.records === 'upload' && !this.url) throw new Error('set TRACEJOIN_URL to the server that takes records');
  }

  /** As `http.request`. */
  request(method, url, body, params) {
    return this.call((headers) => http.request(method, url, body, this.labelled(params, headers)), this.tags(params));
  }

  /** As `http.get`. */
  get(url, params) {
    return this.request('GET', url, null, params);
  }

  /** As `http.post`. */
  post(url, body, params) {
    return this.request('POST', url, body, params);
  }

  /** As `http.asyncRequest`: a promise of the response. */
  asyncRequest(method, url, body, params) {
    return this.call(
      (headers) => http.asyncRequest(method, url, body, this.labelled(params, headers)),
      this.tags(params),
    );
  }

  /**
   * Several requests at once, a promise of their responses. `http.batch` is of no use here: k6 writes the ids of its last
   * request beside all of them. Each request is an object `{ method, url, body, params }`, or a URL.
   */
  batch(requests) {
    const calls = requests.map((request) => {
      const { method = 'GET', url, body = null, params } = typeof request === 'string' ? { url: request } : request;
      return this.asyncRequest(method, url, body, params);
    });
    return Promise.all(calls);
  }

  /**
   * Any one call that sends one request, such as `sse.open` of xk6-sse. `send` gets the headers to send and is called
   * while k6 writes the ids beside its measurements; they end with the call, or an upload would carry them too.
   */
  call(send, tags = this.tags()) {
    const ids = newIds();
    const metadata = exec.vu.metrics.metadata;
    const startedAt = new Date().toISOString();
    metadata.trace_id = ids.traceId;
    metadata.span_id = ids.spanId;
    let sent;
    try {
      sent = send({ traceparent: ids.traceparent });
    } finally {
      delete metadata.trace_id;
      delete metadata.span_id;
    }
    const note = (response) => {
      this.note(ids, startedAt, tags, response);
      return response;
    };
    return sent && typeof sent.then === 'function' ? sent.then(note) : note(sent);
  }

  /** Uploads the records that wait; call it at the end of an iteration. k6 has no hook for it. */
  flush() {
    if (this.waiting.length === 0) return;
    const body = this.waiting.map((record) => JSON.stringify(record)).join('\n');
    const response = http.post(`${this.url}/api/v1/records`, body, {
      headers: { 'content-type': 'application/x-ndjson' },
      tags: { name: UPLOAD_NAME },
      responseType: 'text',
      responseCallback: null, // no failed request of the load
    });
    const busy = response.status === 0 || response.status === 429 || response.status >= 500;
    if (busy) return; // they go with the next upload
    this.waiting = [];
    if (response.status !== 200 || !response.body.includes('"rejected":[]')) {
      console.warn(`${this.url} did not take every record: ${response.body}`);
    }
  }

  // Tags of a call: the labels by which tracejoin groups, and the caller's own.
  tags(params) {
    const labels = Object.assign({ run: this.run }, this.dimensions, params && params.tags);
    // k6 sends nothing where a tag has no value.
    Object.keys(labels)
      .filter((name) => labels[name] === undefined || labels[name] === null)
      .forEach((name) => delete labels[name]);
    return labels;
  }

  labelled(params, traceHeaders) {
    const headers = Object.assign({}, params && params.headers);
    Object.keys(headers)
      .filter((name) => name.toLowerCase() === 'traceparent')
      .forEach((name) => delete headers[name]);
    return Object.assign({}, params, { headers: Object.assign(headers, traceHeaders), tags: this.tags(params) });
  }

  note(ids, startedAt, tags, response) {
    if (!this.records || !response || !response.timings) return;
    if (response.status === 0 && !response.error_code) return; // k6 could not make a request of it: nothing was sent
    const line = record(ids, startedAt, tags, response);
    if (this.records === 'console') {
      console.log(JSON.stringify(line));
      return;
    }
    this.waiting.push(line);
    if (this.waiting.length > MAX_WAITING) {
      this.waiting.shift();
      this.dropped += 1;
      if (this.dropped === 1) console.warn(`over ${MAX_WAITING} records wait for tracejoin: the oldest are dropped`);
    }
  }
}

// k6's error codes by the names that the importer gives them.
const ERRORS = {
  1050: 'timeout',
  1100: 'dns',
  1101: 'no_such_host',
  1110: 'blocked_by_k6',
  1111: 'blocked_by_k6',
  1201: 'broken_pipe',
  1211: 'connect_timeout',
  1212: 'connection_refused',
  1220: 'connection_reset',
  1310: 'certificate',
  1311: 'certificate',
};

const DIMENSIONS = ['model', 'provider', 'region', 'pool', 'priority', 'concurrency', 'streaming', 'cold_start'];

// The same record that `tracejoin import k6` makes of `--out json`: whoever has both has no request twice.
function record(ids, startedAt, tags, response) {
  const t = response.timings;
  const failed = response.status === 0;
  const line = {
    trace_id: ids.traceId,
    span_id: ids.spanId,
    started_at: startedAt,
    status: response.status,
    error: failed ? ERRORS[response.error_code] || `k6_${response.error_code}` : undefined,
    run: tags.run,
    scenario: exec.scenario.name,
    dimensions: {},
  };
  DIMENSIONS.filter((name) => tags[name] !== undefined).forEach((name) => {
    line.dimensions[name] = String(tags[name]);
  });
  // Without a connection k6 has no times, and writes 0 for each of them.
  if (failed && t.duration === 0) return line;
  line.duration_ms = t.duration; // start of sending to the last byte, without setup
  line.setup = {
    // k6's own `blocked` contains connecting and the TLS handshake.
    blocked_ms: Math.max(0, t.blocked - t.connecting - t.tls_handshaking),
    connect_ms: t.connecting,
    tls_ms: t.tls_handshaking,
  };
  line.sending_ms = t.sending;
  // Without an answer k6 counts the time until it gave up as waiting for one.
  if (failed && t.receiving === 0) return line;
  line.waiting_ms = t.waiting;
  line.receiving_ms = t.receiving;
  line.headers_ms = t.sending + t.waiting; // first response byte: not the first token
  return line;
}
