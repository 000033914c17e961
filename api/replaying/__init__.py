"""Computing from history: what trials and backfills have in common."""
