"""Logs, API answers and benchmark files in; records, facts and points out: one file per format."""
