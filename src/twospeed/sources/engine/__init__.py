"""Records from the embedded llama.cpp."""
