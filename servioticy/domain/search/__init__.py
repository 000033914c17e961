"""What a search of a stream's updates asks for: the criteria, and what fits them."""
