//! Client records over HTTP, `POST /api/v1/records`, and what they share with those over gRPC.

mod schema;
mod split;
pub mod typed;

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::schema::RecordUpload;
use self::split::{Format, split};
use super::body::{BodyError, ReceivedBody};
use super::budget::{Budget, Reservation};
use super::intake::{RawRecord, ReceivedRecord, RecordIntake, RecordOutcome, Refusal, RejectedRecord, SentRecord};
use super::limits::Limits;
use super::meter::Transport;
use super::problem::{Problem, UploadProblem};

/// What a member takes beside its text, however short that is: itself, why it is refused, and its line in the answer.
const MEMBER_BYTES: usize = 256;

/// Hands uploads of client records on. Clones share everything.
#[derive(Clone)]
pub struct RecordEndpoint {
    intake: Arc<dyn RecordIntake>,
    pub(super) limits: Arc<Limits>,
    pub(super) budget: Budget,
}

impl RecordEndpoint {
    /// An endpoint that hands on to `intake`.
    pub fn new(intake: Arc<dyn RecordIntake>, limits: Arc<Limits>, budget: Budget) -> Self {
        Self { intake, limits, budget }
    }

    /// Hands records on that took `bytes` after decompression, and resolves when they are durable. An upload without
    /// records is a success at once.
    ///
    /// # Errors
    /// The intake's refusal.
    pub async fn upload(
        &self,
        transport: Transport,
        records: Vec<ReceivedRecord>,
        bytes: usize,
    ) -> Result<UploadAnswer, Refusal> {
        hand_on(transport, records, bytes, |records| self.intake.accept(records)).await
    }
}

/// What became of an upload. Everything counted as accepted is committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct UploadAnswer {
    /// New records.
    pub accepted: u64,
    /// Records that were there already, with the same measured fields.
    pub duplicates: u64,
    /// Records that were refused; the others are kept.
    pub rejected: Vec<RejectedMember>,
    /// Fields that no record has, counted over the upload: often a misspelt name.
    pub ignored_fields: u64,
}

/// A record that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RejectedMember {
    /// Its place among the records of the upload, from 0; blank lines do not count.
    pub index: usize,
    /// The field at fault; empty where it is the record as a whole.
    pub field: String,
    /// What is wrong and what to do about it.
    pub reason: String,
}

impl UploadAnswer {
    /// 400 where nothing was acceptable; an empty upload is fine.
    fn status(&self) -> StatusCode {
        let nothing_taken = self.accepted == 0 && self.duplicates == 0;
        if nothing_taken && !self.rejected.is_empty() { StatusCode::BAD_REQUEST } else { StatusCode::OK }
    }
}

impl From<RejectedRecord> for RejectedMember {
    fn from(RejectedRecord { index, field, reason }: RejectedRecord) -> Self {
        Self { index, field, reason }
    }
}

impl From<RecordOutcome> for UploadAnswer {
    fn from(outcome: RecordOutcome) -> Self {
        Self {
            accepted: outcome.accepted,
            duplicates: outcome.duplicates,
            rejected: outcome.rejected.into_iter().map(RejectedMember::from).collect(),
            ignored_fields: outcome.ignored_fields,
        }
    }
}

/// The route of the client records' endpoint.
pub fn router(endpoint: RecordEndpoint) -> OpenApiRouter {
    OpenApiRouter::new().routes(routes!(upload_records)).with_state(endpoint)
}

