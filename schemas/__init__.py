"""Everything that crosses a boundary, as JSON Schema, and the contracts made of them."""
