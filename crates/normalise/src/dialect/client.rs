//! Where the span of a caller ends: with the answer, or already at its headers. The conventions allow both, so it is the
//! instrumentation that decides.

use super::{ClientEnd, Reading};
use model::{Span, SpanKind};

/// Instrumentations by the name of their scope, or by how it begins where versions and modules follow. Those that are
/// not listed may end at the headers. Some that do, lest they are added here: aiohttp-client (its `on_request_end` fires
/// once the head is there), httpx (opentelemetry-python-contrib#2304), urllib3 (which `requests` and others ask for the
/// head alone), OkHttp (an interceptor sees no body), .NET (dotnet/runtime#37141), Apache HttpClient.
const ENDS_AT_BODY: &[&str] = &[
    // `Session.send` reads the body unless it is told to stream, and then the span is shorter than the server's.
    "opentelemetry.instrumentation.requests",
    // The span is ended at the end of the body or when it is closed: opentelemetry-go-contrib#378.
    "go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp",
    // On the response's `end` or `close`.
    "@opentelemetry/instrumentation-http",
    // On `undici:request:trailers`, which undici publishes when the body is complete.
    "@opentelemetry/instrumentation-undici",
    // A clone of the response is read to its end first.
    "@opentelemetry/instrumentation-fetch",
    "@opentelemetry/instrumentation-xml-http-request",
    // With the last part of the content: opentelemetry-java-instrumentation#2641.
    "io.opentelemetry.netty-4.",
];

/// Fills in the end of a CLIENT span.
pub fn fill(span: &Span, reading: &mut Reading) {
    if span.kind != SpanKind::Client {
        return;
    }
    let known = ENDS_AT_BODY.iter().any(|scope| span.scope.name.starts_with(scope));
    // An SDK's own span of a model call ends with the stream that it hands out, and nobody counts the tokens of an
    // answer that is not there yet.
    let whole = known || reading.genai_client || reading.output_tokens.is_some();
    reading.client_end = if whole { ClientEnd::Body } else { ClientEnd::Headers };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{self, sample};

    fn end(scope: &'static str, name: &str, attributes: &[(&'static str, model::Value)]) -> ClientEnd {
        let span = sample::with_scope(sample::span(name, SpanKind::Client, 5, attributes), scope);
        dialect::read(&span).client_end
    }

    #[test]
    fn the_instrumentation_decides_and_what_is_not_known_may_end_at_the_headers() {
        for (scope, expected) in [
            ("opentelemetry.instrumentation.requests", ClientEnd::Body),
            ("go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp", ClientEnd::Body),
            ("@opentelemetry/instrumentation-undici", ClientEnd::Body),
            ("io.opentelemetry.netty-4.1", ClientEnd::Body),
            ("opentelemetry.instrumentation.aiohttp_client", ClientEnd::Headers),
            ("opentelemetry.instrumentation.httpx", ClientEnd::Headers),
            ("io.opentelemetry.okhttp-3.0", ClientEnd::Headers),
            ("System.Net.Http", ClientEnd::Headers),
            ("somebody.elses", ClientEnd::Headers),
        ] {
            assert_eq!(end(scope, "POST", &[("http.request.method", sample::text("POST"))]), expected, "{scope}");
        }
    }

    #[test]
    fn a_model_call_of_an_sdk_lasts_until_the_streams_end() {
        let chat = [("gen_ai.operation.name", sample::text("chat"))];
        assert_eq!(end("opentelemetry.instrumentation.openai_v2", "chat m-7b", &chat), ClientEnd::Body);
        let counted = [("gen_ai.usage.output_tokens", model::Value::Int(12))];
        assert_eq!(end("somebody.elses", "call", &counted), ClientEnd::Body);
        let agent = [("gen_ai.operation.name", sample::text("invoke_agent"))];
        assert_eq!(end("somebody.elses", "invoke_agent a", &agent), ClientEnd::Headers);
    }
}
