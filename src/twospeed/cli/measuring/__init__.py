"""What commands share to obtain a run."""
