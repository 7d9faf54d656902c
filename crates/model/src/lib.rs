//! The Context Layer protocol as a pure library.
