"""Readers of logs that are written line by line: one module per program."""
