"""Windows: finite pieces of endless streams, and what is known of the updates in one."""
