"""What `twospeed read` is made of."""
