//! PostgreSQL's binary COPY format (its manual, "COPY", "Binary Format").

use sqlx::postgres::PgConnection;

/// Microseconds from the Unix epoch to PostgreSQL's, 2000-01-01.
const POSTGRES_EPOCH_MICROS: i64 = 946_684_800_000_000;

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";

/// Rows in the making. Fields must follow the columns of the COPY statement in order and type.
pub(super) struct CopyRows {
    bytes: Vec<u8>,
}

impl CopyRows {
    /// No rows yet, room for `capacity` bytes.
    pub(super) fn with_capacity(capacity: usize) -> Self {
        let mut bytes = Vec::with_capacity(capacity + 32);
        bytes.extend_from_slice(SIGNATURE);
        bytes.extend_from_slice(&[0; 8]);
        Self { bytes }
    }

    /// Begins a row.
    pub(super) fn row(&mut self, columns: usize) {
        // Tables have at most 1,600 columns.
        self.bytes.extend_from_slice(&(columns as i16).to_be_bytes());
    }

    /// A field of any type, in its binary form.
    pub(super) fn field(&mut self, value: &[u8]) {
        // PostgreSQL's own bound on a field is 1 GiB, far below i32.
        self.bytes.extend_from_slice(&(value.len() as i32).to_be_bytes());
        self.bytes.extend_from_slice(value);
    }

    /// A null of any type.
    pub(super) fn null(&mut self) {
        self.bytes.extend_from_slice(&(-1_i32).to_be_bytes());
    }

    /// `smallint`.
    pub(super) fn int2(&mut self, value: Option<i16>) {
        self.optional(value.map(i16::to_be_bytes));
    }

    /// `integer`.
    pub(super) fn int4(&mut self, value: Option<i32>) {
        self.optional(value.map(i32::to_be_bytes));
    }

    /// `bigint`.
    pub(super) fn int8(&mut self, value: Option<i64>) {
        self.optional(value.map(i64::to_be_bytes));
    }

    /// `double precision`.
    pub(super) fn float8(&mut self, value: Option<f64>) {
        self.optional(value.map(f64::to_be_bytes));
    }

    /// `timestamptz`, from nanoseconds since the Unix epoch; what is below a microsecond is cut.
    pub(super) fn timestamp(&mut self, unix_nanos: i64) {
        self.field(&(unix_nanos.div_euclid(1000) - POSTGRES_EPOCH_MICROS).to_be_bytes());
    }

    /// Bytes written since the first row began.
    pub(super) fn body(&self) -> &[u8] {
        &self.bytes[SIGNATURE.len() + 8..]
    }

    fn optional<const N: usize>(&mut self, value: Option<[u8; N]>) {
        match value {
            Some(bytes) => self.field(&bytes),
            None => self.null(),
        }
    }

    /// Sends the rows. On any error, and where the future is dropped before its end, the connection is out of step with
    /// the server and must be closed.
    pub(super) async fn send(mut self, connection: &mut PgConnection, statement: &str) -> Result<u64, sqlx::Error> {
        self.bytes.extend_from_slice(&(-1_i16).to_be_bytes());
        let mut copy = connection.copy_in_raw(statement).await?;
        copy.send(self.bytes).await?;
        copy.finish().await
    }
}
