"""Spark around the engine: the one query, and the worker that it hands its rows to."""
