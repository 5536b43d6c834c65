"""One report document and its renderers."""
