"""Trying a changed document: what it would have made of stored updates; nothing is stored."""
