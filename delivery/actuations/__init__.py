"""Actuations on their way to devices: kept in the store, and sent to whoever is connected."""
