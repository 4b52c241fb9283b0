//! The OpenAPI schema of an upload.

use normalise::ClientRecordBody;
use utoipa::openapi::schema::{ArrayBuilder, OneOfBuilder, Schema};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

/// An upload as JSON: one record or an array of them.
pub struct RecordUpload;

impl PartialSchema for RecordUpload {
    fn schema() -> RefOr<Schema> {
        let record = || Ref::from_schema_name(ClientRecordBody::name());
        OneOfBuilder::new().item(record()).item(ArrayBuilder::new().items(record())).into()
    }
}

impl ToSchema for RecordUpload {
    fn schemas(components: &mut Vec<(String, RefOr<Schema>)>) {
        ClientRecordBody::components(components);
    }
}
