//! The client record as it is sent, declared once: reading, writing and the OpenAPI schema all follow from the fields
//! below. `proto/tracejoin/v1/client_record.proto` has the same ones, which the conversion and a test make sure of.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use super::FieldError;
use super::wire::{Count, Field, Millis, Wire};
use model::Dimension;

/// Declares an object of the wire. A field's documentation is its description in the schema.
macro_rules! wire_object {
    (
        $(#[doc = $about:literal])+
        pub struct $name:ident { $($(#[doc = $doc:literal])+ $field:ident: $kind:ty,)+ }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq, Default, Serialize)]
        pub struct $name {
            $(
                $(#[doc = $doc])+
                #[serde(skip_serializing_if = "Field::is_absent")]
                pub $field: Field<$kind>,
            )+
            /// How many fields were sent that the object does not have.
            #[serde(skip)]
            pub ignored_fields: u64,
        }

        impl $name {
            /// The names of its fields.
            pub const FIELDS: &[&str] = &[$(stringify!($field)),+];

            /// Adds its schema, and those that it refers to, to a document's.
            pub fn components(components: &mut Vec<(String, RefOr<Schema>)>) {
                components.push((<Self as ToSchema>::name().into_owned(), <Self as PartialSchema>::schema()));
                <Self as ToSchema>::schemas(components);
            }
        }

        impl From<Map<String, Value>> for $name {
            fn from(mut map: Map<String, Value>) -> Self {
                $(let $field = Field::take(&mut map, stringify!($field));)+
                Self { $($field,)+ ignored_fields: map.len() as u64 }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Map::deserialize(deserializer).map(Self::from)
            }
        }

        impl Wire for $name {
            const EXPECTED: &'static str = "an object";

            fn read(value: Value) -> Result<Self, Value> {
                Map::read(value).map(Self::from)
            }

            fn field_schema() -> RefOr<Schema> {
                Ref::from_schema_name(<Self as ToSchema>::name()).into()
            }

            fn components(components: &mut Vec<(String, RefOr<Schema>)>) {
                Self::components(components);
            }
        }

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let object = ObjectBuilder::new().schema_type(Type::Object);
                let object = object.description(Some(concat!($($about),+).trim()));
                $(
                    let schema = described(<$kind as Wire>::field_schema(), concat!($($doc),+).trim());
                    let object = object.property(stringify!($field), schema);
                )+
                object.into()
            }
        }

        impl ToSchema for $name {
            fn name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn schemas(components: &mut Vec<(String, RefOr<Schema>)>) {
                $(<$kind as Wire>::components(components);)+
            }
        }
    };
}

wire_object! {
    /// One request as its client measured it. Times are durations in milliseconds by the client's own monotonic clock.
    /// Every field may be left out: it is unknown then, which is not 0; `null` says the same. Needed are an id
    /// (`trace_id`, `traceparent` or `request_id`) and, unless the request broke off, `duration_ms` or `wall_ms`. A
    /// number or boolean may be written as a text; fields that are not listed here are counted and ignored.
    pub struct ClientRecordBody {
        /// 32 hexadecimal digits, or `traceparent`. A record may have a `request_id` instead.
        trace_id: String,
        /// The client's own span: the parent that the server's entry span names. 16 hexadecimal digits.
        span_id: String,
        /// The W3C header that went out with the request, instead of `trace_id` and `span_id`.
        traceparent: String,
        /// An id of at most 256 bytes that the server's spans carry too, and no other request.
        request_id: String,
        /// A time of RFC 3339 by the client's clock. A label for windows; never subtracted from a server's time.
        started_at: String,
        /// Start of sending to the last byte, without setup.
        duration_ms: Millis,
        /// The same with setup, from a client that cannot tell it apart.
        wall_ms: Millis,
        /// Connection setup.
        setup: SetupBody,
        /// Scheduled to started; in no phase.
        client_queue_ms: Millis,
        /// Start of sending to the first response byte. Not the first token.
        headers_ms: Millis,
        /// Sending the request.
        sending_ms: Millis,
        /// Sent to the first response byte.
        waiting_ms: Millis,
        /// First response byte to the last.
        receiving_ms: Millis,
        /// Start of sending to the first token of any kind, reasoning and tool calls included.
        ttft_ms: Millis,
        /// The same to the first text that a person sees.
        ttft_visible_ms: Millis,
        /// Whether the measurement ends at the answer's headers.
        headers_only: bool,
        /// `full`, or `headers_only`: another spelling of that field.
        quality: String,
        /// Whether the answer was streamed.
        streaming: bool,
        /// HTTP status; 0 where there was no answer. At most 999.
        status: Count,
        /// ok, error, timeout, cancelled or truncated; derived from `status` where it is left out.
        result: String,
        /// A class of few values, not a message. At most 128 bytes are kept.
        error: String,
        /// Tokens of the prompt.
        input_tokens: Count,
        /// Tokens of the answer.
        output_tokens: Count,
        /// What the client saw of a streamed answer.
        stream: StreamBody,
        /// ok, no_end, missing or both: `stream.completeness` from a client that measures nothing else of the stream.
        completeness: String,
        /// The answer's own timing as the engine wrote it, and its `kind`.
        response_metrics: Map<String, Value>,
        /// Whether this request loaded the model first.
        cold_start: bool,
        /// The test run.
        run: String,
        /// The load scenario.
        scenario: String,
        /// Labels to filter and group by.
        dimensions: DimensionsBody,
    }
}

wire_object! {
    /// Connection setup in disjoint parts.
    pub struct SetupBody {
        /// Waiting for a connection without connecting.
        blocked_ms: Millis,
        /// Name look-up.
        dns_ms: Millis,
        /// TCP connect.
        connect_ms: Millis,
        /// TLS handshake.
        tls_ms: Millis,
    }
}

wire_object! {
    /// What the client saw of a streamed answer. A gap is the time between two business events.
    pub struct StreamBody {
        /// Events with content.
        business_events: Count,
        /// Business events that arrived together with another.
        batched_events: Count,
        /// Median gap.
        p50_gap_ms: Millis,
        /// Gap, 0.95-quantile.
        p95_gap_ms: Millis,
        /// Gap, 0.99-quantile.
        p99_gap_ms: Millis,
        /// Longest gap.
        max_gap_ms: Millis,
        /// Gaps over one second.
        gaps_over_1s: Count,
        /// Whether the end marker came.
        done_received: bool,
        /// Highest sequence number seen.
        last_seq: Count,
        /// Sequence numbers that never came.
        missing_seq: Count,
        /// Start of sending to the last business event.
        last_event_ms: Millis,
        /// Tokens that came after the first business event.
        tokens_after_first: Count,
        /// ok, no_end, missing or both, where `done_received` and `missing_seq` are not known.
        completeness: String,
        /// Business events that came in bursts after a silence, as out of a buffer on the way; 0 where nothing speaks
        /// for one.
        buffered_events: Count,
        /// The median silence before such a burst.
        buffer_silence_ms: Millis,
        /// The median number of events in one.
        buffer_burst: Count,
    }
}

/// Labels by name, as they were sent; `model::Dimension` declares those that are known.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(transparent)]
pub struct DimensionsBody(Map<String, Value>);

impl DimensionsBody {
    /// Takes one label out.
    pub(super) fn take<T: Wire>(&mut self, dimension: Dimension) -> Field<T> {
        Field::take(&mut self.0, dimension.name())
    }

    /// How many labels are left.
    pub(super) fn left(&self) -> u64 {
        self.0.len() as u64
    }
}

impl FromIterator<(String, String)> for DimensionsBody {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(labels: I) -> Self {
        Self(labels.into_iter().map(|(name, value)| (name, Value::String(value))).collect())
    }
}

impl Wire for DimensionsBody {
    const EXPECTED: &'static str = "an object";

    fn read(value: Value) -> Result<Self, Value> {
        Map::read(value).map(Self)
    }

    fn field_schema() -> RefOr<Schema> {
        let object = ObjectBuilder::new().schema_type(Type::Object);
        let label = |dimension: &Dimension| match dimension {
            Dimension::Streaming | Dimension::ColdStart => bool::field_schema(),
            _ => String::field_schema(),
        };
        let labelled = |object: ObjectBuilder, known: &Dimension| object.property(known.name(), label(known));
        Dimension::ALL.iter().fold(object, labelled).into()
    }
}

impl ClientRecordBody {
    /// From JSON.
    ///
    /// # Errors
    /// What is no object. A field of another type is refused later, under its name.
    pub fn parse(raw: &RawValue) -> Result<Self, FieldError> {
        object(raw, "a record is a JSON object with at least trace_id and duration_ms").map(Self::from)
    }
}

/// The members of an object; `expected` says what it should be.
pub(crate) fn object(raw: &RawValue, expected: &str) -> Result<Map<String, Value>, FieldError> {
    match serde_json::from_str(raw.get()) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(FieldError::new("", expected)),
        Err(error) => Err(FieldError::new("", format!("is not valid JSON: {error}"))),
    }
}

fn described(schema: RefOr<Schema>, description: &str) -> RefOr<Schema> {
    match schema {
        RefOr::Ref(mut reference) => {
            reference.description = description.to_owned();
            reference.into()
        }
        RefOr::T(Schema::Object(mut object)) => {
            object.description = Some(description.to_owned());
            Schema::Object(object).into()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Every field of the declaration, as the path that an error names.
    fn paths() -> Vec<String> {
        let nested = [("setup", SetupBody::FIELDS), ("stream", StreamBody::FIELDS)];
        let own = ClientRecordBody::FIELDS.iter().map(|field| (*field).to_owned());
        let nested =
            nested.iter().flat_map(|(object, fields)| fields.iter().map(move |field| format!("{object}.{field}")));
        own.chain(nested).collect()
    }

    /// A whole record in which the field at `path` is `value`.
    fn with(path: &str, value: &Value) -> Value {
        let mut record = json!({"trace_id": "0000000000000007000000000000012f", "duration_ms": 1842});
        match path.split_once('.') {
            Some((object, field)) => record[object] = json!({field: value}),
            None => record[path] = value.clone(),
        }
        record
    }

    #[test]
    fn every_field_is_read_under_its_name() {
        for path in paths() {
            let body: ClientRecordBody = serde_json::from_value(with(&path, &json!([1]))).expect("an object");
            let error = crate::ParsedRecord::try_from(body).expect_err("a list is no field's value");
            assert_eq!(error.field, path);
            assert!(error.reason.starts_with("is a list, must be "), "{path}: {}", error.reason);
        }
    }

    #[test]
    fn what_is_read_is_written_as_it_was() {
        for path in paths() {
            for value in [json!([1]), json!(0), json!("7")] {
                let sent = with(&path, &value);
                let body: ClientRecordBody = serde_json::from_value(sent).expect("an object");
                let written = serde_json::to_value(&body).expect("JSON");
                let again: ClientRecordBody = serde_json::from_value(written).expect("an object");
                assert_eq!(again, body, "{path}");
            }
        }
    }

    #[test]
    fn the_schema_describes_every_field() {
        let mut components = Vec::new();
        ClientRecordBody::components(&mut components);
        let names: Vec<&str> = components.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["ClientRecordBody", "SetupBody", "StreamBody"]);
        let fields = [ClientRecordBody::FIELDS, SetupBody::FIELDS, StreamBody::FIELDS];
        for ((name, schema), fields) in components.iter().zip(fields) {
            let schema = serde_json::to_value(schema).expect("JSON");
            assert_eq!(schema["properties"].as_object().expect("properties").len(), fields.len(), "{name}");
            for field in fields {
                let property = &schema["properties"][field];
                assert!(property["type"].is_string() || property["$ref"].is_string(), "{name}.{field}: {property}");
                assert!(property["description"].as_str().is_some_and(|text| text.len() > 8), "{name}.{field}");
            }
        }
    }
}
