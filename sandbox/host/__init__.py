"""What runs in our own process: the pool of workers, what it sends, and what it believes."""
