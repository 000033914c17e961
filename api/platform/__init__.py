"""What the programs of the platform tell of themselves, for whoever operates it."""
