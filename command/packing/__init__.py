"""A packed environment: all that a machine needs to compute, in one file that knows no path."""
