//! Settings: flag > environment > file > default.
