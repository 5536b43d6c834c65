"""What commands share to speak with a person."""
