//! The own health of the process: logs and metrics.
