"""Histories as files: a page of updates in, a piece of the file out."""
