"""Backfills: what a composite would have made of history, computed beside what goes on."""
