"""What `twospeed time` does once its options are read."""
