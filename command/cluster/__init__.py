"""`servioticy cluster`: several machines on one, each a network of its own, that are cut."""
