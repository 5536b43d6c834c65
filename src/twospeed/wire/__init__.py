"""Bytes and arrival times in, events out; no sockets, no clock."""
