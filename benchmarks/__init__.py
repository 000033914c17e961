"""Benchmarks that anyone can run: `servioticy bench NAME`."""
