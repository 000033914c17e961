"""What the platform is about, without any server: nothing here opens, waits or reads a clock."""
