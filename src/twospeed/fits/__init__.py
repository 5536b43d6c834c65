"""Models of prefill and decode time with intervals; pure."""
