//! The durations of a record, and whether they agree with one another.

use super::FieldError;
use super::body::ClientRecordBody;
use model::{Nanos, ResultClass, Setup, StreamSummary};

/// Sums of measured parts differ from a measured whole by so much at least.
const MIN_TOLERANCE: Nanos = Nanos(1_000_000);

/// Every duration of a record; see `ClientRecord` for what each means.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Timing {
    /// Start of sending to the last byte.
    pub duration: Option<Nanos>,
    /// The same with setup.
    pub wall: Option<Nanos>,
    /// Connection setup.
    pub setup: Setup,
    /// Scheduled to started.
    pub client_queue: Option<Nanos>,
    /// Start of sending to the first response byte.
    pub headers: Option<Nanos>,
    /// Sending the request.
    pub sending: Option<Nanos>,
    /// Sent to the first response byte.
    pub waiting: Option<Nanos>,
    /// First response byte to the last.
    pub receiving: Option<Nanos>,
    /// Start of sending to the first business event.
    pub ttft: Option<Nanos>,
    /// Start of sending to the first visible text.
    pub ttft_visible: Option<Nanos>,
    /// Whether the record ends at the headers.
    pub headers_only: bool,
}

impl Timing {
    /// Reads them.
    pub fn take(body: &mut ClientRecordBody) -> Result<Self, FieldError> {
        let mut timing = Self {
            duration: body.duration_ms.millis("duration_ms")?,
            wall: body.wall_ms.millis("wall_ms")?,
            setup: setup(body)?,
            client_queue: body.client_queue_ms.millis("client_queue_ms")?,
            headers: body.headers_ms.millis("headers_ms")?,
            sending: body.sending_ms.millis("sending_ms")?,
            waiting: body.waiting_ms.millis("waiting_ms")?,
            receiving: body.receiving_ms.millis("receiving_ms")?,
            ttft: body.ttft_ms.millis("ttft_ms")?,
            ttft_visible: body.ttft_visible_ms.millis("ttft_visible_ms")?,
            headers_only: headers_only(body)?,
        };
        // Headers and nothing after them: that is where the record ends, whether or not it says so.
        timing.headers_only |= timing.headers.is_some() && timing.duration.is_none() && timing.wall.is_none();
        Ok(timing)
    }

    /// Whether what a record needs is there, and whether its parts agree.
    pub fn check(&self, result: ResultClass, stream: Option<&StreamSummary>) -> Result<(), FieldError> {
        self.check_wall()?;
        let Some(whole) = self.duration.or(self.wall) else { return self.check_absent(result) };
        let parts = [
            ("ttft_ms", self.ttft),
            ("ttft_visible_ms", self.ttft_visible),
            ("stream.last_event_ms", stream.and_then(|stream| stream.last_event)),
        ];
        for (name, part) in parts {
            let Some(part) = part.filter(|part| *part > whole + tolerance(whole)) else { continue };
            let reason = format!(
                "is {} ms, after the answer's end at {} ms; measure both from the start of sending",
                part.as_millis(),
                whole.as_millis()
            );
            return Err(FieldError::new(name, reason));
        }
        Ok(())
    }

    /// `wall = setup + duration`, unknown parts counted as nothing.
    fn check_wall(&self) -> Result<(), FieldError> {
        let (Some(duration), Some(wall)) = (self.duration, self.wall) else { return Ok(()) };
        let setup = self.setup.total().unwrap_or_default();
        let difference = wall - (duration + setup);
        if difference.0.abs() <= tolerance(wall).0 {
            return Ok(());
        }
        let reason = format!(
            "is {} ms, but duration_ms and setup make {} ms; send wall_ms only where setup cannot be told apart",
            wall.as_millis(),
            (duration + setup).as_millis()
        );
        Err(FieldError::new("wall_ms", reason))
    }

    /// A request that did not end by itself, or whose record ends at the headers, may have no duration.
    fn check_absent(&self, result: ResultClass) -> Result<(), FieldError> {
        let broken_off = matches!(result, ResultClass::Error | ResultClass::Timeout | ResultClass::Cancelled);
        if broken_off || (self.headers_only && self.headers.is_some()) {
            return Ok(());
        }
        let reason = "is missing; send duration_ms (start of sending to last byte) or wall_ms (the same with setup): \
                      only a request that ended as error, timeout or cancelled may have neither";
        Err(FieldError::new("duration_ms", reason))
    }
}

fn tolerance(whole: Nanos) -> Nanos {
    MIN_TOLERANCE.max(Nanos(whole.0 / 5_000))
}

fn setup(body: &mut ClientRecordBody) -> Result<Setup, FieldError> {
    let Some(mut parts) = body.setup.value("setup")? else { return Ok(Setup::default()) };
    body.ignored_fields += parts.ignored_fields;
    Ok(Setup {
        blocked: parts.blocked_ms.millis("setup.blocked_ms")?,
        dns: parts.dns_ms.millis("setup.dns_ms")?,
        connect: parts.connect_ms.millis("setup.connect_ms")?,
        tls: parts.tls_ms.millis("setup.tls_ms")?,
    })
}

/// Either a field of its own or the record's `quality`.
fn headers_only(body: &mut ClientRecordBody) -> Result<bool, FieldError> {
    let quality = body.quality.raw_text("quality")?;
    let by_quality = match quality.as_deref().map(str::trim) {
        None | Some("full") => false,
        Some("headers_only") => true,
        Some(_) => {
            let reason = "is none of full, headers_only; leave it out for a full record";
            return Err(FieldError::new("quality", reason));
        }
    };
    Ok(body.headers_only.value("headers_only")?.unwrap_or(false) || by_quality)
}
