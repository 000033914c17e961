"""The platform on one machine, without root and without Docker."""
