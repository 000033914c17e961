"""What runs in the process that becomes a tenant's program."""
