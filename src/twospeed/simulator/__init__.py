"""The paced server: feels like a given machine, and knows its own true times."""
