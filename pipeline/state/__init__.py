"""What a task knows: of its partition, and of every stream through one batch."""
