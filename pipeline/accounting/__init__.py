"""What streams have used, whose it is, and how it is stored."""
