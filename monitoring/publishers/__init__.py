"""Who is told of measurements: each behind one port, in a thread of its own."""
