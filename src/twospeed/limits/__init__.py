"""What the machine and the model allow, each number with its source."""
