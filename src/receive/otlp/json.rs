//! OTLP/JSON. The strict reading is tried first, since it is the cheap one; what it refuses is read once more after
//! mending the forms that protobuf's JSON mapping allows and the strict reading does not know.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use serde_json::{Map, Value};

use super::{Decoded, span_count};

const SNAKE_CASE: &str = "the request holds snake_case names, which OTLP/JSON does not have and which are ignored: \
                          write resourceSpans, scopeSpans, traceId and so on";

/// Fields of 32 bits, which protobuf's JSON mapping also allows as strings.
const U32_FIELDS: [&str; 4] = ["flags", "droppedAttributesCount", "droppedEventsCount", "droppedLinksCount"];
/// Fields that are enums: their names must not be sent.
const ENUM_FIELDS: [&str; 2] = ["kind", "code"];

/// Decodes the JSON form.
///
/// # Errors
/// What is wrong with the document, and what its sender can do.
pub fn decode(bytes: &[u8]) -> Result<Decoded, String> {
    let invalid = |cause: String| format!("the body is not an ExportTraceServiceRequest in OTLP/JSON: {cause}");
    let text = std::str::from_utf8(bytes).map_err(|cause| invalid(cause.to_string()))?;
    if text.trim_ascii().is_empty() {
        return Ok(Decoded::default());
    }
    let request = match serde_json::from_str(text) {
        Ok(request) => request,
        Err(strict) => decode_mended(text).map_err(|found| invalid(found.unwrap_or_else(|| strict.to_string())))?,
    };
    let warning = if span_count(&request) == 0 && has_snake_case(text) { SNAKE_CASE } else { "" };
    Ok(Decoded { request, warning: warning.to_owned() })
}

/// The second reading. Its error is `None` where the strict reading's says more.
fn decode_mended(text: &str) -> Result<ExportTraceServiceRequest, Option<String>> {
    let mut document: Value = serde_json::from_str(text).map_err(|_syntax| None)?;
    if let Some(field) = enum_name(&document) {
        return Err(Some(format!("{field} is an enum and must be sent as an integer, not by its name")));
    }
    repair(&mut document);
    serde_json::from_value(document).map_err(|cause| Some(cause.to_string()))
}

/// The first enum field that holds a name.
fn enum_name(value: &Value) -> Option<&'static str> {
    match value {
        Value::Array(members) => members.iter().find_map(enum_name),
        Value::Object(fields) => {
            let named = |field: &&str| matches!(fields.get(*field), Some(Value::String(_)));
            ENUM_FIELDS.into_iter().find(|field| named(field)).or_else(|| fields.values().find_map(enum_name))
        }
        _ => None,
    }
}

/// Rewrites what the mapping allows into what the strict reading takes.
fn repair(value: &mut Value) {
    match value {
        Value::Array(members) => members.iter_mut().for_each(repair),
        Value::Object(fields) => mend_object(fields),
        _ => {}
    }
}

fn mend_object(fields: &mut Map<String, Value>) {
    fields.retain(|_, field| !field.is_null());
    for list in ["arrayValue", "kvlistValue"] {
        if let Some(Value::Object(list)) = fields.get_mut(list) {
            list.retain(|_, field| !field.is_null());
            list.entry("values").or_insert_with(|| Value::Array(Vec::new()));
        }
    }
    for name in U32_FIELDS {
        mend_number(fields, name, |text| text.parse::<u32>().ok().map(Value::from));
    }
    mend_number(fields, "doubleValue", |text| text.parse::<f64>().ok().map(Value::from));
    // JSON has no number for NaN and the infinities: as a measured value they mean that it is missing.
    fields.retain(|name, field| name != "doubleValue" || !field.is_null());
    if let Some(Value::String(text)) = fields.get_mut("bytesValue") {
        mend_base64(text);
    }
    fields.values_mut().for_each(repair);
}

fn mend_number(fields: &mut Map<String, Value>, name: &str, parse: impl Fn(&str) -> Option<Value>) {
    if let Some(field) = fields.get_mut(name)
        && let Some(number) = field.as_str().and_then(parse)
    {
        *field = number;
    }
}

/// The mapping takes both alphabets of base64, with or without padding.
fn mend_base64(text: &mut String) {
    let url_safe = text.replace('+', "-").replace('/', "_");
    if let Ok(bytes) = URL_SAFE_NO_PAD.decode(url_safe.trim_end_matches('=')) {
        *text = STANDARD.encode(bytes);
    }
}

