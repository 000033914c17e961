"""Fleets and dynamic groups: what is made of templates, and who belongs."""
