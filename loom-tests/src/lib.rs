//! Models of koel's protocols: see `tests/`, one file a protocol.
