"""What `twospeed simulate` does once its options are known."""
