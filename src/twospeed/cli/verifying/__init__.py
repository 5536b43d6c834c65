"""How `twospeed verify` runs its experiment."""
