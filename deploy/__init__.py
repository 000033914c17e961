"""What it takes to run the platform: the jar lock and the sources of the stub classes."""
