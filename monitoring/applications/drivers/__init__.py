"""Engines' drivers: how an application is begun, with its aspects woven in as it loads."""
