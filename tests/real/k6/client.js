// Every kind of call of the library, in one iteration.
import { Tracejoin } from '../../../clients/k6/tracejoin.js';

const traced = new Tracejoin({ dimensions: { model: 'm-7b', streaming: false, pool: undefined } });
const body = JSON.stringify({ stream: false, output_tokens: 2, prefill_ms: 5, token_ms: 5 });
const params = { headers: { 'content-type': 'application/json' } };

export const options = { vus: 2, iterations: 6 };

export default async function () {
  traced.post(__ENV.URL, body, params);
  await traced.asyncRequest('POST', __ENV.URL, body, params);
  const call = { method: 'POST', url: __ENV.URL, body, params };
  await traced.batch([call, call]);
  traced.flush();
}
