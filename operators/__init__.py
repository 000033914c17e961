"""Operators: tenants' own programs that compute composites, beside the engine and apart."""
