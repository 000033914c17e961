"""Workflows: atoms from one source through stateless procedures, as parallel as it can be."""
