"""Commands that ask a platform over its API, wherever it runs, with a tenant's token."""
