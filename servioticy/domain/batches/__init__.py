"""Batches of Sensor Updates in the forms in which devices and people send them."""
