//! A private PostgreSQL for those who have none: found, started, adopted, stopped.
