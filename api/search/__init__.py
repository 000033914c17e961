"""Searching the updates of a stream, by columns that are made where somebody searches."""
