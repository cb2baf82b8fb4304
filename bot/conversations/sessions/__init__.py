"""Two-way sessions: the stream-json protocol over conversations; docs/stream-json.md describes it."""
