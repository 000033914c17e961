"""What measurements say: how long steps, what lies between them, and sequences take."""