/// Takes client records: one object, an array of them, or NDJSON; gzip and zstd are understood.
///
/// A bad record is refused with its index, field and reason while the others are kept. Uploading the same records
/// again changes nothing.
#[utoipa::path(
    post,
    path = "/api/v1/records",
    tag = "ingest",
    request_body(
        description = "A client record, an array of them, or one a line",
        content((RecordUpload = "application/json"), (String = "application/x-ndjson"))
    ),
    responses(
        (status = 200, description = "At least one record was taken, or none was sent", body = UploadAnswer),
        (status = 400, description = "No record was acceptable, or the body cannot be read",
         content((UploadAnswer = "application/json"), (UploadProblem = "application/problem+json"))),
        (status = 413, description = "The upload is over its limit", body = UploadProblem, content_type = "application/problem+json"),
        (status = 415, description = "Another content type or encoding", body = UploadProblem, content_type = "application/problem+json"),
        (status = 503, description = "Busy, or the database is unavailable: try again after Retry-After",
         body = UploadProblem, content_type = "application/problem+json"),
    )
)]
pub async fn upload_records(
    State(endpoint): State<RecordEndpoint>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<UploadAnswer>), Problem> {
    let upload = |records: Vec<RawRecord>, bytes| {
        let records = records.into_iter().map(|record| record.map(SentRecord::from)).collect();
        endpoint.upload(Transport::Records, records, bytes)
    };
    take(Transport::Records, &endpoint.limits, &endpoint.budget, upload, &headers, body).await
}

/// Reads an upload that came through one endpoint, hands its members and its size on, and answers.
pub(super) async fn take<Uploading>(
    transport: Transport,
    limits: &Limits,
    budget: &Budget,
    upload: impl FnOnce(Vec<RawRecord>, usize) -> Uploading,
    headers: &HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<UploadAnswer>), Problem>
where
    Uploading: Future<Output = Result<UploadAnswer, Refusal>>,
{
    let Some(format) = Format::of(headers) else {
        transport.refused("unknown_type");
        let detail = "send Content-Type application/json for one object or an array of them, application/x-ndjson for \
                      one object a line";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
    };
    let refuse = |refused: BodyError| {
        transport.refused(refused.reason());
        Problem::from(refused)
    };
    // Held until the answer: what was read takes memory until it is stored.
    let reservation = Arc::new(budget.reserve());
    let (members, bytes) = read(limits, &reservation, format, headers, body).await.map_err(refuse)?;
    let answer = upload(members, bytes).await.map_err(|refused| refuse(refused.into()))?;
    Ok((answer.status(), Json(answer)))
}

/// Hands the members of an upload to `accept` and counts what became of them. One without members is a success at once.
pub(super) async fn hand_on<Member, Taking>(
    transport: Transport,
    members: Vec<Member>,
    bytes: usize,
    accept: impl FnOnce(Vec<Member>) -> Taking,
) -> Result<UploadAnswer, Refusal>
where
    Taking: Future<Output = Result<RecordOutcome, Refusal>>,
{
    let outcome = if members.is_empty() { RecordOutcome::default() } else { accept(members).await? };
    transport.accepted(bytes, outcome.accepted + outcome.duplicates, outcome.rejected.len() as u64);
    Ok(outcome.into())
}

async fn read(
    limits: &Limits,
    reservation: &Arc<Reservation>,
    format: Format,
    headers: &HeaderMap,
    body: Body,
) -> Result<(Vec<RawRecord>, usize), BodyError> {
    let received = ReceivedBody::read(headers, body, limits.records_body, limits, Arc::clone(reservation)).await?;
    if !received.is_heavy() {
        return read_records(received, format);
    }
    let reading = tokio::task::spawn_blocking(move || read_records(received, format));
    reading.await.unwrap_or_else(|cause| Err(invalid(format!("reading the upload failed: {cause}"))))
}

/// The members of an upload and its size after decompression.
fn read_records(received: ReceivedBody, format: Format) -> Result<(Vec<RawRecord>, usize), BodyError> {
    let reservation = received.reservation();
    let limit = received.limit();
    let bytes = received.decompress()?;
    // The members are copied out of the body, so both are held for a while.
    reservation.grow(bytes.len())?;
    if format == Format::Json && bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(invalid("the body is empty: send one object or an array of them".to_owned()));
    }
    let records = split(format, &bytes, &limit)?;
    reservation.grow(records.len() * MEMBER_BYTES)?;
    Ok((records, bytes.len()))
}

fn invalid(message: String) -> BodyError {
    BodyError::Refused(Refusal::Invalid { message })
}

impl From<BodyError> for Problem {
    fn from(error: BodyError) -> Self {
        Self { retry_after: error.retry_after(), ..Self::new(error.status(), error.to_string()) }
    }
}
