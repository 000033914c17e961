"""Updates as HTTP requests to addresses that tenants name: none of them may reach inside."""
