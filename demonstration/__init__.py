"""The demonstration: real sensor series through the REST API."""
