"""One module per command; the only room that prints."""
