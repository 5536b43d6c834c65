"""One module per runtime: how it is recognised, asked and read."""
