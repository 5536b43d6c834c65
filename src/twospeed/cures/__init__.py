"""Findings in; cures with a predicted saving out."""
