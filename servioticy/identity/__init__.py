"""Persons whom an issuer of tokens vouches for (OpenID Connect): who they are, by their tokens."""
