"""What one request did, by phase, and the file that keeps it."""
