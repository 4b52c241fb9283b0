//! One file a command; the only module that knows every part.
