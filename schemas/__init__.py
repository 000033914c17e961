"""JSON Schemas of everything that crosses a boundary."""
