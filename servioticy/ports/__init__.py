"""What the programs need from outside: one small protocol with its nouns a file."""
