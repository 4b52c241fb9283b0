//! What both sides say of a simulated call.

use super::gateway::{Backend, Call, Ending};

/// The model that answers.
pub fn model(call: &Call) -> &'static str {
    match call.backend {
        Backend::Own => "m-7b",
        Backend::Engine => "m-70b",
        Backend::Provider => "acme-large",
    }
}

/// The route.
pub fn provider(call: &Call) -> &'static str {
    match call.backend {
        Backend::Own => "own",
        Backend::Engine => "engine",
        Backend::Provider => "acme",
    }
}

/// The HTTP status that the gateway answers with; 499 is what gateways log where the client has gone.
pub fn status(call: &Call) -> i64 {
    match call.ending {
        Ending::Answered => 200,
        Ending::Refused => 429,
        Ending::Crashed => 500,
        Ending::Failed => 502,
        Ending::GivenUp => 499,
    }
}
