"""Others that compute windows, on the same work: each in an environment of the benchmark's own."""
