//! Client records over gRPC, from a client whose messages are written by hand from the protocol.

use serde_json::json;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Endpoint;
use tonic_prost::ProstCodec;

use crate::common::Server;

#[derive(Clone, PartialEq, prost::Message)]
struct Request {
    #[prost(message, repeated, tag = "1")]
    records: Vec<Record>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Record {
    #[prost(string, optional, tag = "1")]
    trace_id: Option<String>,
    #[prost(double, optional, tag = "6")]
    duration_ms: Option<f64>,
    #[prost(double, optional, tag = "14")]
    ttft_ms: Option<f64>,
    #[prost(int64, optional, tag = "18")]
    status: Option<i64>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Answer {
    #[prost(uint64, tag = "1")]
    accepted: u64,
    #[prost(uint64, tag = "2")]
    duplicates: u64,
    #[prost(message, repeated, tag = "3")]
    rejected: Vec<Rejected>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Rejected {
    #[prost(uint64, tag = "1")]
    index: u64,
    #[prost(string, tag = "2")]
    field: String,
    #[prost(string, tag = "3")]
    reason: String,
}

async fn export(server: &Server, records: Vec<Record>) -> Answer {
    let channel = Endpoint::from_shared(server.otlp_grpc.clone()).expect("an address").connect().await;
    let mut grpc = Grpc::new(channel.expect("the listener accepts"));
    grpc.ready().await.expect("a connection");
    let path = PathAndQuery::from_static("/tracejoin.v1.ClientRecordService/Export");
    let codec = ProstCodec::<Request, Answer>::default();
    grpc.unary(tonic::Request::new(Request { records }), path, codec).await.expect("the request is fine").into_inner()
}

#[tokio::test(flavor = "multi_thread")]
async fn records_over_grpc_are_those_of_http() {
    let server = Server::start().await;
    let trace_id = uuid::Uuid::new_v4().simple().to_string();
    let good = Record { trace_id: Some(trace_id.clone()), duration_ms: Some(100.0), ttft_ms: None, status: Some(200) };
    let bad = Record { duration_ms: Some(-1.0), ..good.clone() };

    let answer = export(&server, vec![good.clone(), bad]).await;
    assert_eq!((answer.accepted, answer.duplicates), (1, 0));
    let http = json!([{"trace_id": trace_id, "duration_ms": 100, "status": 200},
                      {"trace_id": trace_id, "duration_ms": -1, "status": 200}]);
    let uploaded = server.upload(&http).await;
    assert_eq!((&uploaded["accepted"], &uploaded["duplicates"]), (&json!(0), &json!(1)));
    let [rejected] = answer.rejected.as_slice() else { panic!("one is refused: {answer:?}") };
    let told = json!({"index": rejected.index, "field": rejected.field, "reason": rejected.reason});
    assert_eq!(uploaded["rejected"], json!([told]));

    server
        .wait_for(&format!("/api/v1/traces/{trace_id}"), |answer| {
            let found = [&answer["state"], &answer["client"]["duration_ms"], &answer["client"]["ttft_ms"]];
            let wanted = [&json!("client_only"), &json!(100.0), &json!(null)];
            if found == wanted { Vec::new() } else { vec![format!("{found:?}")] }
        })
        .await;
}
