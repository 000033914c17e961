"""Who computes composites: trees of regions in, updates and verdicts out."""
