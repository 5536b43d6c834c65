"""Everything that yields records."""
