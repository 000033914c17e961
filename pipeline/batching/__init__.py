"""From the records of the log to batches: what is computed now, what later, in which pieces."""
