"""Who comes to a loop and is not known yet: letting in, and the small part that they have."""
