"""What `twospeed explain` answers."""
