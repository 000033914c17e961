"""Documents of Service Objects: parsed, checked, stored and shown."""
