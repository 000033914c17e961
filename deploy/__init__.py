"""What it takes to run the platform: locks of what is downloaded, and our Java classes."""
