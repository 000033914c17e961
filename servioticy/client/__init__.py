"""What a client of the platform needs: requests, and a stream that is followed."""
