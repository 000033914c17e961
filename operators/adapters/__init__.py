"""Operators elsewhere: in containers."""
