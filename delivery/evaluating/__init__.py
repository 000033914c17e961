"""What tenants have written is evaluated here: out of the loop, in turns, within one budget."""
