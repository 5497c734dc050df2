"""The server: one live snapshot, REST, and who may do what."""
