"""Time the two machines inside local language-model inference apart."""

__version__ = "0.1.0"
