//! The settings of every database session.

use sqlx::postgres::PgConnection;
use sqlx::raw_sql;

/// What every session needs, whatever the server's or the role's defaults are.
pub(super) async fn prepare_session(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    // An acknowledgement promises durability. Statements here are short: compiling them costs more than it saves. A
    // claim whose process hangs must not hold its bucket for ever.
    let settings = "set synchronous_commit = on; set jit = off; set idle_in_transaction_session_timeout = '60s'";
    raw_sql(settings).execute(connection).await?;
    Ok(())
}