fn has_snake_case(text: &str) -> bool {
    text.contains("\"resource_spans\"") || text.contains("\"scope_spans\"")
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
    use opentelemetry_proto::tonic::trace::v1::Span;
    use proptest::prelude::*;

    use super::*;

    /// One span with `field` added to it.
    fn with_field(field: &str) -> String {
        let ids = r#""traceId":"0102030405060708090a0B0C0D0E0F10","spanId":"0102030405060708""#;
        format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{{ids},{field}}}]}}]}}]}}"#)
    }

    fn span(field: &str) -> Span {
        let mut decoded = decode(with_field(field).as_bytes()).expect(field);
        decoded.request.resource_spans.remove(0).scope_spans.remove(0).spans.remove(0)
    }

    fn attribute(value: &str) -> Option<Any> {
        let mut attributes = span(&format!(r#""attributes":[{{"key":"k","value":{value}}}]"#)).attributes;
        attributes.remove(0).value.and_then(|value| value.value)
    }

    fn reason(field: &str) -> String {
        decode(with_field(field).as_bytes()).expect_err(field)
    }

    #[test]
    fn ids_are_hex_in_either_case() {
        assert_eq!(span(r#""name":"a""#).trace_id, (1..=16).collect::<Vec<u8>>());
    }

    #[test]
    fn null_is_the_default() {
        let nulls = r#""parentSpanId":null,"name":null,"attributes":null,"status":null,"kind":null,"flags":null"#;
        let plain = span(r#""name":"""#);
        assert_eq!(span(nulls), plain);
    }

    #[test]
    fn integers_of_64_bits_are_strings_or_numbers() {
        assert_eq!(
            span(r#""startTimeUnixNano":"1700000000000000001""#).start_time_unix_nano,
            1_700_000_000_000_000_001
        );
        assert_eq!(span(r#""startTimeUnixNano":1700000000000000001"#).start_time_unix_nano, 1_700_000_000_000_000_001);
    }

    #[test]
    fn integers_of_32_bits_may_be_strings() {
        assert_eq!(span(r#""flags":"257""#).flags, 257);
        assert_eq!(span(r#""droppedAttributesCount":"3","flags":1"#).dropped_attributes_count, 3);
    }

    #[test]
    fn doubles_may_be_strings() {
        assert_eq!(attribute(r#"{"doubleValue":"1.5"}"#), Some(Any::DoubleValue(1.5)));
        for missing in ["NaN", "Infinity", "-Infinity"] {
            assert_eq!(attribute(&format!(r#"{{"doubleValue":"{missing}"}}"#)), None, "{missing}");
        }
    }

    #[test]
    fn lists_without_values_are_empty() {
        assert!(matches!(attribute(r#"{"arrayValue":{}}"#), Some(Any::ArrayValue(list)) if list.values.is_empty()));
        assert!(
            matches!(attribute(r#"{"kvlistValue":{"values":null}}"#), Some(Any::KvlistValue(list)) if list.values.is_empty())
        );
    }

    #[test]
    fn bytes_are_base64_in_either_alphabet() {
        for text in ["+/8=", "-_8=", "-_8"] {
            let expected = Some(Any::BytesValue(vec![0xfb, 0xff]));
            assert_eq!(attribute(&format!(r#"{{"bytesValue":"{text}"}}"#)), expected, "{text}");
        }
    }

    #[test]
    fn unknown_fields_are_ignored() {
        assert_eq!(span(r#""name":"a","colour":{"deep":[1]}"#).name, "a");
    }

    #[test]
    fn enum_names_are_refused_with_the_way_out() {
        for field in [r#""kind":"SPAN_KIND_SERVER""#, r#""status":{"code":"STATUS_CODE_OK"}"#] {
            assert!(reason(field).contains("must be sent as an integer"), "{field}");
        }
    }

    #[test]
    fn what_cannot_be_mended_names_the_cause() {
        assert!(reason(r#""startTimeUnixNano":"soon""#).contains("invalid digit"));
        assert!(decode(b"{\"resourceSpans\":[").expect_err("cut off").contains("EOF"));
        assert!(decode(b"{\"a\":\"\xff\"}").expect_err("not UTF-8").contains("OTLP/JSON"));
    }

    #[test]
    fn snake_case_is_told_of() {
        let decoded = decode(br#"{"resource_spans":[{"scope_spans":[]}]}"#).expect("unknown fields are ignored");
        assert_eq!(decoded.request, ExportTraceServiceRequest::default());
        assert!(decoded.warning.contains("resourceSpans"));
    }

    #[test]
    fn an_empty_body_is_an_empty_request() {
        assert_eq!(decode(b" \n"), Ok(Decoded::default()));
        assert_eq!(decode(b"{}"), Ok(Decoded::default()));
    }

    #[test]
    fn deep_nesting_is_refused() {
        let open = r#"{"arrayValue":{"values":["#.repeat(50_000);
        assert!(reason(&format!(r#""attributes":[{{"key":"k","value":{open}"#)).contains("recursion limit"));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_json_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
            if let Err(reason) = decode(&bytes) {
                prop_assert!(reason.contains("OTLP/JSON"));
            }
        }

        #[test]
        fn no_value_of_a_field_makes_the_decoder_panic(
            field in "(kind|flags|name|attributes|status|links|doubleValue|traceState)",
            value in r#"(null|[0-9]{1,25}|"[a-z0-9+/=]{0,8}"|\[\]|\{\}|\[\{"value":\{"(double|array|bytes)Value":("x"|\{\}|null)\}\}\])"#,
        ) {
            if let Ok(decoded) = decode(with_field(&format!(r#""{field}":{value}"#)).as_bytes()) {
                prop_assert_eq!(span_count(&decoded.request), 1);
            }
        }
    }
}
