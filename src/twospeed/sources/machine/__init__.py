"""What this machine shows of itself and of a server on it; every reader is optional."""
