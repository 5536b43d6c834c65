"""Records from a running endpoint."""
