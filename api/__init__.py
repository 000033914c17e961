"""The REST program: validate, ask a port, answer."""
