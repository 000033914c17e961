"""Back-up and restore: one file with all that a platform has stored and has still to do."""
