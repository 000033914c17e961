"""What changes the meaning of the log at its place in it, and what then goes or is told."""
