"""Monitoring woven around the steps, by configuration, and gone without a trace (MOSAIC)."""
