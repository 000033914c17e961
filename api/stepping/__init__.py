"""Long work in a process of lower priority, step by step: whoever has much of it delays nobody."""
