"""The `servioticy` command."""
