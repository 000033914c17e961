"""What runs in a tenant's process: the engine, its realm, and the walls around them."""
