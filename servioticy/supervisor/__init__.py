"""Keeping programs running: starts, restarts, ends, and nothing left behind."""
