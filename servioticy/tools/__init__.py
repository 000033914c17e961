"""Commands, benchmarks and the demonstration: they use programs, nobody imports them."""
